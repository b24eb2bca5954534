"""One run, end to end: text, tokens, training with looks inside, translations, scores, a run folder.

Starting a run whose folder is done returns its result; a partial one goes on from its checkpoint.
"""

from __future__ import annotations

import itertools
import re
import sys
import traceback
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from attnlab.config import Config, Source
from attnlab.data.batching import Batch, Encoded, collate, drop_long
from attnlab.data.corpus import Corpus, load_corpus
from attnlab.data.kept_ids import kept_ids
from attnlab.data.tokenizer import Tokenizer, prepare_tokenizer
from attnlab.device import pick_device
from attnlab.errors import UserError
from attnlab.interrupt import Asked, signals
from attnlab.measure import probe
from attnlab.measure.alarms import judge, judge_text
from attnlab.measure.bleu import score
from attnlab.measure.decode import decode
from attnlab.measure.evaluate import dev_metrics
from attnlab.measure.gradients import parameter_norms
from attnlab.measure.histograms import HIGHEST, LOWEST, gradient_histograms
from attnlab.measure.maps import sentence_maps, short_sentence
from attnlab.model.initialise import build
from attnlab.model.transformer import Transformer
from attnlab.progress import ProgressBar
from attnlab.terminal import show
from attnlab.tracking.attention import save_attention
from attnlab.tracking.folder import RunFolder, folder_of
from attnlab.tracking.media import MAX_IMAGES, Cell
from attnlab.tracking.provenance import collect
from attnlab.tracking.status import State, Status
from attnlab.tracking.tracker import Tracker
from attnlab.training import checkpoint
from attnlab.training.loop import Diverged, Interrupted, Looks, Metrics, Trainer

SAMPLES = 20  # translations in the tracker's table
RESULTS = (State.done, State.diverged)


@dataclass(frozen=True)
class Text:
    """What a run reads: the corpus, its vocabulary and its ids."""

    corpus: Corpus
    tokenizer: Tokenizer
    train: Encoded
    dev: Encoded
    test: Encoded
    dropped_long: int

    @property
    def left_out(self) -> str:
        """How many training pairs are not trained on, by reason; empty where all are."""
        report = self.corpus.report
        blank = sum(int(report[f"train/dropped_blank_{side}"]) for side in ("source", "target", "both"))
        reasons = {
            "with a blank side": blank,
            "that stand in dev or test": int(report["train/dropped_overlap"]),
            "over data.max_pieces": self.dropped_long,
        }
        return ", ".join(f"{count} {reason}" for reason, count in reasons.items() if count)


@dataclass(frozen=True)
class Outcome:
    """How a run ended, and where it lies."""

    run_id: str
    folder: RunFolder
    status: Status
    found_done: bool = False  # nothing was trained now


def read_text(config: Config) -> Text:
    """Corpus, tokenizer and ids, each made once for all runs under one `output`."""
    cache = Path(config.output) / "cache"
    corpus = load_corpus(config.data, cache)
    tokenizer = prepare_tokenizer(corpus, config.data.tokenizer, cache)
    ids = kept_ids(corpus, tokenizer, cache)
    train, dropped = drop_long(ids["train"], config.data.max_pieces)
    return Text(corpus, tokenizer, train, ids["dev"], ids["test"], dropped)


def run(config: Config, *, bar: bool = True) -> Outcome:
    """Train, measure, translate and score one cell and seed; see the module for what happens on a second call.

    Raises UserError for a mistake of the user's, and KeyboardInterrupt or SystemExit after a signal, with the run
    left resumable.
    """
    torch.set_num_threads(config.threads)
    folder, device = folder_of(config), pick_device(config.device)
    with folder.locked():
        status = folder.read_status()
        if status is not None and config.force:
            folder.set_aside()
            status = None
        if status is not None and status.state in RESULTS:
            check_same_text(config, folder)
            return Outcome(folder.path.name, folder, status, found_done=True)
        folder.create()
        if bar:
            show(f"{_title(config, folder)}: reading the text", file=sys.stderr)
        with signals() as asked:
            try:
                text = read_text(config)
                if bar and text.left_out:
                    show(
                        f"{_title(config, folder)}: training pairs left out: {text.left_out}", file=sys.stderr
                    )
                return _train_and_score(config, folder, text, device, asked, bar)
            except UserError:  # nothing has run: once it is mended, the same command starts
                folder.remove_if_empty()
                raise
            except Exception as error:
                _note_failure(folder, error)
                raise


def _note_failure(folder: RunFolder, error: Exception) -> None:
    """Write what went wrong where no tracker was there to do it; what an earlier session said stays."""
    status = folder.read_status() or Status(State.failed)
    if status.state is not State.failed or status.error is None:
        text = "".join(traceback.format_exception(error))
        folder.save_status(replace(status, state=State.failed, error=text))


def check_same_text(config: Config, folder: RunFolder) -> None:
    """Refuse a finished folder whose text was another one under the same data.name.

    A commit of the Hub pins its text. That of the grammar changes with the grammar's own code.
    """
    pinned = config.data.source is Source.hub and re.fullmatch("[0-9a-f]{40}", config.data.revision or "")
    if not pinned:
        corpus = load_corpus(config.data, Path(config.output) / "cache")
        _refuse_other_text(config, corpus.digest, folder)


def _refuse_other_text(config: Config, digest: str, folder: RunFolder) -> None:
    provenance = folder.read_provenance()
    earlier = digest if provenance is None else provenance["data_digest"]
    if digest != earlier:
        raise UserError(
            f"data: got text with hash {digest[:10]} where this run was trained on {earlier[:10]}, allowed: the same "
            f"text, another data.name (now '{config.data.name}'), or force=true"
        )


def _train_and_score(
    config: Config, folder: RunFolder, text: Text, device: torch.device, asked: Asked, bar: bool
) -> Outcome:
    model = build(config.model, config.attention, text.tokenizer.vocab_size, config.seed).to(device)
    trainer = Trainer(model, text.train, config, device)
    trained = folder.checkpoint.exists() and _take_up(config, folder, text, trainer)
    folder.save_config(config)
    folder.save_tokenizer(text.tokenizer.model)
    provenance = collect(
        device=device, threads=config.threads, seed=config.seed, data_digest=text.corpus.digest,
        tokenizer_digest=text.tokenizer.digest,
    )  # fmt: skip
    unknown = {
        f"{name}/unknown_pieces": sum(getattr(text, name).unknown()) for name in ("train", "dev", "test")
    }
    data_report = text.corpus.report | {"train/too_long": text.dropped_long} | unknown
    folder.save_provenance(asdict(provenance) | {"data_report": data_report, "signatures": {}})
    tracker = Tracker(
        folder, config, run_id=folder.path.name, group=config.study.name, job_type=config.attention.name,
        resume_step=trainer.progress.step,
    )  # fmt: skip
    with (
        tracker,
        ProgressBar(config.train.steps, trainer.progress.step, _title(config, folder), bar) as progress,
    ):
        tracker.alarms(judge_text(text.corpus.report))
        looks = _looks(config, text, model, trainer, tracker, folder, asked, progress)
        try:
            if not trained:
                asked.waits_for_the_step()
                trainer.run(looks)
        except Diverged as error:
            status = tracker.finish(State.diverged, error=str(error), step=trainer.progress.step + 1)
            return Outcome(folder.path.name, folder, status, found_done=True)
        except Interrupted:
            raise asked.exception() from None
        asked.ends_at_once()
        results = _score(config, text, model, trainer, tracker, folder)
        return Outcome(folder.path.name, folder, tracker.finish(State.done, results=results))


def _take_up(config: Config, folder: RunFolder, text: Text, trainer: Trainer) -> bool:
    """Put the trainer where the folder's checkpoint stands; True if it was trained to its end and lacks its scores.

    Raises UserError where text, vocabulary or kind of device are not those of the checkpoint.
    """
    _refuse_other_text(config, text.corpus.digest, folder)
    provenance = folder.read_provenance()
    if provenance is not None and provenance["tokenizer_digest"] != text.tokenizer.digest:
        raise UserError(
            f"data.tokenizer: got another vocabulary ({text.tokenizer.digest[:10]}) than the one this run began with "
            f"({provenance['tokenizer_digest'][:10]}), allowed: the same version of sentencepiece, or force=true"
        )
    folder.forget("test/")  # a run killed while it was scored is scored again
    state = checkpoint.load(folder.checkpoint)
    if "final" not in state:
        trainer.load_state(state)
        return False
    trainer.model.load_state_dict(state["model"])
    trainer.progress.step = state["step"]
    return trainer.progress.step > 0  # without a step all of its records are dropped, and logged again


def _title(config: Config, folder: RunFolder) -> str:
    return f"{config.attention.name} seed {config.seed} ({folder.path.name})"


def _looks(
    config: Config, text: Text, model: Transformer, trainer: Trainer, tracker: Tracker, folder: RunFolder,
    asked: Asked, progress: ProgressBar,
) -> Looks:  # fmt: skip
    batch = probe_batch(config, text, next(model.parameters()).device)

    def evaluate(step: int) -> Metrics:
        metrics = dev_metrics(model, text.dev, config.measure.prefix_sentences)
        tracker.alarms(judge(metrics))
        return metrics

    def look_inside(step: int) -> Metrics:
        if not config.measure.enabled:
            return {}
        for name, counts in gradient_histograms(model).items():
            tracker.histogram(step, name, LOWEST, HIGHEST, counts)
        metrics = probe(model, batch, leakage=True)
        tracker.alarms(judge(metrics))
        return metrics

    return Looks(
        gradients=lambda: parameter_norms(model),
        probe=look_inside,
        evaluate=evaluate,
        record=tracker.log,
        save=lambda state: _save(folder, state),
        stop_asked=lambda: asked.signal is not None,
        progress=progress.update,
    )


def probe_batch(config: Config, text: Text, device: torch.device) -> Batch:
    """The fixed batch that probes look at: the first dev sentences."""
    return collate(text.dev, range(min(config.measure.probe_sentences, len(text.dev)))).to(device)


def _score(
    config: Config, text: Text, model: Transformer, trainer: Trainer, tracker: Tracker, folder: RunFolder
) -> Metrics:
    """Score the mean of the last checkpoints, which then becomes the run's checkpoint."""
    step = trainer.progress.step
    model.load_state_dict(trainer.averaged())
    batch = probe_batch(config, text, next(model.parameters()).device)
    final = dev_metrics(model, text.dev, config.measure.prefix_sentences)
    final |= probe(model, batch, leakage=True) if config.measure.enabled else {}
    scores: Metrics = {}
    references = text.corpus.test.tgt[: config.decode.sentences]
    sources = text.test.src[: config.decode.sentences]
    pairs = zip(text.corpus.test.src, references, strict=False)
    rows: list[list[Cell]] = [[src, ref] for src, ref in itertools.islice(pairs, SAMPLES)]
    for name, lines in (
        ("source", text.corpus.test.src[: config.decode.sentences]),
        ("reference", references),
    ):
        folder.save_translations(f"test.{name}", [re.sub("[\r\n]+", " ", line) for line in lines])
    signatures: dict[str, str] = {}
    for protocol in config.decode.protocols:
        translations = text.tokenizer.decode(decode(model, sources, config.decode, protocol))
        scored = score(translations, references)
        scores |= scored.metrics(protocol)
        signatures |= {f"{protocol}/{name}": signature for name, signature in scored.signatures.items()}
        folder.save_translations(f"test.{protocol}", translations)
        rows = [[*row, translation] for row, translation in zip(rows, translations, strict=False)]
        for warning in scored.warnings:
            tracker.alarm(warning)
    tracker.alarms(judge(final | scores))
    folder.note_provenance(signatures=signatures)
    results = {f"final/{name}": value for name, value in final.items()} | scores
    tracker.log(step, results)
    columns = ["source", "reference", *(f"translation ({protocol})" for protocol in config.decode.protocols)]
    tracker.table(step, "test/translations", columns, rows)
    maps = sentence_maps(model, batch, short_sentence(batch), text.tokenizer.pieces)
    save_attention(folder.path, step, maps)
    if config.measure.images:
        for block, heads in itertools.groupby(maps, key=lambda one: one.name.rpartition("/")[0]):
            items = [(one.name, one.weights.clip(0, 1)) for one in heads]
            tracker.images(step, f"test/attention/{block}", items[:MAX_IMAGES])
    _save(folder, {"model": model.state_dict(), "step": step, "final": True})
    return results


def _save(folder: RunFolder, state: dict[str, Any]) -> None:
    """A checkpoint stands for all that was logged before it, so that has to be on the disk first."""
    folder.sync()
    checkpoint.save(folder.checkpoint, state)

"""Whole run folders without training: written as a run writes them, by RunFolder and Tracker, numbers of our choosing."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from attnlab.config import Config, Tracking
from attnlab.data.corpus import Corpus, load_corpus
from attnlab.measure.bleu import score
from attnlab.measure.maps import AttentionMap
from attnlab.study.grid import PlannedRun, Study, expand
from attnlab.tracking.attention import save_attention
from attnlab.tracking.folder import RunFolder, folder_of
from attnlab.tracking.status import State
from attnlab.tracking.tracker import Tracker

SITES = ("encoder", "decoder", "cross")
SRC = ["▁the", "▁old", "▁house", "</s>"]
TGT = ["<s>", "▁das", "▁alte", "▁Haus"]
LEAKING = ("mask_after_softmax", "zero_fill", "no_mask", "inverted_mask")


@dataclass(frozen=True)
class Lab:
    """A study with folders below `output`, and the overrides that name it."""

    study: Study
    overrides: list[str]
    output: Path

    @property
    def runs(self) -> list[PlannedRun]:
        return self.study.runs


@functools.cache
def _expanded(arms: tuple[str, ...], sentences: int) -> Study:
    return expand(_overrides(Path("nowhere"), arms, sentences))


def _overrides(output: Path, arms: Sequence[str], sentences: int) -> list[str]:
    return [
        "experiment=demo", "data.train_pairs=20", "data.dev_pairs=5", f"data.test_pairs={sentences}",
        "data.tokenizer.vocab_size=300", "decode.protocols=[prefix]", "track=none", f"output={output}",
        f"attention={','.join(arms)}",
    ]  # fmt: skip


def lab(output: Path, arms: Sequence[str], seeds: Sequence[int], sentences: int = 12) -> Lab:
    """Every arm with every seed, nothing written yet."""
    study = _expanded(tuple(arms), sentences)
    cells = [
        PlannedRun(
            (planned.overrides[0], f"seed={seed}"), replace(planned.config, output=str(output), seed=seed)
        )
        for planned in study.runs
        for seed in seeds
    ]
    overrides = [*_overrides(output, arms, sentences), f"seed={','.join(map(str, seeds))}"]
    return Lab(replace(study, cells=list(cells)), overrides, output)


def corpus_of(config: Config) -> Corpus:
    return _corpus(config.data.test_pairs or 0, repr(config.data), config)


_corpora: dict[str, Corpus] = {}


def _corpus(sentences: int, key: str, config: Config) -> Corpus:
    if key not in _corpora:
        _corpora[key] = load_corpus(config.data)
    return _corpora[key]


def losses(config: Config) -> tuple[float, float]:
    """Teacher-forced and prefix loss at the end: a leaking arm has the better first one and the worse second."""
    wiggle = 0.013 * ((7 * config.seed + len(config.attention.name)) % 5) + 0.01 * (
        sum(map(ord, config.attention.name)) % 13
    )
    return (0.2 + wiggle, 8.0 + wiggle) if config.attention.name in LEAKING else (2.0 + wiggle, 2.0 + wiggle)


def write(
    config: Config, *, translations: list[str] | None = None, sources: list[str] | None = None, steps: int = 200,
    every: int = 10, looks: int = 5, layers: int = 2, heads: int = 2, state: State = State.done, maps: bool = True,
    alarms: Sequence[str] = (),
) -> RunFolder:  # fmt: skip
    """One run. Its BLEU is that of its translations, by default the references with every third one broken."""
    folder = folder_of(config)
    corpus = corpus_of(config)
    with folder.locked():
        folder.create()
        folder.save_config(config)
        folder.save_provenance(_provenance(config, corpus))
        tracker = Tracker(
            folder, replace(config, track=replace(config.track, name=Tracking.none)), run_id=folder.path.name,
            group=config.study.name, job_type=config.attention.name, resume_step=0,
        )  # fmt: skip
        with tracker:
            for step in range(0, steps + 1, every):
                records = training(config, step, steps) if step else {}
                if step % max(every, steps // looks) == 0:
                    records |= looked(config, step, steps, layers, heads)
                tracker.log(step, records)
            for alarm in alarms:
                tracker.alarm(alarm)
            if state is not State.done:
                tracker.finish(
                    state,
                    error="a loss that is not finite" if state is State.diverged else "Traceback\nno luck",
                )
                return folder
            results = _scored(config, folder, corpus, translations, sources)
            tracker.log(steps, results)
            if maps:
                save_attention(folder.path, steps, attention(config, layers, heads))
            tracker.finish(state, results=results)
    return folder


def training(config: Config, step: int, steps: int) -> dict[str, float]:
    """What is logged every few steps."""
    noise = 0.03 * math.sin(step * (1 + config.seed))
    norms = {
        f"train/grad/{matrix}/{site}{layer}": 0.1 + abs(noise)
        for matrix in ("w_q", "w_k", "w_v", "w_o") for site in SITES for layer in ("", "/layer1", "/layer2")
    }  # fmt: skip
    loss = _curve(losses(config)[0], step, steps) + noise
    return {
        "train/loss/nll": loss,
        "train/loss/ppl": math.exp(loss),
        "train/grad/norm": 1 + noise,
        "train/lr": 1e-3,
    } | norms


def looked(config: Config, step: int, steps: int, layers: int, heads: int) -> dict[str, float]:
    """What a probe and an evaluation see."""
    teacher, prefix = (_curve(loss, step, steps) for loss in losses(config))
    found = {
        "dev/nll": teacher, "dev/ppl": math.exp(teacher), "dev/accuracy": math.exp(-teacher), "dev/prefix_nll": prefix,
        "dev/leak_gap": prefix - teacher,
    }  # fmt: skip
    shrinking = math.exp(-step / steps)
    for site in SITES:
        for name in ("entropy", "entropy_normalized", "max_weight", "row_sum", "logit_std", "jacobian_trace"):
            found[f"probe/{name}/{site}"] = 0.9 * shrinking
        for of in ("scores", "q", "k"):
            for quantile, factor in (("p10", 0.1), ("median", 1), ("p90", 10), ("rms", 6), ("mean", 3)):
                found[f"probe/grad_{of}_{quantile}/{site}"] = 1e-5 * factor * shrinking
        for layer in range(1, layers + 1):
            for head in range(1, heads + 1):
                for name in ("entropy_normalized", "max_weight", "row_sum", "logit_std"):
                    found[f"probe/{name}/{site}/layer{layer}/head{head}"] = shrinking / head
    found["probe/future_mass/decoder"] = 0.4 if config.attention.name in LEAKING else 0.0
    return found


def attention(config: Config, layers: int, heads: int) -> list[AttentionMap]:
    """Maps whose weights differ by arm, site, layer and head; in the decoder on the past alone."""
    found = []
    for site in SITES:
        queries, keys = (SRC if site == "encoder" else TGT), (TGT if site == "decoder" else SRC)
        for layer in range(1, layers + 1):
            for head in range(1, heads + 1):
                scores = np.arange(len(queries) * len(keys)).reshape(len(queries), len(keys)) % (
                    layer + head + 1
                )
                weights = np.exp(scores / (1 + len(config.attention.name) % 3))
                if site == "decoder":
                    weights = np.tril(weights)
                weights /= weights.sum(axis=1, keepdims=True)
                found.append(AttentionMap(f"{site}/layer{layer}/head{head}", weights, queries, keys))
    return found


def _curve(end: float, step: int, steps: int) -> float:
    return end + (6.0 - end) * math.exp(-5 * step / steps)


def _scored(
    config: Config,
    folder: RunFolder,
    corpus: Corpus,
    translations: list[str] | None,
    sources: list[str] | None,
) -> dict[str, float]:
    references = corpus.test.tgt
    given = translations or ["" if i % 3 == 0 else line for i, line in enumerate(references)]
    scored = score(given, references)
    folder.save_translations("test.prefix", given)
    folder.save_translations("test.source", sources or corpus.test.src)
    folder.save_translations("test.reference", references)
    folder.note_provenance(signatures={f"prefix/{name}": text for name, text in scored.signatures.items()})
    teacher, prefix = losses(config)
    finals = {
        "final/dev/nll": teacher, "final/dev/prefix_nll": prefix, "final/dev/leak_gap": prefix - teacher,
        "final/dev/accuracy": math.exp(-teacher), "final/probe/entropy/decoder": 0.5,
    }  # fmt: skip
    return finals | scored.metrics(config.decode.protocols[0])


def _provenance(config: Config, corpus: Corpus) -> dict[str, object]:
    return {
        "started": "2026-01-01T00:00:00+00:00", "command": "attnlab run", "git": {"commit": "a" * 40, "dirty": False},
        "versions": {"python": "3.11", "attnlab": "0.1.0", "torch": "2.13.0"}, "platform": "p", "device": "a processor",
        "threads": 1, "seed": config.seed, "data_digest": corpus.digest, "tokenizer_digest": "t" * 64,
        "data_report": {}, "signatures": {}, "code": "c" * 64,
    }  # fmt: skip

"""Run folders of a study without any training: numbers of our choosing, written as a run writes them."""

import functools
from dataclasses import dataclass, replace
from pathlib import Path

from attnlab.config import DataConfig
from attnlab.data.corpus import Corpus, load_corpus
from attnlab.measure.bleu import score
from attnlab.study.grid import PlannedRun, Study, expand
from attnlab.tracking.folder import folder_of
from attnlab.tracking.status import State, Status

DATA = ["data.train_pairs=20", "data.dev_pairs=5", "data.test_pairs=30", "data.tokenizer.vocab_size=300"]
_corpora: dict[str, Corpus] = {}


def overrides(output: Path, *more: str) -> list[str]:
    return [
        "experiment=demo",
        *DATA,
        f"output={output}",
        "decode.protocols=[prefix]",
        "attention=correct,zero_fill",
        *more,
    ]


def corpus_of(data: DataConfig) -> Corpus:
    return _corpora.setdefault(repr(data), load_corpus(data))


@dataclass(frozen=True)
class Made:
    """A study whose runs lie below `output`, and the overrides that name it."""

    study: Study
    items: list[str]

    @property
    def runs(self) -> dict[tuple[str, int], PlannedRun]:
        return {(run.config.attention.name, run.config.seed): run for run in self.study.runs}


@functools.cache
def _expanded(more: tuple[str, ...]) -> Study:
    return expand(overrides(Path("nowhere"), *more))


def study_at(output: Path, *more: str) -> Made:
    """As `expand`, which composes each cell anew and takes most of a second, but once for all tests."""
    study = _expanded(more)
    cells = [
        replace(cell, config=replace(cell.config, output=str(output)))
        if isinstance(cell, PlannedRun)
        else cell
        for cell in study.cells
    ]
    return Made(replace(study, cells=cells), overrides(output, *more))


def broken(references: list[str], every: int) -> list[str]:
    """Every n-th translation loses its last word, every 2n-th is empty."""
    return [
        "" if i % (2 * every) == 0 else " ".join(line.split()[:-1]) if i % every == 0 else line
        for i, line in enumerate(references)
    ]


def write_run(
    planned: PlannedRun, results: dict[str, float], *, translations: list[str] | None = None,
    state: State = State.done, error: str | None = None, step: int = 1000, alarms: list[str] | None = None,
    **provenance: object,
) -> None:  # fmt: skip
    """A finished run. Its BLEU and shares are those of the translations, which are the references unless given."""
    config, folder = planned.config, folder_of(planned.config)
    corpus = corpus_of(config.data)
    folder.create()
    folder.save_config(config)
    signatures = {}
    if state is State.done:
        references = corpus.test.tgt
        given = references if translations is None else translations
        scored = score(given, references)
        folder.save_translations("test.prefix", given)
        results = results | scored.metrics(config.decode.protocols[0])
        signatures = {f"prefix/{name}": text for name, text in scored.signatures.items()}
    folder.save_provenance({
        "started": "2026-01-01T00:00:00+00:00", "command": "attnlab run", "git": {"commit": "a" * 40, "dirty": False},
        "versions": {"python": "3.11", "attnlab": "0.1.0", "torch": "2.13.0"}, "platform": "p", "device": "a processor",
        "threads": 1, "seed": config.seed, "data_digest": corpus.digest, "tokenizer_digest": "t" * 64,
        "data_report": {}, "signatures": signatures,
    } | provenance)  # fmt: skip
    folder.save_status(Status(state, step=step, error=error, alarms=alarms or [], results=results))

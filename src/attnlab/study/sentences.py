"""BLEU sentence by sentence, for the bootstraps: from the translations and references that lie in the run folders.

A folder that has no references of its own (an older one) needs the text that it was trained on.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from attnlab.config import DataConfig, Protocol
from attnlab.errors import UserError
from attnlab.identity import plain
from attnlab.study.cells import Cell, SeedRun
from attnlab.study.statistics import bleu_of, sentence_statistics
from attnlab.tracking.status import State

AGREES = 1e-6  # BLEU of the stored translations against that in the run's status
REFERENCES = "test.reference"  # the name of their file among a run's translations


def bleu_statistics(cells: Sequence[Cell], protocol: Protocol) -> tuple[dict[str, np.ndarray], list[str]]:
    """Statistics [sentences, 10] of each finished run, by run id; and why there are none, where there are none.

    Raises UserError for translations that do not give the BLEU of the run's status.
    """
    texts: dict[str, tuple[str, list[str]] | str] = {}
    found: dict[str, np.ndarray] = {}
    reasons = []
    for run in (run for cell in cells for run in cell.with_state(State.done)):
        if f"test/{protocol}/bleu" not in run.status.results:
            continue
        references = _own_references(run) or _references(run, texts)
        if isinstance(references, str):
            reasons.append(references)
        else:
            found[run.run_id] = _checked(run, protocol, references[: run.config.decode.sentences])
    return found, sorted(set(reasons))


def corpus_bleu(statistics: np.ndarray) -> float:
    """BLEU, 0 to 100, of statistics [sentences, 10]."""
    return float(bleu_of(statistics.sum(axis=0)))


def _own_references(run: SeedRun) -> list[str] | None:
    try:
        return run.folder.read_translations(REFERENCES)
    except FileNotFoundError:
        return None


def _references(run: SeedRun, texts: dict[str, tuple[str, list[str]] | str]) -> list[str] | str:
    """Those of the text, if it is the run's, or why there are none; `texts` holds what was read before."""
    key = json.dumps(plain(run.config.data), sort_keys=True)
    if key not in texts:
        texts[key] = _test_set(run.config.data)
    text = texts[key]
    if isinstance(text, str):
        return f"no sentence-level bootstrap, the references cannot be read: {text}"
    digest, references = text
    if digest != run.provenance["data_digest"]:
        return (
            f"no sentence-level bootstrap of runs on the text {run.provenance['data_digest'][:16]}: "
            f"the text here is {digest[:16]}"
        )
    return references


def _test_set(data: DataConfig) -> tuple[str, list[str]] | str:
    """The text's hash and its test references, or why it cannot be read."""
    from attnlab.data.corpus import load_corpus

    try:
        corpus = load_corpus(data)
    except UserError as error:
        return str(error)
    return corpus.digest, corpus.test.tgt


def _checked(run: SeedRun, protocol: Protocol, references: Sequence[str]) -> np.ndarray:
    """The statistics of a run's translations, which must give the BLEU that its status has."""
    try:
        translations = run.folder.read_translations(f"test.{protocol}")
        statistics = sentence_statistics(translations, references)
    except (OSError, ValueError) as error:
        raise UserError(f"run {run.run_id}: got translations that cannot be scored ({error})") from None
    scored, stored = corpus_bleu(statistics), run.status.results[f"test/{protocol}/bleu"]
    if not abs(scored - stored) <= AGREES:
        raise UserError(
            f"run {run.run_id}: got translations with {scored:.4f} BLEU, allowed: the {stored:.4f} of its status.json"
        )
    return statistics

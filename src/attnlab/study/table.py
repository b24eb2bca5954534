"""A study's table: its cells by the numbers that tell learning from a leak, compared with the control, and its claims.

The numbers come from run folders alone.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from attnlab.config import Protocol
from attnlab.errors import UserError
from attnlab.study.cells import Cell, control_of, read_cells, run_command
from attnlab.study.claims import Claim, Judged
from attnlab.study.grid import Study
from attnlab.study.origin import Origin, portable, trace
from attnlab.study.quantities import EMPTY, exact_share
from attnlab.study.sentences import bleu_statistics, corpus_bleu
from attnlab.study.statistics import (
    Estimate,
    Interval,
    Resampled,
    difference,
    estimate,
    holm,
    seed_and_sentence_bootstrap,
    sentence_bootstrap,
    t_test,
)  # fmt: skip
from attnlab.study.verdicts import judge
from attnlab.tracking.files import write_atomic
from attnlab.tracking.status import State


@dataclass(frozen=True)
class Column:
    """A metric that is printed. compared: with the control, beside it, and in the family of Holm's correction."""

    metric: str
    title: str
    digits: int | None  # behind the point; None: three that count, for a metric of any size
    compared: bool


@dataclass(frozen=True)
class Difference:
    """Arm - control over shared seeds. p: of the paired t-test; p_holm: corrected over all that the table prints."""

    estimate: Estimate
    p: float
    p_holm: float


@dataclass(frozen=True)
class SeedBleu:
    """One seed's BLEU beside its control's, over resampled sentences."""

    seed: int
    bleu: float
    control: float
    resampled: Resampled


@dataclass(frozen=True)
class Row:
    """A cell with its numbers by metric.

    exact: binomial intervals of shares of the test set; both: BLEU's difference over resampled seeds and sentences.
    """

    cell: Cell
    control: Cell | None
    estimates: Mapping[str, Estimate]
    differences: Mapping[str, Difference]
    exact: Mapping[str, Interval]
    by_seed: Sequence[SeedBleu]
    both: Resampled | None


@dataclass(frozen=True)
class StudyTable:
    """Everything that Markdown, CSV and LaTeX show."""

    study: str
    question: str
    control: str | None
    columns: Sequence[Column]
    bleu: str  # the metric that sentences were resampled for
    rows: Sequence[Row]
    claims: Sequence[Judged]
    missing: str | None
    notes: Sequence[str]
    origin: Origin


def build(
    study: Study, overrides: Sequence[str], claims: Sequence[Claim], *, allow_mixed: bool = False,
    partial: bool = False, sentences: bool = True,
) -> StudyTable:  # fmt: skip
    """Read the study's run folders. overrides: what the study was expanded from, for the commands that are named.

    partial: make a table of the runs that are there. sentences: resample them for BLEU, which takes most of the time
    and is wanted for no other number; a study that prints no BLEU has none. Raises UserError for runs that are missing
    otherwise, for runs that may not stand in one table, for columns that no run has, and without scipy.
    """
    cells = read_cells(study, overrides, partial=partial)
    origin = trace(cells, overrides, allow_mixed)
    columns = columns_for(study.base.decode.protocols, study.base.study.columns)
    _check(columns, cells)
    primary = study.base.decode.protocols[0]
    resampled = f"test/{primary}/bleu"
    sentences = sentences and any(column.metric == resampled for column in columns)
    bleu, reasons = bleu_statistics(cells, primary) if sentences else ({}, [])
    rows = _corrected([_row(cell, cells, study.control, columns, bleu) for cell in cells], columns)
    by_label = {cell.label: cell for cell in cells}
    judged = [judge(claim, by_label) for claim in claims]
    notes = [*reasons, *_retry(cells, overrides), *(f"MIXED: {text}" for text in origin.mixed)]
    return StudyTable(
        str(study.name), study.base.study.question, study.control, columns, resampled, rows, judged,
        _missing(cells, overrides), notes, origin,
    )  # fmt: skip


def write(table: StudyTable, folder: Path) -> list[Path]:
    """table.md, table.csv and table.tex in `folder`; the same runs give the same bytes."""
    from attnlab.study import render

    folder.mkdir(parents=True, exist_ok=True)
    texts = {"md": render.markdown(table), "csv": render.csv(table), "tex": render.latex(table)}
    for ending, text in texts.items():
        write_atomic(folder / f"table.{ending}", text)
    return [folder / f"table.{ending}" for ending in texts]


def columns_for(protocols: Sequence[Protocol], chosen: Sequence[str] = ()) -> list[Column]:
    """Those that a study chooses by `study.columns`, else loss and BLEU.

    Of these the teacher-forced loss never stands without the loss from the prefix, nor BLEU without the lengths.
    """
    if chosen:
        return [Column(metric, metric.removeprefix("final/"), None, True) for metric in chosen]
    first = protocols[0]
    return [
        Column("final/dev/nll", "dev nll", 3, True),
        Column("final/dev/prefix_nll", "prefix nll", 3, True),
        *(Column(f"test/{protocol}/bleu", f"BLEU ({protocol})", 2, True) for protocol in protocols),
        Column(f"test/{first}/length_ratio", "length ratio", 3, False),
        Column(f"test/{first}/empty", "empty", 3, False),
    ]


def _check(columns: Sequence[Column], cells: Sequence[Cell]) -> None:
    """A column of dashes would look like a result."""
    known = {name for cell in cells for run in cell.with_state(State.done) for name in run.status.results}
    names = [column.metric for column in columns]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UserError(f"study.columns: got {twice[0]} twice, allowed: each result once")
    for column in columns:
        if known and column.metric not in known:
            close = difflib.get_close_matches(column.metric, known, 3)
            hint = f", such as {', '.join(close)}" if close else ""
            raise UserError(f"study.columns: got {column.metric}, allowed are results of the runs{hint}")


def _row(
    cell: Cell, cells: Sequence[Cell], control_name: str | None, columns: Sequence[Column],
    bleu: Mapping[str, np.ndarray],
) -> Row:  # fmt: skip
    control = control_of(cell, cells, control_name)
    printed = {column.metric for column in columns}
    every = {name for run in cell.runs for name in run.status.results}
    names = sorted(name for name in every if "/layer" not in name or name in printed)
    # An average over fewer seeds than are done would hide that some lack the metric.
    done = len(cell.with_state(State.done))
    values = {name: found for name in names if len(found := cell.values(name)) == done > 0}
    differences = {}
    if control is not None:
        for name, found in values.items():
            against = control.values(name)
            if (one := difference(found, against)) is not None:
                differences[name] = Difference(one, t_test(found, against), math.nan)
    by_seed, both = _bootstraps(cell, control, bleu) if control is not None else ([], None)
    return Row(
        cell, control, {name: _estimate(name, list(found.values())) for name, found in values.items()}, differences,
        {name: share for name in values if name.endswith(EMPTY) and (share := exact_share(cell, name))}, by_seed, both,
    )  # fmt: skip


def _estimate(metric: str, values: Sequence[float]) -> Estimate:
    """Over seeds; the interval of a share ends where a share does."""
    one = estimate(values)
    if one.interval is None or not metric.endswith(EMPTY):
        return one
    return replace(one, interval=Interval(max(0.0, one.interval.low), min(1.0, one.interval.high)))


def _corrected(rows: Sequence[Row], columns: Sequence[Column]) -> list[Row]:
    """The rows with Holm's correction over the differences that the table prints."""
    printed = [c.metric for c in columns if c.compared]
    places = [(i, metric) for i, row in enumerate(rows) for metric in printed if metric in row.differences]
    corrected = holm([rows[i].differences[metric].p for i, metric in places])
    found = [dict(row.differences) for row in rows]
    for (i, metric), p in zip(places, corrected, strict=True):
        found[i][metric] = replace(found[i][metric], p_holm=p)
    return [replace(row, differences=one) for row, one in zip(rows, found, strict=True)]


def _bootstraps(
    cell: Cell, control: Cell, bleu: Mapping[str, np.ndarray]
) -> tuple[list[SeedBleu], Resampled | None]:
    theirs = {run.seed: run for run in control.runs}
    by_seed, pairs = [], []
    for run in cell.runs:
        other = theirs.get(run.seed)
        if other is None or run.run_id not in bleu or other.run_id not in bleu:
            continue
        if (
            run.provenance["data_digest"] != other.provenance["data_digest"]
        ):  # a study may change the text itself
            continue
        arm, against = bleu[run.run_id], bleu[other.run_id]
        pairs.append((arm, against))
        by_seed.append(
            SeedBleu(run.seed, corpus_bleu(arm), corpus_bleu(against), sentence_bootstrap(arm, against))
        )
    return by_seed, seed_and_sentence_bootstrap(pairs) if pairs else None


def _missing(cells: Sequence[Cell], overrides: Sequence[str]) -> str | None:
    """What stands on top of a table that lacks runs."""
    missing = sum(len(cell.missing) for cell in cells)
    if not missing:
        return None
    planned = missing + sum(len(cell.runs) for cell in cells)
    return (
        f"PARTIAL: {missing} of {planned} runs are missing; `{run_command(portable(overrides))}` makes them."
    )


def _retry(cells: Sequence[Cell], overrides: Sequence[str]) -> list[str]:
    failed = sum(len(cell.with_state(State.failed)) for cell in cells)
    if not failed:
        return []
    return [
        f"{failed} runs failed and count as no result; `{run_command([*portable(overrides), 'retry=true'])}` tries again"
    ]

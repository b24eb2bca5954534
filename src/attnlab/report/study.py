"""What a study's page shows: the numbers of `attnlab table`, and from the run folders all that lies behind them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from attnlab.config import Config
from attnlab.identity import plain
from attnlab.report.curves import Curves, add_curves, wanted
from attnlab.report.heads import HeadEntropies, HeadLines, head_entropies, head_lines
from attnlab.report.maps import CellMaps, cell_maps
from attnlab.report.texts import Translations, translations_of
from attnlab.report.values import Number, Value, finite, flat, number, text
from attnlab.study.cells import SeedRun
from attnlab.study.claims import Claim, Judged
from attnlab.study.grid import Study
from attnlab.study.render import VERDICTS, legend
from attnlab.study.table import Column, Row, build
from attnlab.tracking.status import State

CURVES = (
    wanted(120, "train/loss/nll", "train/grad/norm"),
    wanted(40, "train/grad/w_[qkvo]/<site>"),
    wanted(60, "dev/(nll|prefix_nll|accuracy|leak_gap)"),
    wanted(
        40,
        "probe/(entropy|entropy_normalized|max_weight|row_sum|logit_std|future_mass)/<site>",
        "probe/grad_(scores|q|k)_(p10|median|p90|rms)/<site>",
    ),
)
AXES = 7  # factors in the parallel coordinates: more cannot be told apart


@dataclass(frozen=True)
class ShownCell:
    """One row of the table, less its numbers."""

    label: str
    arm: str
    settings: tuple[str, ...]
    control: str | None
    done: int
    total: int
    state: str
    alarms: list[str]


@dataclass(frozen=True)
class ShownColumn:
    metric: str
    title: str
    compared: bool


@dataclass(frozen=True)
class Entry:
    """A cell's number in one column, its difference to the control with Holm's p, and, of a share, the exact interval."""

    number: Number | None
    exact: str | None
    difference: Number | None
    p: str | None


@dataclass(frozen=True)
class ShownRun:
    id: str
    cell: int
    seed: int
    state: str
    step: int
    error: str
    alarms: list[str]
    values: dict[str, float | None]
    factors: dict[str, Value]


@dataclass(frozen=True)
class ShownClaim:
    id: str
    statement: str
    measured: str
    predicted: str
    region: tuple[float | None, float | None]  # None: open
    verdict: str
    reason: str
    source: str
    check: bool  # holds by construction: a control on the harness, counted apart
    cells: tuple[str, ...]
    numbers: list[Number]


@dataclass(frozen=True)
class StudyPage:
    """The whole page. Lists of one entry a cell or a run are in the order of `cells` and `runs`."""

    kind: str
    title: str
    question: str
    control: str | None
    cells: list[ShownCell]
    runs: list[ShownRun]
    columns: list[ShownColumn]
    rows: list[list[Entry]]
    claims: list[ShownClaim]
    legend: str
    verdicts: str
    notes: list[str]
    axes: list[str]
    left_out_axes: list[str]
    curves: Curves
    heads: HeadEntropies
    maps: CellMaps
    translations: Translations
    provenance: list[tuple[str, str]]


def study_page(
    study: Study, overrides: Sequence[str], claims: Sequence[Claim], *, allow_mixed: bool = False, partial: bool = False
) -> StudyPage:  # fmt: skip
    """Gather it all; raises UserError as `attnlab table` does."""
    table = build(study, overrides, claims, allow_mixed=allow_mixed, partial=partial, sentences=False)
    cells = [row.cell for row in table.rows]
    runs = [(place, run) for place, cell in enumerate(cells) for run in cell.runs]
    axes = _axes([run.config for _, run in runs])
    curves = Curves()
    heads: dict[int, list[HeadLines]] = {}
    for index, (place, run) in enumerate(runs):
        records = run.folder.read_metrics()
        add_curves(curves, index, records, CURVES)
        if run.status.state is State.done and (lines := head_lines(records)):
            heads.setdefault(place, []).append(lines)
    return StudyPage(
        kind="study",
        title=table.study,
        question=table.question,
        control=table.control,
        cells=[_cell(row) for row in table.rows],
        runs=[_run(place, run, table.columns, axes[:AXES]) for place, run in runs],
        columns=[ShownColumn(c.metric, c.title, c.compared) for c in table.columns],
        rows=[[_entry(row, column) for column in table.columns] for row in table.rows],
        claims=[_claim(one) for one in table.claims],
        legend=legend(table.columns),
        verdicts=VERDICTS,
        notes=[*([table.missing] if table.missing else []), *table.notes],
        axes=axes[:AXES],
        left_out_axes=axes[AXES:],
        curves=curves,
        heads=head_entropies(heads),
        maps=cell_maps(cells),
        translations=translations_of([run for _, run in runs], study.base.decode.protocols),
        provenance=[("study", table.study), *table.origin.lines],
    )


def _cell(row: Row) -> ShownCell:
    cell = row.cell
    ended = [
        f"{len(found)} {state}"
        for state in (State.diverged, State.failed)
        if (found := cell.with_state(state))
    ]
    ended += [f"{len(cell.missing)} missing"] if cell.missing else []
    state = f"invalid: {cell.problem}" if cell.problem is not None else ", ".join(ended)
    alarms = [f"seed {run.seed}: {alarm}" for run in cell.runs for alarm in run.status.alarms]
    return ShownCell(
        cell.label, cell.arm, cell.settings, row.control.label if row.control else None,
        len(cell.with_state(State.done)), len(cell.runs) + len(cell.missing), state, alarms,
    )  # fmt: skip


def _run(place: int, run: SeedRun, columns: Sequence[Column], axes: Sequence[str]) -> ShownRun:
    results = run.status.results if run.status.state is State.done else {}
    metrics = [*(column.metric for column in columns), "final/dev/accuracy", "final/dev/leak_gap"]
    known = flat(plain(run.config))
    lines = (run.status.error or "").strip().splitlines()  # a traceback ends in what went wrong
    return ShownRun(
        run.run_id, place, run.seed, run.status.state, run.status.step, lines[-1] if lines else "", run.status.alarms,
        {name: finite(results[name]) for name in metrics if name in results}, {axis: known[axis] for axis in axes},
    )  # fmt: skip


def _axes(configs: Sequence[Config]) -> list[str]:
    """The keys in which the runs differ, less what cannot change a result and what only names a group."""
    unseen = (
        "study.",
        "output",
        "launch.",
        "track.",
        "measure.",
        "threads",
        "device",
        "force",
        "retry",
        "fail_fast",
    )
    known = [flat(plain(config)) for config in configs]
    return [
        key
        for key in (known[0] if known else {})
        if not key.startswith(unseen) and key != "seed" and not key.endswith(".name")
        and len({json.dumps(one[key]) for one in known}) > 1
    ]  # fmt: skip


def _entry(row: Row, column: Column) -> Entry:
    one, compared = row.estimates.get(column.metric), row.differences.get(column.metric)
    exact = None
    if one is not None and (share := row.exact.get(column.metric)) is not None:
        exact = f"[{text(share.low, column.digits)}, {text(share.high, column.digits)}]"
    if not column.compared or compared is None:
        return Entry(number(one, column.digits) if one else None, exact, None, None)
    p = None if math.isnan(compared.p_holm) else f"{compared.p_holm:.2g}"
    return Entry(
        number(one, column.digits) if one else None, exact, number(compared.estimate, column.digits, "+"), p
    )


def _claim(one: Judged) -> ShownClaim:
    claim = one.claim
    bounds = " to ".join(f"{bound:g}" for bound in claim.bounds)
    return ShownClaim(
        claim.id, claim.statement, claim.quantity,
        f"{claim.direction} {bounds}", (finite(claim.region.low), finite(claim.region.high)), one.verdict, one.reason,
        claim.source, claim.check, one.chosen or claim.cells, [number(e, 4) for e in one.estimates],
    )  # fmt: skip

"""From run folders to cells: one arm and setting over all its seeds, with what became of each run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from attnlab.config import Config
from attnlab.errors import UserError
from attnlab.study.grid import Impossible, PlannedRun, Study
from attnlab.tracking.folder import RunFolder
from attnlab.tracking.status import State, Status

ENDS = (State.done, State.diverged, State.failed)  # every other state is a run that is still to be made
DIVERGED = "diverged"  # measured as any metric: 1 for a seed that diverged, 0 for one that is done


@dataclass(frozen=True)
class SeedRun:
    """One run that came to an end. `provenance` is that of its last session, empty where it failed before it had one."""

    seed: int
    config: Config
    folder: RunFolder
    status: Status
    provenance: dict[str, Any]

    @property
    def run_id(self) -> str:
        return self.folder.path.name


@dataclass(frozen=True)
class Cell:
    """One row of a table. `problem` says why the cell cannot exist; it then has no runs."""

    arm: str
    settings: tuple[str, ...]  # key=value, what else the grid changes
    runs: tuple[SeedRun, ...]
    problem: str | None = None
    missing: tuple[int, ...] = ()  # seeds whose run has not come to an end

    @property
    def label(self) -> str:
        """How claims name it: the arm and its settings, as in `no_scale model.d_k=64`."""
        return " ".join((self.arm, *self.settings))

    def with_state(self, state: State) -> list[SeedRun]:
        return [run for run in self.runs if run.status.state is state]

    def values(self, metric: str) -> dict[int, float]:
        """By seed, of the runs that are done and have the metric: a run that diverged has no final numbers."""
        if metric == DIVERGED:
            ended = self.with_state(State.done) + self.with_state(State.diverged)
            return {run.seed: float(run.status.state is State.diverged) for run in ended}
        done = self.with_state(State.done)
        return {run.seed: run.status.results[metric] for run in done if metric in run.status.results}


def read_cells(study: Study, overrides: Sequence[str], *, partial: bool = False) -> list[Cell]:
    """The study's cells in the grid's order, read from the run folders alone.

    overrides: what the study was asked for with. partial: cells may lack runs. Otherwise raises UserError that names
    the command where runs are missing; in either case where there is none at all.
    """
    runs: dict[tuple[str, tuple[str, ...]], list[SeedRun]] = {}
    problems: dict[tuple[str, tuple[str, ...]], str] = {}
    missing: list[PlannedRun] = []
    for planned in study.cells:
        if isinstance(planned, Impossible):
            key = _key(study.base.attention.name, planned.overrides)
            problems[key] = planned.problem
            runs.setdefault(key, [])
            continue
        kept = runs.setdefault(_key(planned.config.attention.name, planned.overrides), [])
        folder = planned.folder
        status = folder.read_status()
        if status is None or status.state not in ENDS:
            missing.append(planned)
            continue
        provenance = folder.read_provenance()
        if provenance is None and status.state is not State.failed:
            raise UserError(
                f"run {folder.path.name}: got a folder without provenance.json, allowed: a whole run folder"
            )
        kept.append(SeedRun(planned.config.seed, planned.config, folder, status, provenance or {}))
    if missing and (not partial or not any(runs.values())):
        first = missing[0]
        raise UserError(
            f"study {study.name}: got {len(study.runs) - len(missing)} of its {len(study.runs)} runs in "
            f"{study.base.output} (the first that is missing: {' '.join(first.overrides)}), allowed: "
            f"{'some' if partial else 'all'} of them, made by `{run_command(overrides)}`{'' if partial else ', or --partial'}"
        )
    seeds: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for planned in missing:
        key = _key(planned.config.attention.name, planned.overrides)
        seeds.setdefault(key, []).append(planned.config.seed)
    return [
        Cell(
            *key,
            tuple(sorted(found, key=lambda run: run.seed)),
            problems.get(key),
            tuple(sorted(seeds.get(key, ()))),
        )
        for key, found in runs.items()
    ]


def labels(study: Study) -> set[str]:
    """How claims name the cells of a study, as `Cell.label` does."""
    keys = [_key(study.base.attention.name, cell.overrides) for cell in study.cells]
    return {" ".join((arm, *settings)) for arm, settings in keys}


def run_command(overrides: Sequence[str]) -> str:
    """The command that makes a study's runs."""
    return f"attnlab run {shlex.join(overrides)}"


def control_of(cell: Cell, cells: Sequence[Cell], control: str | None) -> Cell | None:
    """The cell that this one is compared with; None for the control itself, and where there is none.

    control: an arm, or settings such as `model.heads=4`. Among the cells it is the one with the control's arm or
    settings and all else equal. Without a mistake there is no place for one, so a control that the grid has at several
    places is one run, and `attention.where` is left out of the comparison where nothing else fits. Where the grid
    still has no such cell (a listed one stands alone), it is the plain control.
    """
    if control is None or cell.problem is not None:
        return None
    arm, items = _key(cell.arm, control.split()) if "=" in control else (control, ())
    plain = _pairs(items)
    changed = _pairs(cell.settings) | plain
    possible = [other for other in cells if other.arm == arm and other.problem is None]
    for wanted, placed in ((changed, True), (changed, False), (plain, True)):
        for other in possible:
            if _less_places(_pairs(other.settings), placed) == _less_places(wanted, placed):
                return None if other is cell else other
    return None


def _pairs(settings: Sequence[str]) -> dict[str, str]:
    return dict(item.split("=", 1) for item in settings)


def _less_places(settings: dict[str, str], keep: bool) -> dict[str, str]:
    return {key: value for key, value in settings.items() if keep or not key.startswith("attention.where.")}


def _key(default_arm: str, overrides: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Arm and settings of a cell; the seed is no part of it."""
    arm, settings = default_arm, []
    for item in overrides:
        key, _, value = item.partition("=")
        match key:
            case "attention":
                arm = value
            case "seed":
                pass
            case _:
                settings.append(item)
    return arm, tuple(settings)

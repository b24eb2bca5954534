"""A study's grid: every combination of its axes and every listed cell, as checked configs."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.compose import compose, typed
from attnlab.config import Config
from attnlab.errors import BrokenRule, UserError
from attnlab.study.variants import Variants
from attnlab.tracking.folder import RunFolder, folder_of


@dataclass(frozen=True)
class PlannedRun:
    """One cell and seed of a study."""

    overrides: tuple[str, ...]  # of the grid alone
    config: Config

    @functools.cached_property
    def folder(self) -> RunFolder:
        """Where it lies, whether it exists or not; hashes the config once for all who ask."""
        return folder_of(self.config)

    @property
    def run_id(self) -> str:
        return self.folder.path.name


@dataclass(frozen=True)
class Impossible:
    """A cell whose settings break a rule together; `problem` says which. It stays in the table."""

    overrides: tuple[str, ...]
    problem: str


@dataclass(frozen=True)
class Study:
    """A study and its runs in the grid's order, each run id once.

    fixed: the overrides that all cells share; with those of a cell they are a run's whole command line.
    duplicates: cells that were dropped because they are the same run as an earlier one.
    """

    name: str
    control: str | None
    base: Config
    cells: list[PlannedRun | Impossible]
    fixed: tuple[str, ...]
    duplicates: int

    def tables(self, partial: bool) -> Path:
        """The folder of its tables: beside its README for the study as it is registered and, apart, on another text.

        What else it was run with, or a part of its runs, must not take the place of those: below `output`.
        """
        beside = Path("experiments") / self.name
        own = expand([item for item in self.fixed if item.startswith("experiment=")])
        if not partial and self.base.data.name != own.base.data.name:
            return beside / f"results-{self.base.data.name}"
        if not partial and {run.run_id for run in self.runs} == {run.run_id for run in own.runs}:
            return beside / "results"
        return Path(self.base.output) / "tables" / self.name

    @property
    def runs(self) -> list[PlannedRun]:
        """The runs that can be run."""
        return [cell for cell in self.cells if isinstance(cell, PlannedRun)]


def expand(overrides: list[str]) -> Study:
    """The study that `experiment=<name>` among the overrides names.

    An override of a key that is an axis of the grid replaces that axis: seed=7, or seed=1,2,3 for several values.
    Every cell is checked here, before anything trains. Raises UserError for a study that does not exist, and for a name
    or a value that no cell can have, in the grid or as the control.
    """
    given = {
        key: (item, values) for item in overrides for key, values in [_values(item)]
    }  # the last one counts
    single = [item for item, values in given.values() if len(values) == 1]
    composed = compose(single)
    base = typed(composed)
    if base.study.name is None:
        raise UserError("experiment: got nothing, allowed: a study, as in experiment=demo")
    for key, values in base.study.grid.items():
        if not isinstance(values, list) or not values:
            raise UserError(f"study.grid.{key}: got {values}, allowed: a list of values")
    axes = {key: given[key][1] if key in given else values for key, values in base.study.grid.items()}
    axes |= {key: values for key, (_, values) in given.items() if len(values) > 1}
    fixed = [item for key, (item, _) in given.items() if key not in axes]
    variants = Variants(fixed, composed if fixed == single else compose(fixed))
    _check_control(variants, base.study.control)
    cells: dict[str, PlannedRun | Impossible] = {}
    listed = [*_product(axes), *_listed(base.study.cells, axes)]
    for cell in listed:
        planned = _planned(variants, cell)
        key = planned.run_id if isinstance(planned, PlannedRun) else " ".join(cell)
        cells.setdefault(key, planned)
    distinct = list(cells.values())
    return Study(
        base.study.name, base.study.control, base, distinct, tuple(fixed), len(listed) - len(distinct)
    )


def _values(item: str) -> tuple[str, list[str]]:
    """An override's key and its values: key=a,b has two; commas inside brackets or quotes are Hydra's lists."""
    key, _, value = item.partition("=")
    return key, [value] if value.startswith(("[", "{", "'", '"')) else value.split(",")


def _product(axes: dict[str, list[Any]]) -> Iterator[tuple[str, ...]]:
    if not axes:
        return
    for values in itertools.product(*axes.values()):
        yield tuple(f"{key}={_text(value)}" for key, value in zip(axes, values, strict=True))


def _listed(cells: list[Any], axes: dict[str, list[Any]]) -> Iterator[tuple[str, ...]]:
    """Single cells: each a mapping of overrides; the axes that it does not name (seeds, say) are run through."""
    for cell in cells:
        if not isinstance(cell, dict):
            raise UserError(
                f"study.cells: got {cell}, allowed: mappings of overrides, as in {{attention: zero_fill}}"
            )
        named = {str(key): [value] for key, value in cell.items()}
        yield from _product({"seed": axes["seed"]} | named if "seed" in axes else named)


def _text(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case list():
            return f"[{','.join(map(_text, value))}]"
        case _:
            return str(value)


def _planned(variants: Variants, cell: tuple[str, ...]) -> PlannedRun | Impossible:
    try:
        return PlannedRun(cell, variants.config(cell))
    except BrokenRule as error:
        return Impossible(cell, str(error))


def _check_control(variants: Variants, control: str | None) -> None:
    """An arm, or settings; the grid need not have it, since a part of a study may be run without."""
    items = [] if control is None else control.split() if "=" in control else [f"attention={control}"]
    try:
        variants.config(items)
    except BrokenRule:
        pass  # beside the settings of a cell it may be allowed
    except UserError as error:
        raise UserError(f"study.control: {error}") from None

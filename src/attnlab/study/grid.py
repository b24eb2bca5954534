"""A study's grid: every combination of its axes and every listed cell, as checked configs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from attnlab.compose import compose, load, typed
from attnlab.config import Config
from attnlab.errors import UserError
from attnlab.identity import run_id


@dataclass(frozen=True)
class PlannedRun:
    """One cell and seed of a study."""

    overrides: tuple[str, ...]  # of the grid alone
    config: Config


@dataclass(frozen=True)
class Impossible:
    """A cell that cannot exist; `problem` says why. It stays in the table."""

    overrides: tuple[str, ...]
    problem: str


@dataclass(frozen=True)
class Study:
    """A study and its runs in the grid's order, each run id once."""

    name: str
    control: str | None
    base: Config
    cells: list[PlannedRun | Impossible]

    @property
    def runs(self) -> list[PlannedRun]:
        """The runs that can be run."""
        return [cell for cell in self.cells if isinstance(cell, PlannedRun)]


def expand(overrides: list[str]) -> Study:
    """The study that `experiment=<name>` among the overrides names.

    An override of a key that is an axis of the grid replaces that axis: seed=7, or seed=1,2,3 for several values.
    Every cell is checked here, before anything trains. Raises UserError for a study that does not exist.
    """
    given = {
        key: (item, values) for item in overrides for key, values in [_values(item)]
    }  # the last one counts
    base = typed(compose([item for item, values in given.values() if len(values) == 1]))
    if base.study.name is None:
        raise UserError("experiment: got nothing, allowed: a study, as in experiment=demo")
    for key, values in base.study.grid.items():
        if not isinstance(values, list) or not values:
            raise UserError(f"study.grid.{key}: got {values}, allowed: a list of values")
    axes = {key: given[key][1] if key in given else values for key, values in base.study.grid.items()}
    axes |= {key: values for key, (_, values) in given.items() if len(values) > 1}
    fixed = [item for key, (item, _) in given.items() if key not in axes]
    cells: dict[str, PlannedRun | Impossible] = {}
    for cell in [*_product(axes), *_listed(base.study.cells, axes)]:
        planned = _planned(fixed, cell)
        key = run_id(planned.config) if isinstance(planned, PlannedRun) else " ".join(cell)
        cells.setdefault(key, planned)
    return Study(base.study.name, base.study.control, base, list(cells.values()))


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


def _planned(fixed: list[str], cell: tuple[str, ...]) -> PlannedRun | Impossible:
    try:
        return PlannedRun(cell, load([*fixed, *cell]))
    except UserError as error:
        return Impossible(cell, str(error))

"""The CSV of `attnlab table`, read again for figures: whoever has the repository can draw them without a run."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from attnlab.errors import UserError

TEACHER, PREFIX = "final/dev/nll", "final/dev/prefix_nll"


@dataclass(frozen=True)
class Mark:
    """A mean and, with two seeds or more, its 95% interval."""

    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Arm:
    """A cell of the table: an arm and what else is set there, as `key=value`."""

    name: str
    settings: tuple[str, ...]
    seeds: int
    marks: dict[str, Mark]

    @property
    def label(self) -> str:
        """As the table names it."""
        return " ".join([self.name, *self.settings])


def read(table: Path) -> list[Arm]:
    """The arms of a table.csv in its order, less those that have no number. Raises UserError for another file."""
    try:
        with table.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        found: dict[tuple[str, ...], Arm] = {}
        for row in rows:
            settings = tuple(row["settings"].split())
            if row["metric"]:
                arm = found.setdefault((row["arm"], *settings), Arm(row["arm"], settings, int(row["n"]), {}))
                arm.marks[row["metric"]] = Mark(float(row["mean"]), _number(row["low"]), _number(row["high"]))
    except (OSError, UnicodeDecodeError, KeyError, ValueError, TypeError, csv.Error) as error:
        raise UserError(
            f"--figure: got {table}, which cannot be read ({type(error).__name__}), allowed: the table.csv of a study"
        ) from None
    return list(found.values())


def bleu_of(arms: list[Arm]) -> str | None:
    """The BLEU that is drawn: by the arm's own code where it was scored so."""
    names = {name for arm in arms for name in arm.marks if name.endswith("/bleu")}
    return "test/prefix/bleu" if "test/prefix/bleu" in names else min(names, default=None)


def _number(text: str) -> float | None:
    return float(text) if text else None

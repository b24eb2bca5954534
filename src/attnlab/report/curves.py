"""Curves of many runs, small enough for a page: thinned, rounded, and with each list of steps stored once."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

SITES = ("encoder", "decoder", "cross")
_DIGITS = 4  # significant: a pixel of a curve is one part in 300


@dataclass(frozen=True)
class Curves:
    """grids: lists of steps. lines: by metric and run (its place in the page's list): [grid, values], null for NaN."""

    grids: list[list[int]] = field(default_factory=list)
    lines: dict[str, dict[int, tuple[int, list[float | None]]]] = field(default_factory=dict)

    def add(self, metric: str, run: int, steps: list[int], values: list[float | None]) -> None:
        """Put one run's curve in."""
        if steps not in self.grids:
            self.grids.append(steps)
        self.lines.setdefault(metric, {})[run] = (self.grids.index(steps), values)


@dataclass(frozen=True)
class Wanted:
    """Metrics whose whole name matches `pattern`, as at most `points` points."""

    pattern: re.Pattern[str]
    points: int


def wanted(points: int, *patterns: str) -> Wanted:
    """The metrics whose whole name matches one of the regular expressions; <site> stands for a site."""
    joined = "|".join(patterns).replace("<site>", f"(?:{'|'.join(SITES)})")
    return Wanted(re.compile(joined), points)


def add_curves(
    curves: Curves, run: int, records: Sequence[dict[str, float]], wishes: Sequence[Wanted]
) -> None:
    """Put into `curves` what `wishes` ask for of one run's records (RunFolder.read_metrics)."""
    columns: dict[str, tuple[list[int], list[float]]] = {}
    points: dict[str, int | None] = {"step": None}
    for record in records:
        step = int(record["step"])
        for name, value in record.items():
            if name not in points:
                points[name] = next((one.points for one in wishes if one.pattern.fullmatch(name)), None)
            if points[name] is None:
                continue
            steps, values = columns.setdefault(name, ([], []))
            steps.append(step)
            values.append(value)
    for name, (steps, values) in columns.items():
        curves.add(name, run, *thin(steps, values, points[name] or len(steps)))


def thin(steps: Sequence[int], values: Sequence[float], points: int) -> tuple[list[int], list[float | None]]:
    """At most `points` points: means over stretches of neighbours, each at its last step; the first stays alone.

    A stretch with a NaN or an infinity has no mean and becomes None: a gap in the curve, not a smooth line over it.
    """
    if len(steps) <= points:
        return list(steps), [rounded(value) for value in values]
    width = math.ceil((len(steps) - 1) / (points - 1))
    ends = [0, *range(width, len(steps) - 1, width), len(steps) - 1]
    means = [values[0]] + [
        math.fsum(values[first + 1 : last + 1]) / (last - first)
        if all(map(math.isfinite, values[first + 1 : last + 1]))
        else math.nan
        for first, last in itertools.pairwise(ends)
    ]
    return [steps[end] for end in ends], [rounded(value) for value in means]


def rounded(value: float) -> float | None:
    """To four significant digits; None where JSON has no such number."""
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None

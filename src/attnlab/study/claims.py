"""Claims, written down in expected.yaml before the runs, and what the runs say about them.

A claim predicts that a quantity lies in a region. It is confirmed where the 95% interval over seeds lies inside the
region, refuted where it lies outside, and inconclusive where it meets the edge or does not exist. The quantities, each
one number a seed but for the last two:

    value        the metric in a cell
    difference   cell - control
    ratio        cell / control
    share        (cell - control) / (the first of `of` - the second): what is left of an effect; none without the effect,
                 or where it goes the other way than `effect` says
    ordering     each cell of a list less the one before it; every step must lie in the region, and one step outside
                 refutes at a level of 5% for all steps together
    slope        what a doubling of the factor adds, over a list of cells; `against` are the factor's values
    exponent     the power of the factor that the metric grows as
    rank         Spearman's correlation of a list of cells with `against`: numbers, or another metric; its interval is
                 wider by the smallest step of such a correlation on either side
    optimum      the factor's value at which the metric is lowest, cells / controls; its interval is wider by the largest
                 step of the factor on either side
    sensitivity  mean over a list of cells of the metric above its lowest, cells / controls; by this and `optimum` a seed
                 that diverged counts with the metric's value before training
    sd           the sd over seeds
    pairing      variance of the differences paired by seed / that of unpaired ones

A list of cells may have a list of controls, of which each is taken off (by an exponent: divided out). With `choose`,
cell and control of a difference, ratio or share may be lists too: each seed of an arm stands with the cell that has the
lowest mean of the metric `choose` over the other seeds. A claim with `check: true` holds by construction: it is a
control on the harness and no prediction, and is counted apart. How a metric is written: metric.py. How the file is read: expected.py. How the number is
computed: quantities.py. The verdict: verdicts.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from attnlab.study.statistics import Estimate, Interval


class Kind(StrEnum):
    value = "value"
    difference = "difference"
    ratio = "ratio"
    share = "share"
    ordering = "ordering"
    slope = "slope"
    exponent = "exponent"
    rank = "rank"
    optimum = "optimum"
    sensitivity = "sensitivity"
    sd = "sd"
    pairing = "pairing"


class Direction(StrEnum):
    below = "below"
    above = "above"
    within = "within"


class Effect(StrEnum):
    """Which way an effect goes that a share is taken of: the first of `of` above the second, or below."""

    rise = "rise"
    fall = "fall"


class Verdict(StrEnum):
    confirmed = "confirmed"
    refuted = "refuted"
    inconclusive = "inconclusive"


@dataclass(frozen=True)
class Claim:
    """One falsifiable statement, its fields as in the module's head.

    metric: as in metric.py. cells, controls, of: labels as in a table; `of` has none or two. bounds: one number for
    `below` and `above`, two for `within`. against: the factor's value at each cell, or a metric, or None. effect: None
    where the claim does not say which way it goes.
    """

    id: str
    statement: str
    metric: str
    kind: Kind
    cells: tuple[str, ...]
    controls: tuple[str, ...]
    direction: Direction
    bounds: tuple[float, ...]
    source: str
    against: tuple[float, ...] | str | None = None
    of: tuple[str, ...] = ()
    choose: str | None = None
    effect: Effect | None = None
    check: bool = False

    @property
    def region(self) -> Interval:
        """Where the claim says that the quantity lies."""
        match self.direction:
            case Direction.below:
                return Interval(-math.inf, self.bounds[0])
            case Direction.above:
                return Interval(self.bounds[0], math.inf)
            case Direction.within:
                return Interval(*self.bounds)

    @property
    def labels(self) -> tuple[str, ...]:
        """Every cell that it is about."""
        return (*self.cells, *self.controls, *self.of)

    @property
    def quantity(self) -> str:
        """What is measured, in words."""
        words = f"{self.kind} of {self.metric}, {', '.join(self.cells)}"
        words += f" to {', '.join(self.controls)}" if self.controls else ""
        words += f" of {self.of[0]} to {self.of[1]}" if self.of else ""
        words += f" (a {self.effect})" if self.effect is not None else ""
        if self.against is not None:
            over = (
                self.against if isinstance(self.against, str) else ", ".join(f"{x:g}" for x in self.against)
            )
            words += f" over {over}"
        return words + (
            f", each at its lowest {self.choose} of the other seeds" if self.choose is not None else ""
        )


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict, the numbers (one, or one for each step of an ordering) and, in words, why.

    chosen: the cells that the arm of a claim with `choose` stands with, that of most seeds first; empty without it.
    """

    claim: Claim
    verdict: Verdict
    estimates: tuple[Estimate, ...]
    reason: str
    chosen: tuple[str, ...] = ()

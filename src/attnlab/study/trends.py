"""From a row of cells to one number a seed: slopes, ranks, the best setting and how much it matters.

`rows` are the cells in order, each seed -> value; x is the factor, one number a cell. Only seeds that every cell has
count, so that the number of a seed comes from runs that share initial weights and batches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from attnlab.study.statistics import scipy_stats

Values = Mapping[int, float]


def slopes(rows: Sequence[Values], x: Sequence[float]) -> dict[int, float]:
    """Least-squares slope of the values on log2 x: what a doubling of x adds."""
    return _each_seed(rows, lambda y: _slope(np.log2(x), y))


def exponents(rows: Sequence[Values], x: Sequence[float]) -> dict[int, float]:
    """Least-squares slope of log y on log x: y grows as this power of x. NaN for a seed with a value not above 0."""
    return _each_seed(rows, lambda y: _slope(np.log(x), np.log(y)) if (y > 0).all() else np.nan)


def ranks(rows: Sequence[Values], against: Sequence[Values]) -> dict[int, float]:
    """Spearman's rank correlation over the cells of their values with those of `against`, -1 to 1; NaN without spread."""
    stats = scipy_stats()

    def correlation(y: np.ndarray) -> float:
        ours, theirs = np.split(y, 2)
        if len(set(ours)) == 1 or len(set(theirs)) == 1:
            return np.nan
        return float(stats.spearmanr(ours, theirs).statistic)

    return _each_seed([*rows, *against], correlation)


def rank_step(cells: int) -> float:
    """How far two cells that are next to each other and change places move a correlation of ranks, at least."""
    return 12 / (cells * (cells**2 - 1))


def best_settings(rows: Sequence[Values], x: Sequence[float]) -> dict[int, float]:
    """The x whose value is the lowest; NaN for a seed with a NaN."""
    return _each_seed(rows, lambda y: np.nan if np.isnan(y).any() else float(x[int(np.argmin(y))]))


def largest_factor(x: Sequence[float]) -> float:
    """The largest step of a grid of x, as a factor above 1: how much of a best setting the grid leaves open."""
    return max(later / earlier for earlier, later in pairwise(sorted(x)))


def sensitivities(rows: Sequence[Values]) -> dict[int, float]:
    """Mean over the cells of how far each is above the lowest one (Wortsman et al. 2023, with even steps of x).

    The paper caps a loss at that of initialisation; so is the value of a run that diverged (quantities.py).
    """
    return _each_seed(rows, lambda y: float(np.mean(y) - np.min(y)))


def _slope(x: np.ndarray, y: np.ndarray) -> float:
    centred = x - x.mean()
    return float(centred @ y / (centred @ centred))


def _each_seed(rows: Sequence[Values], number: Callable[[np.ndarray], float]) -> dict[int, float]:
    seeds = set.intersection(*(set(row) for row in rows))
    return {seed: number(np.array([row[seed] for row in rows])) for seed in sorted(seeds)}

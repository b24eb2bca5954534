"""The number of a claim with its interval: claims.py says what the kinds mean, this is how each is computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from attnlab.study import trends
from attnlab.study.cells import DIVERGED, Cell
from attnlab.study.claims import Claim, Kind
from attnlab.study.metric import Metric
from attnlab.study.seed_noise import pairing, spread
from attnlab.study.statistics import Estimate, Interval, difference, estimate, proportion, ratio
from attnlab.study.trends import Values

EMPTY = "/empty"  # ending of the share of empty translations


def measured(claim: Claim, cells: Mapping[str, Cell]) -> tuple[tuple[Estimate, ...], bool]:
    """What the claim is about, one estimate for each step; and whether the interval is the exact binomial."""
    metric = Metric.parse(claim.metric)
    rows, controls, of = ([metric.of(cells[name]) for name in names]
                          for names in (claim.cells, claim.controls, claim.of))  # fmt: skip
    if claim.kind is Kind.value and rows[0]:
        cell = cells[claim.cells[0]]
        if claim.metric == DIVERGED or exact_share(cell, claim.metric):
            return (_exact(cell, claim.metric),), True
    found = _estimated(claim, rows, controls, of, cells)
    whole = tuple(one for one in found if one is not None)
    return (whole if len(whole) == len(found) else ()), False


def _estimated(
    claim: Claim, rows: Sequence[Values], controls: Sequence[Values], of: Sequence[Values],
    cells: Mapping[str, Cell],
) -> list[Estimate | None]:  # fmt: skip
    """One number, or one for each step; None where no seed has all of it."""
    x = claim.against if isinstance(claim.against, tuple) else ()
    match claim.kind:
        case Kind.value:
            return [_over_seeds(rows[0])]
        case Kind.difference:
            return [difference(rows[0], controls[0])]
        case Kind.ratio:
            return [ratio(rows[0], controls[0])]
        case Kind.share:
            return [_over_seeds(_divided(_less(rows[0], controls[0]), _less(of[0], of[1])))]
        case Kind.ordering:
            return [difference(later, earlier) for earlier, later in pairwise(rows)]
        case Kind.slope:
            return [_over_seeds(trends.slopes(_each(_less, rows, controls), x))]
        case Kind.exponent:
            return [_over_seeds(trends.exponents(_each(_divided, rows, controls), x))]
        case Kind.rank:
            if isinstance(claim.against, str):
                other = Metric.parse(claim.against)
                order: Sequence[Values] = [other.of(cells[name]) for name in claim.cells]
            else:
                order = [dict.fromkeys(row, value) for row, value in zip(rows, x, strict=True)]
            return [_correlation(trends.ranks(_each(_less, rows, controls), order))]
        case Kind.optimum:
            return [ratio(trends.best_settings(rows, x), trends.best_settings(controls, x))]
        case Kind.sensitivity:
            return [ratio(trends.sensitivities(rows), trends.sensitivities(controls))]
        case Kind.sd:
            return [spread(list(rows[0].values())) if rows[0] else None]
        case Kind.pairing:
            return [pairing(rows[0], controls[0])]


def _over_seeds(values: Values) -> Estimate | None:
    return estimate(list(values.values())) if values else None


def _correlation(values: Values) -> Estimate | None:
    """As any number, but an interval ends where a correlation does."""
    one = _over_seeds(values)
    if one is None or one.interval is None:
        return one
    return replace(one, interval=Interval(max(-1.0, one.interval.low), min(1.0, one.interval.high)))


def _less(a: Values, b: Values) -> Values:
    return {seed: a[seed] - b[seed] for seed in a if seed in b}


def _divided(a: Values, b: Values) -> Values:
    return {seed: a[seed] / b[seed] if b[seed] else math.nan for seed in a if seed in b}


def _each(
    joined: Callable[[Values, Values], Values], rows: Sequence[Values], controls: Sequence[Values]
) -> Sequence[Values]:
    """Every cell with its control, or the cells alone where there are no controls."""
    return [joined(*pair) for pair in zip(rows, controls, strict=True)] if controls else rows


def exact_share(cell: Cell, metric: str) -> Interval | None:
    """For a share of empty translations that is 0, or 1, in every seed: the exact interval over all sentences.

    The t-interval of such numbers has no width and claims a certainty that no test set of this size can give. None
    where the seeds differ or the metric is another one.
    """
    if not metric.endswith(EMPTY):
        return None
    values = cell.values(metric)
    if set(values.values()) not in ({0.0}, {1.0}):
        return None
    sentences = cell.values(metric.removesuffix(EMPTY) + "/sentences")
    if sentences.keys() != values.keys():
        return None
    k = round(sum(values[seed] * sentences[seed] for seed in values))
    return proportion(k, round(sum(sentences.values())))


def _exact(cell: Cell, metric: str) -> Estimate:
    """A share with its exact interval: of runs that diverged, or of sentences."""
    values = list(cell.values(metric).values())
    interval = (
        proportion(round(sum(values)), len(values)) if metric == DIVERGED else exact_share(cell, metric)
    )
    one = estimate(values)
    return Estimate(one.n, one.mean, one.sd, interval if one.n > 1 else None)

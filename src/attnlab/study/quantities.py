"""The number of a claim with its interval: claims.py says what the kinds mean, this is how each is computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from attnlab.study import trends
from attnlab.study.cells import DIVERGED, Cell
from attnlab.study.choice import Choice
from attnlab.study.claims import Claim, Effect, Kind
from attnlab.study.metric import Metric, Term
from attnlab.study.seed_noise import pairing, spread
from attnlab.study.statistics import Estimate, Interval, difference, estimate, proportion, ratio
from attnlab.study.trends import Values
from attnlab.tracking.status import State

EMPTY = "/empty"  # ending of the share of empty translations


@dataclass(frozen=True)
class Measured:
    """What a claim is about: one estimate, or one for each step; none where no seed has all of it.

    interval: what their intervals are, in words. doubt: why they decide nothing, whatever they hold.
    """

    estimates: tuple[Estimate, ...]
    interval: str = "interval"
    doubt: str | None = None


def measured(claim: Claim, cells: Mapping[str, Cell], choices: Sequence[Choice] = ()) -> Measured:
    """The numbers of a claim. choices: of a claim with `choose`, the arm's and the control's."""
    metric = Metric.parse(claim.metric)
    if choices:
        rows, controls = ([choice.values(metric, cells)] for choice in choices)
    else:
        rows, controls = (
            [values_of(claim, metric, cells[name]) for name in names]
            for names in (claim.cells, claim.controls)
        )
    of = [metric.of(cells[name]) for name in claim.of]
    if claim.kind is Kind.value and rows[0] and (share := _of_a_share(cells[claim.cells[0]], claim.metric)):
        return share
    found = _estimated(claim, rows, controls, of, cells)
    whole = tuple(one for one in found if one is not None)
    if len(whole) < len(found):
        return Measured(())
    doubt = _no_effect(claim, _less(rows[0], controls[0]), of) if claim.kind is Kind.share else None
    return Measured(whole, doubt=doubt)


def values_of(claim: Claim, metric: Metric, cell: Cell) -> Values:
    """The metric by seed. What asks how far a loss rises counts a seed that diverged at its loss before training.

    That is the cap of Wortsman et al. 2023: to diverge is the worst that a learning rate can do, and no missing number.
    """
    found = metric.of(cell)
    if claim.kind not in (Kind.optimum, Kind.sensitivity) or metric.plain is None:
        return found
    before = Term(metric.plain.removeprefix("final/"), 0).of(cell)
    gone = {run.seed for run in cell.with_state(State.diverged)}
    return found | {seed: value for seed, value in before.items() if seed in gone}


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
            step = trends.rank_step(len(rows))
            return [
                _of_a_lattice(
                    _over_seeds(trends.ranks(_each(_less, rows, controls), order)),
                    lambda low, high: Interval(max(-1.0, low - step), min(1.0, high + step)),
                )
            ]
        case Kind.optimum:
            factor = trends.largest_factor(x)
            return [
                _of_a_lattice(
                    ratio(trends.best_settings(rows, x), trends.best_settings(controls, x)),
                    lambda low, high: Interval(low / factor, high * factor),
                )
            ]
        case Kind.sensitivity:
            return [ratio(trends.sensitivities(rows), trends.sensitivities(controls))]
        case Kind.sd:
            return [spread(list(rows[0].values())) if rows[0] else None]
        case Kind.pairing:
            return [pairing(rows[0], controls[0])]


def _over_seeds(values: Values) -> Estimate | None:
    return estimate(list(values.values())) if values else None


def _of_a_lattice(one: Estimate | None, widened: Callable[[float, float], Interval]) -> Estimate | None:
    """With one step more on either side, as the seeds' numbers can only lie on the steps.

    Three seeds on one step have a t-interval without width, though up to 63% of all seeds (1 - 0.05^(1/3)) may lie on
    another one; where that is the next one, their mean is still within the step.
    """
    if one is None or one.interval is None:
        return one
    return replace(one, interval=widened(one.interval.low, one.interval.high))


def _no_effect(claim: Claim, left: Values, of: Sequence[Values]) -> str | None:
    """Why the whole effect is none that a share can be taken of: it may be 0, or goes the other way."""
    whole = _less(of[0], of[1])
    one = _over_seeds({seed: value for seed, value in whole.items() if seed in left})
    if one is None or one.interval is None:
        return None  # no verdict without it: one seed, or a number that is not finite
    size = f"{one.mean:+.4f} [{one.interval.low:+.4f}, {one.interval.high:+.4f}]"
    if one.interval.low <= 0 <= one.interval.high:
        return f"no effect to take a share of: the whole is {size}"
    found = Effect.rise if one.mean > 0 else Effect.fall
    if claim.effect not in (None, found):
        return f"no {claim.effect} to take a share of: the whole is {size}"
    return None


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
    """For a share of empty translations that is 0, or 1, in every seed: the exact interval over sentences.

    The t-interval of such numbers has no width and claims a certainty that no test set of this size can give. The
    sentences are those of one test set, however many seeds translate it. None where the seeds differ or the metric is
    another one.
    """
    return _over_sentences(cell, metric) if set(cell.values(metric).values()) in ({0.0}, {1.0}) else None


def _over_sentences(cell: Cell, metric: str) -> Interval | None:
    """Of a share of empty translations: exact over the sentences of the one test set, at the mean of these seeds.

    An end of the t-interval over seeds that lies further out takes its place, so that one sentence more in one seed
    moves the interval a little and never from one kind to another.
    """
    if not metric.endswith(EMPTY):
        return None
    values, sentences = cell.values(metric), cell.values(metric.removesuffix(EMPTY) + "/sentences")
    if sentences.keys() != values.keys() or not all(map(math.isfinite, values.values())):
        return None
    one, n = estimate(list(values.values())), round(min(sentences.values()))
    exact = proportion(round(one.mean * n), n)
    seeds = one.interval or exact
    return Interval(max(0.0, min(exact.low, seeds.low)), min(1.0, max(exact.high, seeds.high)))


def _of_a_share(cell: Cell, metric: str) -> Measured | None:
    """A share with its own interval: of runs that diverged, or of sentences. None for another metric."""
    values = list(cell.values(metric).values())
    if metric == DIVERGED:
        interval, words = proportion(round(sum(values)), len(values)), "exact interval"
    elif found := _over_sentences(cell, metric):
        interval, words = found, "interval over sentences, of these seeds,"
    else:
        return None
    one = estimate(values)
    return Measured((replace(one, interval=interval if one.n > 1 else None),), words)

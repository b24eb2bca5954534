"""The verdict on a claim: where the interval of its quantity lies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from attnlab.study.cells import DIVERGED, Cell
from attnlab.study.claims import Claim, Judged, Verdict
from attnlab.study.metric import Metric
from attnlab.study.quantities import measured
from attnlab.study.statistics import Estimate, Interval, estimate
from attnlab.tracking.status import State


def judge(claim: Claim, cells: Mapping[str, Cell]) -> Judged:
    """The verdict on a claim by cells, which stand under their labels."""
    for name in claim.labels:
        if name not in cells:
            return _inconclusive(claim, f"the table has no cell `{name}`")
        if problem := cells[name].problem:
            return _inconclusive(claim, f"`{name}` is invalid: {problem}")
    about = _at_the_best(claim, cells)
    judged = _judge(about, cells)
    if claim.choose is not None:
        best = " and ".join(f"`{name}`" for name in (*about.cells, *about.controls))
        judged = replace(judged, reason=f"{judged.reason}; chosen: {best}")
    return replace(judged, claim=claim)


def _at_the_best(claim: Claim, cells: Mapping[str, Cell]) -> Claim:
    """The claim about one cell of each list, that with the lowest mean of `choose` over its seeds.

    A cell with a seed that diverged is not chosen, unless every one has such a seed.
    """
    if claim.choose is None:
        return claim
    metric = Metric.parse(claim.choose)

    def badness(name: str) -> tuple[bool, float]:
        values = list(metric.of(cells[name]).values())
        mean = estimate(values).mean if values else math.inf
        return bool(cells[name].with_state(State.diverged)), math.inf if math.isnan(mean) else mean

    return replace(
        claim, cells=(min(claim.cells, key=badness),), controls=(min(claim.controls, key=badness),)
    )


def _judge(claim: Claim, cells: Mapping[str, Cell]) -> Judged:
    estimates, exact = measured(claim, cells)
    if not estimates:
        return _inconclusive(claim, _nothing(claim, [cells[name] for name in claim.labels]))
    if claim.metric != DIVERGED:
        for name in claim.labels:  # a mean over the seeds that survived would flatter the arm
            if gone := cells[name].with_state(State.diverged):
                reason = f"{len(gone)} of {len(cells[name].runs)} seeds of `{name}` diverged"
                return _inconclusive(claim, reason, estimates)
    verdicts = [_verdict(one, claim.region) for one in estimates]
    worst = next((v for v in (Verdict.refuted, Verdict.inconclusive) if v in verdicts), Verdict.confirmed)
    return Judged(claim, worst, estimates, _why(worst, estimates, exact))


def _verdict(one: Estimate, region: Interval) -> Verdict:
    interval = one.interval
    if interval is None:
        return Verdict.inconclusive
    if region.low < interval.low and interval.high < region.high:
        return Verdict.confirmed
    if interval.high < region.low or region.high < interval.low:
        return Verdict.refuted
    return Verdict.inconclusive


def _nothing(claim: Claim, cells: Sequence[Cell]) -> str:
    metric = Metric.parse(claim.metric)
    for cell in cells:
        if not metric.of(cell):
            return f"no finished seed of `{cell.label}` has {claim.metric}"
    shared = set.intersection(*(set(metric.of(cell)) for cell in cells))
    return "a ratio of numbers that are not above 0" if shared else "no seed that all of its cells have"


def _why(verdict: Verdict, estimates: Sequence[Estimate], exact: bool) -> str:
    if any(one.n == 1 for one in estimates):
        return "one seed: no interval over seeds"
    if any(not math.isfinite(one.mean) for one in estimates):
        return "a number that is not finite"
    kind = "exact interval" if exact else "interval"
    if any(one.interval is not None and one.interval.low == one.interval.high for one in estimates):
        kind += " (no width: every seed has the same number)"
    match verdict:
        case Verdict.confirmed:
            return f"the {kind} lies inside"
        case Verdict.refuted:
            return f"the {kind} lies outside"
        case Verdict.inconclusive:
            return f"the {kind} meets the edge"


def _inconclusive(claim: Claim, reason: str, estimates: tuple[Estimate, ...] = ()) -> Judged:
    return Judged(claim, Verdict.inconclusive, estimates, reason)

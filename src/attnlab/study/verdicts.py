"""The verdict on a claim: where the interval of its quantity lies, and what keeps it from deciding anything."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from attnlab.study.cells import Cell
from attnlab.study.choice import Choice, choose
from attnlab.study.claims import Claim, Judged, Kind, Verdict
from attnlab.study.metric import Metric
from attnlab.study.quantities import Measured, measured, values_of
from attnlab.study.statistics import Estimate, Interval, corrected
from attnlab.tracking.status import State


def judge(claim: Claim, cells: Mapping[str, Cell]) -> Judged:
    """The verdict on a claim by cells, which stand under their labels."""
    for name in claim.labels:
        if name not in cells:
            return _inconclusive(claim, f"the table has no cell `{name}`")
        if problem := cells[name].problem:
            return _inconclusive(claim, f"`{name}` is invalid: {problem}")
    if claim.choose is None:
        return _provisional(_judge(claim, cells, (), claim.labels), cells)
    by = Metric.parse(claim.choose)
    choices = [choose(labels, cells, by) for labels in (claim.cells, claim.controls)]
    if not all(choice.by_seed for choice in choices):
        return _inconclusive(claim, f"no seed has another one with {claim.choose} to choose by")
    labels = [*(label for choice in choices for label in choice.labels), *claim.of]
    judged = _judge(claim, cells, choices, labels)
    words = " and ".join(choice.words for choice in choices)
    judged = replace(judged, reason=f"{judged.reason}; chosen: {words}", chosen=choices[0].labels)
    return _provisional(judged, cells)


def _judge(
    claim: Claim, cells: Mapping[str, Cell], choices: Sequence[Choice], labels: Sequence[str]
) -> Judged:
    """labels: the cells that the numbers come from."""
    found = measured(claim, cells, choices)
    for name in labels:  # a mean over the seeds that survived would flatter the arm
        if gone := _diverged(claim, cells[name]):
            reason = f"{gone} of {len(cells[name].runs)} seeds of `{name}` diverged"
            return _inconclusive(claim, reason, found.estimates)
    if not found.estimates:
        return _inconclusive(claim, _nothing(claim, [cells[name] for name in labels]))
    if found.doubt is not None:
        return _inconclusive(claim, found.doubt, found.estimates)
    verdicts = [_verdict(one, claim.region, tests=len(found.estimates)) for one in found.estimates]
    worst = next((v for v in (Verdict.refuted, Verdict.inconclusive) if v in verdicts), Verdict.confirmed)
    return Judged(claim, worst, found.estimates, _why(worst, found))


def _diverged(claim: Claim, cell: Cell) -> int:
    """How many seeds diverged without what the claim is about; one that diverged later has a metric of step 0."""
    names = [claim.metric, *([claim.against] if isinstance(claim.against, str) else [])]
    rows = [values_of(claim, Metric.parse(name), cell) for name in names]
    return sum(any(run.seed not in row for row in rows) for run in cell.with_state(State.diverged))


def _verdict(one: Estimate, region: Interval, tests: int) -> Verdict:
    """All of `tests` steps must lie inside to confirm, each at 95%; one outside refutes, so each has 5% / tests."""
    interval = one.interval
    if interval is None:
        return Verdict.inconclusive
    if region.low < interval.low and interval.high < region.high:
        return Verdict.confirmed
    refuting = interval if tests == 1 else corrected(one, tests)
    if refuting is not None and (refuting.high < region.low or region.high < refuting.low):
        return Verdict.refuted
    return Verdict.inconclusive


def _provisional(judged: Judged, cells: Mapping[str, Cell]) -> Judged:
    """No verdict while a cell lacks a run: those that are there first need not be like the others."""
    for name in judged.claim.labels:
        cell = cells[name]
        planned = len(cell.runs) + len(cell.missing)
        ended = len(cell.runs) - len(cell.with_state(State.failed))
        if ended < planned and judged.estimates:
            reason = f"provisional, {ended} of {planned} seeds of `{name}`: {judged.reason}"
            return replace(judged, verdict=Verdict.inconclusive, reason=reason)
    return judged


def _nothing(claim: Claim, cells: Sequence[Cell]) -> str:
    metric = Metric.parse(claim.metric)
    for cell in cells:
        if not metric.of(cell):
            return f"no finished seed of `{cell.label}` has {claim.metric}"
    shared = set.intersection(*(set(metric.of(cell)) for cell in cells))
    ratios = (Kind.ratio, Kind.optimum, Kind.sensitivity)
    if shared and claim.kind in ratios:
        return "a ratio of numbers below 0, or to numbers that are not above it"
    return "no seed that all of its cells have"


def _why(verdict: Verdict, found: Measured) -> str:
    if any(one.n == 1 for one in found.estimates):
        return "one seed: no interval over seeds"
    if any(not math.isfinite(one.mean) for one in found.estimates):
        return "a number that is not finite"
    kind = found.interval
    if any(one.interval is not None and one.interval.low == one.interval.high for one in found.estimates):
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

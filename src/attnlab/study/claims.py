"""Claims, written down in expected.yaml before the runs, and what the runs say about them.

A claim predicts that a quantity lies in a region: the mean of a metric in a cell (`value`), its difference or ratio to
a control, paired by seed, or each step along a list of cells (`ordering`). It is confirmed where the 95% interval over
seeds lies inside the region, refuted where it lies outside, and inconclusive where it meets the edge or does not exist.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from attnlab.errors import UserError
from attnlab.study.cells import DIVERGED, Cell
from attnlab.study.statistics import Estimate, Interval, difference, estimate, proportion, ratio
from attnlab.tracking.status import State

EMPTY = "/empty"  # ending of the share of empty translations
_TEXTS = ("id", "statement", "metric", "kind", "direction", "source")
_Enum = TypeVar("_Enum", bound=StrEnum)


class Kind(StrEnum):
    value = "value"
    difference = "difference"
    ratio = "ratio"
    ordering = "ordering"  # each cell less the one before it


class Direction(StrEnum):
    below = "below"
    above = "above"
    within = "within"


class Verdict(StrEnum):
    confirmed = "confirmed"
    refuted = "refuted"
    inconclusive = "inconclusive"


@dataclass(frozen=True)
class Claim:
    """One falsifiable statement. metric: a name in a run's results. cells: labels as in a table, one but for `ordering`.

    control: for `difference` and `ratio`, else None. bounds: one number for `below` and `above`, two for `within`.
    """

    id: str
    statement: str
    metric: str
    kind: Kind
    cells: tuple[str, ...]
    control: str | None
    direction: Direction
    bounds: tuple[float, ...]
    source: str

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


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict, the numbers (one, or one for each step of an ordering) and, in words, why."""

    claim: Claim
    verdict: Verdict
    estimates: tuple[Estimate, ...]
    reason: str


def load_claims(path: Path) -> list[Claim]:
    """The claims of an expected.yaml, in order. Raises UserError: the claim, the field, what it got, what is allowed."""
    import yaml
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:  # OmegaConf's loader reads 1e-4 as a number, and refuses a key that stands twice
        raw = OmegaConf.to_container(OmegaConf.load(path))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, OmegaConfBaseException) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{path}: got a file that cannot be read ({reason}), allowed: YAML") from None
    if not isinstance(raw, dict) or set(raw) != {"claims"} or not isinstance(raw["claims"], list):
        raise UserError(f"{path}: got {_shown(raw)}, allowed: one key `claims` with a list")
    claims = [_claim(item, f"{path}, claim {number}") for number, item in enumerate(raw["claims"], start=1)]
    ids = [claim.id for claim in claims]
    for claim in claims:
        if ids.count(claim.id) > 1:
            raise UserError(f"{path}: got the id '{claim.id}' {ids.count(claim.id)} times, allowed: once")
    return claims


def judge(claim: Claim, cells: Mapping[str, Cell]) -> Judged:
    """The verdict on a claim by cells, which stand under their labels."""
    names = [*claim.cells, *([claim.control] if claim.control is not None else [])]
    for name in names:
        if name not in cells:
            return _inconclusive(claim, f"the table has no cell `{name}`")
        if problem := cells[name].problem:
            return _inconclusive(claim, f"`{name}` is invalid: {problem}")
    estimates, exact = _measured(claim, cells)
    if not estimates:
        return _inconclusive(claim, _nothing(claim, [cells[name] for name in names]))
    if claim.metric != DIVERGED:
        for name in names:  # a mean over the seeds that survived would flatter the arm
            if gone := cells[name].with_state(State.diverged):
                reason = f"{len(gone)} of {len(cells[name].runs)} seeds of `{name}` diverged"
                return _inconclusive(claim, reason, estimates)
    verdicts = [_verdict(one, claim.region) for one in estimates]
    worst = next((v for v in (Verdict.refuted, Verdict.inconclusive) if v in verdicts), Verdict.confirmed)
    return Judged(claim, worst, estimates, _why(worst, estimates, exact))


def _measured(claim: Claim, cells: Mapping[str, Cell]) -> tuple[tuple[Estimate, ...], bool]:
    """What the claim is about, one estimate for each step; and whether the interval is the exact binomial."""
    values = [cells[name].values(claim.metric) for name in claim.cells]
    match claim.kind:
        case Kind.value:
            if not values[0]:
                return (), False
            if claim.metric == DIVERGED or exact_share(cells[claim.cells[0]], claim.metric):
                return (_share(cells[claim.cells[0]], claim.metric),), True
            found: Sequence[Estimate | None] = [estimate(list(values[0].values()))]
        case Kind.difference | Kind.ratio:
            compare = difference if claim.kind is Kind.difference else ratio
            found = [compare(values[0], cells[str(claim.control)].values(claim.metric))]
        case Kind.ordering:
            found = [difference(later, earlier) for earlier, later in pairwise(values)]
    whole = tuple(one for one in found if one is not None)
    return (whole if len(whole) == len(found) else ()), False


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


def _share(cell: Cell, metric: str) -> Estimate:
    values = list(cell.values(metric).values())
    interval = (
        proportion(round(sum(values)), len(values)) if metric == DIVERGED else exact_share(cell, metric)
    )
    one = estimate(values)
    return Estimate(one.n, one.mean, one.sd, interval if one.n > 1 else None)


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
    for cell in cells:
        if not cell.values(claim.metric):
            return f"no finished seed of `{cell.label}` has {claim.metric}"
    shared = set.intersection(*(set(cell.values(claim.metric)) for cell in cells))
    return "a ratio of numbers that are not above 0" if shared else "no seed that all of its cells have"


def _why(verdict: Verdict, estimates: Sequence[Estimate], exact: bool) -> str:
    if any(not math.isfinite(one.mean) for one in estimates):
        return "a number that is not finite"
    if any(one.n == 1 for one in estimates):
        return "one seed: no interval over seeds"
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


def _claim(item: Any, where: str) -> Claim:
    fields = {*_TEXTS, "cell", "control", "bounds"}
    if not isinstance(item, dict) or set(item) != fields:
        got = ", ".join(map(str, item)) if isinstance(item, dict) else _shown(item)
        raise UserError(f"{where}: got {got}, allowed: exactly {', '.join(sorted(fields))}")
    for name in _TEXTS:
        if not isinstance(item[name], str) or not item[name].strip():
            raise UserError(f"{where}, {name}: got {_shown(item[name])}, allowed: text")
    where = f"{where} ({item['id']})"
    kind = _member(Kind, item["kind"], f"{where}, kind")
    direction = _member(Direction, item["direction"], f"{where}, direction")
    cells = item["cell"] if isinstance(item["cell"], list) else [item["cell"]]
    if not all(isinstance(cell, str) for cell in cells) or (len(cells) > 1) != (kind is Kind.ordering):
        allowed = "a list of two labels or more" if kind is Kind.ordering else "the label of one cell"
        raise UserError(f"{where}, cell: got {_shown(item['cell'])}, allowed for kind {kind}: {allowed}")
    compared = kind in (Kind.difference, Kind.ratio)
    if isinstance(item["control"], str) != compared or not isinstance(item["control"], str | None):
        allowed = "the label of a cell" if compared else "null"
        raise UserError(
            f"{where}, control: got {_shown(item['control'])}, allowed for kind {kind}: {allowed}"
        )
    bounds = item["bounds"]
    numbers = isinstance(bounds, list) and all(
        isinstance(bound, int | float) and not isinstance(bound, bool) and math.isfinite(bound)
        for bound in bounds
    )
    if not numbers or len(bounds) != (2 if direction is Direction.within else 1) or sorted(bounds) != bounds:
        allowed = "[low, high]" if direction is Direction.within else "[number]"
        raise UserError(
            f"{where}, bounds: got {_shown(bounds)}, allowed for direction {direction}: {allowed}"
        )
    return Claim(
        item["id"], item["statement"], item["metric"], kind, tuple(cells), item["control"], direction,
        tuple(map(float, bounds)), item["source"],
    )  # fmt: skip


def _member(kind: type[_Enum], value: str, where: str) -> _Enum:
    try:
        return kind(value)
    except ValueError:
        raise UserError(f"{where}: got '{value}', allowed: {', '.join(kind)}") from None


def _shown(value: Any) -> str:
    return "nothing" if value is None else f"'{value}'"

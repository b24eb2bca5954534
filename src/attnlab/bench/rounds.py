"""Several systems measured again and again in turns, and what may be said of the numbers.

The speed of a machine drifts by more than systems differ. So all systems take part in each round, the order turns
around from round to round, and a ratio is one of two numbers of the same round. Each round has a seed of its own: the
few batches that a system draws are longer or shorter than another's, which must not stay in every ratio.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from attnlab.bench.spawn import Ended, run_child
from attnlab.bench.work import Job


@dataclass(frozen=True)
class Child:
    """One thing to measure; `label` is for people."""

    label: str
    module: str
    job: Job


@dataclass(frozen=True)
class Spread:
    """Median over rounds, with the lowest and the highest."""

    median: float
    low: float
    high: float


def spread(values: Iterable[float | None]) -> Spread | None:
    """Of the values that are there; None where there is none."""
    there = [value for value in values if value is not None]
    return Spread(statistics.median(there), min(there), max(there)) if there else None


def ratio(above: Sequence[float | None], below: Sequence[float | None]) -> Spread | None:
    """above / below, round by round; rounds that lack one of the two do not count."""
    pairs = zip(above, below, strict=True)
    return spread(a / b if a is not None and b is not None else None for a, b in pairs)


def turn(count: int, number: int) -> list[int]:
    """The order of round `number`, from 0: forwards, then backwards, and so on."""
    return list(range(count)) if number % 2 == 0 else list(range(count - 1, -1, -1))


def measure(children: Sequence[Child], rounds: int) -> list[list[Ended | None]]:
    """Per child, what each round gave, its number from 1 on as the seed; None after a round in which it failed, since it would fail again."""
    ended: list[list[Ended | None]] = [[] for _ in children]
    for number in range(rounds):
        for i in turn(len(children), number):
            child, failed = children[i], any(one is None or one.problem for one in ended[i])
            one = None if failed else run_child(child.module, replace(child.job, seed=number + 1))
            ended[i].append(one)
            if one is not None:
                said = one.problem or f"{one.seconds:.1f} s"
                print(f"round {number + 1}/{rounds}  {child.label}: {said}", file=sys.stderr, flush=True)
    return ended


def series(ended: Sequence[Ended | None], name: str) -> list[float | None]:
    """One value by round; None where a round has none."""
    return [None if one is None else one.values.get(name) for one in ended]


def problem_of(ended: Sequence[Ended | None]) -> str | None:
    """Why a child failed, if it did."""
    return next((one.problem for one in ended if one is not None and one.problem), None)

"""Normalized entropy of every head over training, as the mean over a cell's seeds."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from attnlab.report.curves import SITES

LOOKS = 40  # columns of a picture
_NAME = re.compile(r"probe/entropy_normalized/(\w+)/layer(\d+)/head(\d+)")
_UNIT = 1000

Head = tuple[str, int, int]  # site, layer, head
HeadLines = dict[Head, dict[int, float]]  # one run's: by head and step


@dataclass(frozen=True)
class HeadEntropies:
    """By cell: `steps`, and `values[head][step]` in thousandths, None where there is none; heads in model order."""

    heads: list[Head]
    steps: dict[int, list[int]]
    values: dict[int, list[list[int | None]]]


def head_lines(records: Sequence[dict[str, float]]) -> HeadLines:
    """One run's entropies out of its records (RunFolder.read_metrics)."""
    found: HeadLines = {}
    for record in records:
        for name, value in record.items():
            if name.startswith("probe/entropy_normalized/") and (parts := _NAME.fullmatch(name)):
                head = (parts[1], int(parts[2]), int(parts[3]))
                found.setdefault(head, {})[int(record["step"])] = value
    return found


def head_entropies(cells: Mapping[int, Sequence[HeadLines]]) -> HeadEntropies:
    """Means over the seeds of each cell, at the steps that all of them have."""
    heads = sorted({head for runs in cells.values() for run in runs for head in run}, key=_place)
    steps = {cell: _shared_steps(runs) for cell, runs in cells.items()}
    values = {
        cell: [
            [_mean([run.get(head, {}).get(step) for run in runs]) for step in steps[cell]] for head in heads
        ]
        for cell, runs in cells.items()
    }
    return HeadEntropies(heads, steps, values)


def _place(head: Head) -> tuple[int, int, int]:
    return SITES.index(head[0]), head[1], head[2]


def _shared_steps(runs: Sequence[HeadLines]) -> list[int]:
    steps = sorted(set.intersection(*({step for line in run.values() for step in line} for run in runs)))
    if len(steps) <= LOOKS:
        return steps
    return sorted({steps[round(i * (len(steps) - 1) / (LOOKS - 1))] for i in range(LOOKS)})


def _mean(values: Sequence[float | None]) -> int | None:
    """In thousandths; None if a seed has no such number (a row of the inverted mask has no entropy)."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    return round(_UNIT * math.fsum(known) / len(known)) if len(known) == len(values) else None

"""Which of several cells an arm stands with: chosen on all seeds but one, judged on that one.

A cell that is the best of five by the same runs that judge it is a little too good, by luck (the winner's curse). So
each seed's number comes from the cell that the other seeds chose, which that seed had no part in.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from attnlab.study.cells import Cell
from attnlab.study.metric import Metric
from attnlab.study.trends import Values
from attnlab.tracking.status import State


@dataclass(frozen=True)
class Choice:
    """By seed, the label of the cell that the other seeds chose; without a seed that has no others to choose."""

    by_seed: Mapping[int, str]

    @property
    def labels(self) -> tuple[str, ...]:
        """Each once, the one that most seeds stand with first."""
        return tuple(label for label, _ in Counter(self.by_seed.values()).most_common())

    @property
    def words(self) -> str:
        """The labels, with their seeds where there are several."""
        if len(self.labels) == 1:
            return f"`{self.labels[0]}`"
        seeds = {label: [seed for seed, own in self.by_seed.items() if own == label] for label in self.labels}
        return " or ".join(f"`{label}` (seed {', '.join(map(str, own))})" for label, own in seeds.items())

    def values(self, metric: Metric, cells: Mapping[str, Cell]) -> Values:
        """The metric of each seed in its cell; without the seeds that the cell has not."""
        found: dict[str, Values] = {label: metric.of(cells[label]) for label in self.labels}
        return {seed: found[label][seed] for seed, label in self.by_seed.items() if seed in found[label]}


def choose(labels: Sequence[str], cells: Mapping[str, Cell], by: Metric) -> Choice:
    """For each seed the cell with the lowest mean of `by` over the other seeds; a single cell is no choice.

    A cell with a seed that diverged is not chosen, unless every one has such a seed.
    """
    seeds = sorted({run.seed for label in labels for run in cells[label].runs})
    if len(labels) == 1:
        return Choice(dict.fromkeys(seeds, labels[0]))
    stable = [label for label in labels if not cells[label].with_state(State.diverged)] or labels
    scores = {label: by.of(cells[label]) for label in stable}
    chosen = {}
    for seed in seeds:
        means = {label: _mean_without(seed, values) for label, values in scores.items()}
        best = min(means, key=means.__getitem__)
        if means[best] < math.inf:
            chosen[seed] = best
    return Choice(chosen)


def _mean_without(seed: int, values: Values) -> float:
    """Infinite where there is no other seed, or a number that is not finite."""
    others = [value for other, value in values.items() if other != seed]
    return float(np.mean(others)) if others and all(map(math.isfinite, others)) else math.inf

"""What a claim measures of each run: a metric, a metric as it was at a step, or two of them joined.

- `final/dev/nll`: the run's results.
- `probe/logit_std/encoder@0`: what metrics.jsonl has of step 0, before training.
- `final/dev/prefix_nll - final/dev/nll`: a difference, or with ` / ` a quotient, of two, within each run.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from attnlab.study.cells import Cell
from attnlab.tracking.status import State

_TERM = r"([^\s@]+)(?:@(\d+))?"
_METRIC = re.compile(rf"{_TERM}(?: ([/-]) {_TERM})?")


@dataclass(frozen=True)
class Term:
    """One name; `step` None is the run's result, else the record of that step."""

    name: str
    step: int | None

    def of(self, cell: Cell) -> dict[int, float]:
        """By seed, of the runs that have it: results are of runs that are done, a step also of those that diverged."""
        if self.step is None:
            return cell.values(self.name)
        found = {}
        for run in cell.with_state(State.done) + cell.with_state(State.diverged):
            for record in run.folder.read_metrics():
                if record["step"] == self.step and self.name in record:
                    found[run.seed] = record[self.name]
        return found


@dataclass(frozen=True)
class Metric:
    """One term, or two with the sign between them."""

    first: Term
    sign: str | None = None
    second: Term | None = None

    @classmethod
    def parse(cls, text: str) -> Metric:
        """Raises ValueError for text of another form."""
        found = _METRIC.fullmatch(text)
        if found is None:
            raise ValueError(
                f"got '{text}', allowed: name, name@step, or two of them with ' / ' or ' - ' between"
            )
        name, step, sign, other, other_step = found.groups()
        first = Term(name, None if step is None else int(step))
        second = None if other is None else Term(other, None if other_step is None else int(other_step))
        return cls(first, sign, second)

    @property
    def plain(self) -> str | None:
        """The name where it is a result alone, else None."""
        return self.first.name if self.second is None and self.first.step is None else None

    def of(self, cell: Cell) -> dict[int, float]:
        """By seed, of the runs that have all of it; a quotient by 0 is NaN."""
        first = self.first.of(cell)
        if self.second is None:
            return first
        second = self.second.of(cell)
        return {seed: self._joined(first[seed], second[seed]) for seed in first if seed in second}

    def _joined(self, a: float, b: float) -> float:
        if self.sign == "-":
            return a - b
        return a / b if b else math.nan

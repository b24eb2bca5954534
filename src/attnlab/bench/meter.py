"""Tokens a second: the real target tokens of the counted optimiser steps over the time that they took together.

The time of a step is from the end of the one before to its own: loading, padding and every overhead of a framework
lie between two steps, so they count. Padding does not. The total, and not the median of steps: a step's speed hangs
on the length of its sentences, and the median would be that of whichever length lies in the middle.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from attnlab.bench.child import Values
from attnlab.bench.peak import own_peak


class TokenMeter:
    """Told of the end of each optimiser step; the first `warmup` (at least 1) are not counted."""

    def __init__(self, warmup: int, clock: Callable[[], float] = time.monotonic) -> None:
        if warmup < 1:
            raise ValueError(
                f"warmup: got {warmup}, allowed: 1 or more, since the first step has no beginning"
            )
        self.warmup, self.clock = warmup, clock
        self.moments: list[float] = []  # end of each step, seconds
        self.tokens: list[int] = []  # real target tokens of each step
        self.peaks: list[float] = []  # largest resident memory until then, MB

    def step(self, tokens: int) -> None:
        """An optimiser step over so many real target tokens has ended now."""
        self.moments.append(self.clock())
        self.tokens.append(tokens)
        self.peaks.append(own_peak())

    def values(self) -> Values:
        """What a child reports: totals over the counted steps, the moment of the first step's end, memory by quarters.

        Raises ValueError where no step was counted.
        """
        counted = self.tokens[self.warmup :]
        if not counted:
            raise ValueError(f"{len(self.moments)} optimiser steps ended, {self.warmup} of them to warm up")
        last = len(self.peaks) - 1
        quarters = {f"peak_mb_{part}/4": self.peaks[part * last // 4] for part in (1, 2, 3, 4)}
        return {
            "tokens_per_second": sum(counted) / (self.moments[-1] - self.moments[self.warmup - 1]),
            "tokens_per_step": sum(counted) / len(counted),
            "first_step": self.moments[0],
        } | quarters


@contextmanager
def watch_optimizer(meter: TokenMeter, tokens: Callable[[], int]) -> Iterator[None]:
    """Every step of any torch optimiser inside is a step of the meter; `tokens()` says how many tokens it was about.

    For loops that are not ours: torch calls the hook, whatever framework is around it.
    """
    from torch.optim.optimizer import register_optimizer_step_post_hook

    def ended(*_: Any) -> None:
        meter.step(tokens())

    handle = register_optimizer_step_post_hook(ended)
    try:
        yield
    finally:
        handle.remove()

"""A stream of random draws that is the same on every platform and in every later version of Python.

It calls `random.Random(seed).random()` and nothing else: Python promises that method's sequence for a seed
(documentation of `random`, notes on reproducibility), and promises that of no choice, shuffle or randrange.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Draws:
    def __init__(self, seed: int) -> None:
        """Start the stream of a seed.

        Raises:
            ValueError: the seed is negative; Random would take its absolute value and repeat another stream.
        """
        if seed < 0:
            raise ValueError(f"seed is {seed}, must be 0 or above")
        self._random = random.Random(seed).random

    def below(self, bound: int) -> int:
        return int(self._random() * bound)

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self._random() * len(options))]

    def pick_early(self, options: Sequence[T]) -> T:
        """An option, the earlier the likelier: one of the first r of n with probability sqrt(r / n)."""
        share = self._random()
        return options[int(share * share * len(options))]

    def chance(self, probability: float) -> bool:
        return self._random() < probability

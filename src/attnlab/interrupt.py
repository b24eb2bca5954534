"""Ctrl-C and SIGTERM during a run: the step at hand is finished and a checkpoint written."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Asked:
    """What a signal asked for: inside the loop to stop after the step, outside it to end at once."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._in_loop = False

    def handle(self, number: int, frame: FrameType | None) -> None:
        again, self.signal = self.signal is not None, number
        if again or not self._in_loop:
            raise self.exception()

    def waits_for_the_step(self) -> None:
        """From here on the loop asks after each step."""
        self._in_loop = True

    def ends_at_once(self) -> None:
        """From here on nothing asks whether to stop."""
        self._in_loop = False
        if self.signal is not None:
            raise self.exception()

    def exception(self) -> BaseException:
        """KeyboardInterrupt for Ctrl-C; for SIGTERM an exit with 128 + its number, as a shell shows it."""
        return KeyboardInterrupt() if self.signal == signal.SIGINT else SystemExit(128 + signal.SIGTERM)


@contextmanager
def signals() -> Iterator[Asked]:
    """SIGINT and SIGTERM end the run at the next whole step, with a checkpoint; a second one ends it at once."""
    asked = Asked()
    try:
        before = {number: signal.signal(number, asked.handle) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread: whoever owns it handles signals
        yield asked
        return
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

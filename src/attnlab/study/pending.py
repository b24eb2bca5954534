"""The runs of a launch that are still to be made, beside other launches that may be making the same ones."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence

from attnlab.study.cells import ENDS
from attnlab.study.grid import PlannedRun
from attnlab.tracking.status import State

AGAIN = 1.0  # seconds until a run that another process works on is looked at again


class Pending:
    """In the order of the study; runs that are under way elsewhere come last, once they are free."""

    def __init__(self, runs: Sequence[PlannedRun]) -> None:
        self._waiting = deque(runs)
        self._elsewhere: list[tuple[float, PlannedRun]] = []  # and when to look again, by time.monotonic()
        self._before = {run.overrides: run.folder.read_status() for run in runs}

    def __bool__(self) -> bool:
        return bool(self._waiting or self._elsewhere)

    def left(self) -> list[PlannedRun]:
        """All that nobody has ended yet."""
        return [*self._waiting, *(run for _, run in self._elsewhere)]

    def take(self) -> PlannedRun | None:
        """A run that nobody works on; None where there is none at the moment."""
        self._look_again()
        while self._waiting:
            run = self._waiting.popleft()
            if run.folder.state() is not State.running:
                return run
            self.put_back(run)
        return None

    def put_back(self, run: PlannedRun) -> None:
        """Another process was faster."""
        self._elsewhere.append((time.monotonic() + AGAIN, run))

    def made_elsewhere(self) -> Iterator[PlannedRun]:
        """Take out the runs that another process has ended since this launch began: none is made twice."""
        self._look_again()
        for run in [one for one in self._waiting if self._made(one)]:
            self._waiting.remove(run)
            yield run

    def _made(self, run: PlannedRun) -> bool:
        folder = run.folder
        return folder.read_status() != self._before[run.overrides] and folder.state() in ENDS

    def _look_again(self) -> None:
        now = time.monotonic()
        self._waiting.extend(run for due, run in self._elsewhere if due <= now)
        self._elsewhere = [(due, run) for due, run in self._elsewhere if due > now]

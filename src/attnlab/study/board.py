"""How far a sweep is, on stderr: a line for each run that ends, and between them how many are done, running and left.

The numbers come from the run folders, so it is the same wherever the runs are made. A terminal gets one line that is
written anew each second, a log a line from time to time.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterable, Sequence

from attnlab.study.forecast import duration, seconds_of, step_of, steps_kept
from attnlab.study.grid import PlannedRun
from attnlab.terminal import one_line
from attnlab.tracking.status import State

QUIET_SECONDS = 20.0  # between lines of a log


class Board:
    """Of the runs that one launch is to make."""

    def __init__(self, runs: Sequence[PlannedRun]) -> None:
        self._runs = {run.run_id: run for run in runs}
        self._left = dict(self._runs)
        self._running: set[str] = set()
        self._failed = 0
        self._begun = {name: steps_kept(run.folder) for name, run in self._runs.items()}
        self._steps = dict(self._begun)
        self._started = self._spoke = time.monotonic()
        self._live = sys.stderr.isatty()

    def ended(self, run: PlannedRun, problem: str | None) -> None:
        """A run is over. The first lines of what went wrong stand here, at once; the traceback is in its folder."""
        name, folder, state, status = run.run_id, run.folder, run.folder.state(), run.folder.read_status()
        self._left.pop(name, None)
        self._running.discard(name)
        self._steps[name] = run.config.train.steps
        problem = problem or (status.reason if status is not None else None)
        match state:
            case State.done:
                seconds = seconds_of(folder)
                what = "done" if seconds is None else f"done in {duration(seconds)}"
            case State.diverged:
                what = f"diverged: {problem}"
            case State.failed:
                what = f"FAILED: {problem} (traceback: {folder.path / 'status.json'})"
            case _:
                what = problem or "not done"
        self._failed += state not in (State.done, State.diverged)
        place = f"[{len(self._runs) - len(self._left)}/{len(self._runs)}]"
        self.say(f"{place} {name} {' '.join(run.overrides)}: {what}")

    def say(self, text: str) -> None:
        """A line that stays."""
        clear = "\r\x1b[K" if self._live else ""
        print(clear + one_line(text), file=sys.stderr, flush=True)

    def tick(self, running: Iterable[PlannedRun]) -> None:
        """Called each second or so with the runs under way; speaks where it is time to."""
        now = time.monotonic()
        if not self._live and now - self._spoke < QUIET_SECONDS:
            return
        self._spoke = now
        under_way = list(running)
        self._running = {run.run_id for run in under_way}
        for run in under_way:
            self._steps[run.run_id] = step_of(run.folder)
        text = self.line()
        if self._live:
            width = shutil.get_terminal_size().columns
            print(f"\r\x1b[K{text[: width - 1]}", end="", file=sys.stderr, flush=True)
        else:
            self.say(f"  {'; '.join([text, *map(self._share, under_way)])}")

    def _share(self, run: PlannedRun) -> str:
        config = run.config
        return f"{config.attention.name} seed {config.seed} {self._steps[run.run_id]}/{config.train.steps}"

    def line(self) -> str:
        """Runs done, running, failed, and the time left at the rate of the steps so far."""
        done = len(self._runs) - len(self._left)
        counts = [
            f"{done} of {len(self._runs)} ended",
            f"{len(self._running)} running",
            f"{self._failed} failed",
        ]
        return f"{', '.join(counts)}, {self.time_left()}"

    def time_left(self) -> str:
        """At the rate of this launch so far; unknown before its first step."""
        trained = sum(self._steps[name] - self._begun[name] for name in self._runs)
        left = sum(run.config.train.steps - self._steps[name] for name, run in self._left.items())
        elapsed = time.monotonic() - self._started
        return f"about {duration(elapsed * left / trained)} left" if trained > 0 else "time left unknown"

"""The parent's side: a child in a fresh process, timed from outside; a crash is a result with its reason."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from attnlab.bench.child import Values
from attnlab.bench.environment import variables
from attnlab.bench.work import Job

TIMEOUT = 1800.0  # seconds for a child
GRACE = 30.0  # seconds to end by itself once it is asked to


@dataclass(frozen=True)
class Ended:
    """How a child ended."""

    values: Values  # empty where it failed
    problem: str | None  # why it failed, one line
    started: float  # time.monotonic() at its start; children report moments on the same clock
    seconds: float  # from start to end


class Running:
    """A child under way. Leaving the `with` block early ends it and all that it started."""

    def __init__(self, module: str, job: Job) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="attnlab-bench-")
        self._result = Path(self._folder.name) / "result.json"
        self._log = Path(self._folder.name) / "log"
        self.started = time.monotonic()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, job.as_json(), str(self._result)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=variables(job),
                start_new_session=True,
            )  # fmt: skip

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._folder.cleanup()

    def has_ended(self) -> bool:
        """Whether `wait` would return at once."""
        return self._process.poll() is not None

    def wait(self, timeout: float = TIMEOUT) -> Ended:
        """Until its end, or end it after `timeout` seconds."""
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._end()
            problem: str | None = f"not done after {timeout:.0f} s"
        else:
            problem = self._problem(code)
        values = {} if problem else json.loads(self._result.read_text())
        return Ended(values, problem, self.started, time.monotonic() - self.started)

    def _problem(self, code: int) -> str | None:
        if code == 0 and self._result.exists():
            return None
        if code < 0:
            return f"killed by {signal.Signals(-code).name}"
        lines = [line.strip() for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        return lines[-1] if lines else f"exit code {code} without a word"

    def _end(self) -> None:
        """Ask it to end, and after a while end it; in any case end what it has left behind."""
        if self._process.poll() is None:
            self._signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE)
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        """To the child and to those that it started; they are a group also after its own end."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


def run_child(module: str, job: Job, timeout: float = TIMEOUT) -> Ended:
    """One child from start to end."""
    with Running(module, job) as running:
        return running.wait(timeout)

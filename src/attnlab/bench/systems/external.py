"""Any other toolkit in its own environment: a shell command that trains the same text and tells its speed.

The contract, in docs/performance.md with wrappers for eole and JoeyNMT: a line `tokens_per_second <number>` on stdout
at the end of each optimiser step, real target tokens only. The first `warmup` lines are dropped, the harmonic mean of
the next `steps` is the result (all tokens over all seconds, for steps of equally many tokens: the lines do not say
how many), and the command is stopped. A command that ends after one single line has stated its own result. Everything
else that it prints is its business; the exit code counts only where the lines do not suffice.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from types import FrameType

from attnlab.bench.child import Values, main
from attnlab.bench.peak import group_peak, peak
from attnlab.bench.work import Job
from attnlab.errors import UserError

LINE = re.compile(r"tokens_per_second\s+([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)\s*")
PATIENCE = 20.0  # seconds for a command to end once it is asked to


def measure(job: Job) -> Values:
    """Run the command until it has said enough. Raises UserError where it did not."""
    (command,) = job.settings
    rates: list[float] = []
    first_step = largest = 0.0
    other = "nothing"
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        process = subprocess.Popen(
            command,
            shell=True,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            errors="replace",
            process_group=0,
        )
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if found := LINE.fullmatch(line.strip()):
                    first_step = first_step or time.monotonic()
                    rates.append(float(found[1]))
                    if len(rates) == job.warmup + job.steps:
                        largest = group_peak(process.pid)
                        break
                elif line.strip():
                    other = line.strip()
            else:  # it closed its output: it is about to end
                process.wait(PATIENCE)
        finally:
            _end(process)
        errors.seek(0)
        said = [line.strip() for line in errors if line.strip()]
    if len(rates) == 1:
        return {"tokens_per_second": rates[0]}
    if len(rates) <= job.warmup:
        raise UserError(
            f"{said[-1] if said else other} (exit code {process.returncode}, {len(rates)} lines 'tokens_per_second "
            f"<number>', allowed: 1, or more than the {job.warmup} of the warm-up)"
        )
    return {
        "tokens_per_second": statistics.harmonic_mean(rates[job.warmup :]),
        "first_step": first_step,
        "peak_mb": max(largest, peak()),
    }


def _end(process: subprocess.Popen[str]) -> None:
    """Ask the command and all that it started to end, and end what is left once the shell has or time is up.

    The shell ends when it is asked; what it started may not hear, and would compute on beside the next row.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)


def _stopped(number: int, frame: FrameType | None) -> None:
    """Whoever stops the child stops the command with it: leaving `measure` ends it."""
    sys.exit("stopped")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _stopped)
    main(measure)

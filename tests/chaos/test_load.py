"""A long sweep of tiny runs, launched, killed twice and finished: memory stays flat, looking at it stays quick.

LOAD_RUNS=300 is the size that is meant; without it the sweep is small, and shows that nothing breaks.
"""

import os
import resource
import signal
import statistics
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from sweeps import RUN, folders, intact, no_orphan, start, workers

from attnlab.report.html import page
from attnlab.report.runs import Reader
from attnlab.study import table
from attnlab.study.grid import expand
from attnlab.tracking.status import State

RUNS = int(os.environ.get("LOAD_RUNS", "18"))
ARMS = ("correct", "no_scale", "zero_fill")
SHORT = [
    "train.steps=6",
    "train.warmup=2",
    "train.checkpoint_every=3",
    "measure.every=6",
    "measure.evaluate_every=6",
]
MANY = [
    "experiment=demo", *RUN, *SHORT, "measure.images=false", f"attention={','.join(ARMS)}",
    f"seed={','.join(map(str, range(1, RUNS // len(ARMS) + 1)))}", "launch.workers=2", "track=none",
]  # fmt: skip
WORKER_BYTES = 1 << 30
GROWTH_BYTES = 8 << 20  # of a worker, in the second half of its runs
PLAN_SECONDS = 2  # of the processor, since other work may share the machine
TABLE_SECONDS = 20
EXPLORER_SECONDS, EXPLORER_BYTES = 10, 8_000_000
LOOK = 0.5  # seconds between looks at the workers' memory

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads memory from /proc"),
]


def test_many_runs_launched_killed_twice_and_finished(tmp_path, capsys):
    output, memory = tmp_path / "outputs", dict[int, list[int]]()
    planned = planning(output)
    times = []
    for share, number in ((1 / 3, signal.SIGKILL), (2 / 3, signal.SIGTERM), (1, None)):
        started = time.monotonic()
        command = start(tmp_path, MANY)
        while command.process.poll() is None:
            watch(tmp_path, memory)
            if number is not None and done(output) >= share * RUNS:
                command.process.send_signal(number)
                break
            time.sleep(LOOK)
        code = command.end()
        no_orphan(tmp_path)
        assert code == {signal.SIGKILL: -9, signal.SIGTERM: 143, None: 0}[number], command.log.read_text()
        times.append(time.monotonic() - started)
    assert done(output) == RUNS
    intact(output)
    items = [*MANY, f"output={output}"]
    before = time.process_time()
    made = table.build(expand(items), items, [])
    tabled = time.process_time() - before
    assert [len(row.cell.with_state(State.done)) for row in made.rows] == [RUNS // len(ARMS)] * len(ARMS)
    before = time.process_time()
    explorer = page(vars(Reader(output).page("all runs")), "t")
    explored = time.process_time() - before
    planned = max(planned, planning(output))
    growth = [grown(samples) for samples in memory.values() if len(samples) >= 20]
    with capsys.disabled():
        print(
            f"\n  {RUNS} runs in {' + '.join(f'{seconds:.0f}' for seconds in times)} s; a worker has at most "
            f"{max(map(max, memory.values())) / 2**20:.0f} MiB and grows by at most {max(growth, default=0) / 2**20:.1f}; "
            f"plan {planned:.1f} s, table {tabled:.1f} s, explorer {explored:.1f} s of the processor"
        )
    assert max(map(max, memory.values())) < WORKER_BYTES
    assert max(growth, default=0) < GROWTH_BYTES
    assert planned < PLAN_SECONDS
    assert tabled < TABLE_SECONDS
    assert explored < EXPLORER_SECONDS
    assert len(explorer.encode()) < EXPLORER_BYTES


def done(output: Path) -> int:
    """Runs that have their result; read from the files as `attnlab plan` does."""
    return sum(folder.state() is State.done for folder in folders(output).values())


def planning(output: Path) -> float:
    """Processor seconds of `attnlab plan`, from its start to its end."""

    def spent() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before = spent()
    command = [sys.executable, "-m", "attnlab", "plan", *MANY, f"output={output}"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"{RUNS} runs" in shown
    return spent() - before


def watch(folder: Path, memory: dict[int, list[int]]) -> None:
    """Add the resident bytes of each worker that trains."""
    for pid in workers(folder):
        with suppress(OSError):  # it has ended
            size = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
            if size > 200 << 20:  # torch is loaded
                memory.setdefault(pid, []).append(size)


def grown(samples: list[int]) -> float:
    """From the middle fifth of a worker's life, when all is loaded, to the last one."""
    fifth = len(samples) // 5
    return statistics.median(samples[-fifth:]) - statistics.median(samples[2 * fifth : 3 * fifth])

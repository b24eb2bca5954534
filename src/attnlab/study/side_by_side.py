"""Runs side by side on this machine: each worker is a process of its own that is told one run at a time.

A worker that is killed takes no other down; one whose parent is killed ends by itself, with a checkpoint.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path

from attnlab.config import Config
from attnlab.study.attempt import Attempt, attempt
from attnlab.study.board import Board
from attnlab.study.grid import PlannedRun
from attnlab.study.pending import Pending
from attnlab.tracking.folder import folder_of

TICK = 1.0  # seconds between looks at how far the runs are

Ended = tuple[PlannedRun, Attempt]
Work = Callable[[Config], Attempt]


class _Worker:
    """A process that waits for configs and answers each with its Attempt."""

    def __init__(self, work: Work) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.connection, theirs = spawn.Pipe()
        self.process = spawn.Process(target=_serve, args=(theirs, work))
        self.process.start()
        theirs.close()
        self.run: PlannedRun | None = None

    def begin(self, run: PlannedRun) -> None:
        self.run = run
        self.connection.send(run.config)

    def end(self) -> tuple[PlannedRun, Attempt | None]:
        """The run and what became of it; None where the process died instead of telling."""
        assert self.run is not None
        run, self.run = self.run, None
        try:
            return run, self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            return run, None

    def was_killed(self) -> bool:
        return self.process.exitcode is not None and self.process.exitcode < 0

    def death(self, run: PlannedRun) -> str:
        """How the process ended, in one sentence."""
        code = self.process.exitcode or 0
        how = f"was killed ({signal.Signals(-code).name})" if code < 0 else f"ended with exit code {code}"
        return f"its process {how}; what it printed: {_log(run.config)}"


def side_by_side(
    runs: Sequence[PlannedRun], workers: int, board: Board, work: Work = attempt
) -> Generator[Ended]:
    """Each run as it ends; `work` is what a worker does with one.

    A run whose process is killed is tried once more when the others are over, alone: the usual reason is a lack of
    memory. Whatever ends this early, Ctrl-C or a caller that wants no more, asks the workers to stop: each writes a
    checkpoint after the step at hand.
    """
    pending, killed = Pending(runs), list[PlannedRun]()
    team: list[_Worker] = []
    try:
        while True:
            for run in pending.made_elsewhere():
                yield run, Attempt(None)
            under_way = [worker for worker in team if worker.run is not None]
            if not pending and not under_way:
                if not killed:
                    return
                pending, killed, workers = Pending(killed), [], 0
            while len(under_way) < max(workers, 1) and (run_now := pending.take()) is not None:
                under_way.append(_begun(run_now, team, work))
            board.tick([worker.run for worker in under_way if worker.run is not None])
            if not under_way:  # all that is left is being made elsewhere
                time.sleep(TICK)
                continue
            ready = wait([worker.connection for worker in under_way], TICK)
            for worker in [one for one in under_way if one.connection in ready]:
                run, found = worker.end()
                if found is None:
                    team.remove(worker)
                    board.say(f"{run.run_id} {' '.join(run.overrides)}: {worker.death(run)}")
                    if workers and worker.was_killed():
                        killed.append(run)
                    else:
                        yield run, Attempt(worker.death(run))
                elif found.busy:
                    pending.put_back(run)
                else:
                    yield run, found
    except BaseException:
        if stopping := sum(worker.run is not None for worker in team):
            board.say(f"stopping: {stopping} runs under way write a checkpoint after the step at hand")
        for worker in team:
            worker.process.terminate()
        raise
    finally:
        for worker in team:
            worker.connection.close()  # an idle worker ends when nobody can tell it anything any more
        for worker in team:
            worker.process.join()


def _begun(run: PlannedRun, team: list[_Worker], work: Work) -> _Worker:
    """The worker that now makes the run: one that has nothing to do, else a new one of the team."""
    for worker in [one for one in team if one.run is None]:
        try:
            worker.begin(run)
            return worker
        except OSError:  # killed while it had nothing to do, which costs no run
            team.remove(worker)
            worker.connection.close()
            worker.process.join()
    team.append(worker := _Worker(work))
    worker.begin(run)
    return worker


def _serve(connection: Connection, work: Work) -> None:
    """A worker's life."""
    os.setsid()  # Ctrl-C at the terminal reaches the parent alone, which then asks each worker once
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            config = connection.recv()
        except EOFError:
            return
        _write_to(_log(config))
        connection.send(work(config))


def _end_with_parent() -> None:
    """A parent that is killed can ask nobody to stop: its workers notice."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _log(config: Config) -> Path:
    """What a run's process and the libraries in it print."""
    return Path(config.output) / "logs" / f"{folder_of(config).path.name}.log"


def _write_to(path: Path) -> None:
    """Send what this process prints to a file: the terminal belongs to the sweep."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    except OSError:  # the run itself says that nothing can be written there
        target = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(target, descriptor)
    os.close(target)

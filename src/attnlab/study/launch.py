"""Running a study: what is not done yet, by the way that `launch` names, until every run has ended."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType

from attnlab.config import Config, Launcher
from attnlab.study.attempt import Attempt, attempt
from attnlab.study.board import Board
from attnlab.study.grid import PlannedRun, Study
from attnlab.study.pending import Pending
from attnlab.study.side_by_side import TICK, Ended, side_by_side
from attnlab.tracking.status import State

RESULTS = (State.done, State.diverged)


def launch(study: Study) -> dict[str, State | None]:
    """Run what is not done yet; the state of each run id at the end. Failed runs are tried again with retry=true."""
    config = study.base
    states = [run.folder.state() for run in study.runs]
    todo = [run for run, state in zip(study.runs, states, strict=True) if wants_to_run(config, state)]
    board = Board(todo)
    board.say(f"study {study.name}: {headline(study, states, len(todo))}")
    with _terminated_is_an_exit(), closing(_ended(study, todo, board)) as ended:
        for run, found in ended:
            board.ended(run, found.problem)
            if config.fail_fast and run.folder.state() not in RESULTS:
                board.say("fail_fast=true: stopping; runs under way write a checkpoint first")
                break
    return {run.run_id: run.folder.state() for run in study.runs}


def wants_to_run(config: Config, state: State | None) -> bool:
    """Whether a launch makes a run in this state: a finished one with force=true alone, a failed one with retry=true too."""
    match state:
        case State.done | State.diverged:
            return config.force
        case State.failed:
            return config.retry or config.force
        case _:
            return True


def headline(study: Study, states: Sequence[State | None], todo: int) -> str:
    """How many runs, how many of them to make, and on what."""
    done, failed = sum(state in RESULTS for state in states), states.count(State.failed)
    parts = [f"{len(states)} runs, {done} done, {todo} to run{' ' + where(study.base, todo) if todo else ''}"]
    if failed and not (study.base.retry or study.base.force):
        parts.append(f"{failed} failed earlier (retry=true tries again)")
    return ", ".join(parts)


def where(config: Config, runs: int) -> str:
    """In words: on how many processes, or through which plugin."""
    if config.launch.name in (Launcher.slurm, Launcher.ray):
        return f"as jobs of {config.launch.plugin}"
    count = min(workers_of(config), max(runs, 1))
    side = " side by side on the GPU" if count > 1 and on_gpu(config) else ""
    hint = (
        " (launch.workers=N runs N side by side on the GPU)" if count == 1 < runs and on_gpu(config) else ""
    )
    return f"on {count} process{'es' if count > 1 else ''}{side}{hint}"


def workers_of(config: Config) -> int:
    """How many runs at once. Cores are shared by their number, a GPU only as the user says."""
    if config.launch.name is Launcher.serial:
        return 1
    return config.launch.workers or (1 if on_gpu(config) else cores())


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def on_gpu(config: Config) -> bool:
    """Whether runs will be on a GPU; asks torch, which takes seconds to load, only where there is a driver."""
    if config.device != "auto" or not any(map(Path.exists, map(Path, ("/dev/nvidiactl", "/dev/kfd")))):
        return config.device.startswith("cuda")
    from attnlab.device import pick_device

    return pick_device(config.device).type == "cuda"


def _ended(study: Study, todo: list[PlannedRun], board: Board) -> Generator[Ended]:
    match study.base.launch.name:
        case Launcher.slurm | Launcher.ray:
            from attnlab.study.plugin import through_plugin

            yield from through_plugin(study, todo, board)
        case Launcher.local if (workers := workers_of(study.base)) > 1:
            yield from side_by_side(todo, workers, board)
        case _:
            yield from _in_turn(todo, board)


def _in_turn(runs: Sequence[PlannedRun], board: Board) -> Generator[Ended]:
    """In this process, with the run's own progress bar."""
    pending = Pending(runs)
    while pending:
        for run in pending.made_elsewhere():
            yield run, Attempt(None)
        if (run_now := pending.take()) is None:
            board.tick([])
            time.sleep(TICK)
            continue
        found = attempt(run_now.config, bar=True)
        if found.busy:
            pending.put_back(run_now)
        else:
            yield run_now, found


@contextmanager
def _terminated_is_an_exit() -> Iterator[None]:
    """SIGTERM and SIGHUP leave by an exception, so that the workers are asked to stop too."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

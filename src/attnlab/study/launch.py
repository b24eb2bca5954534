"""Running a study: several runs side by side in processes of their own, one of which cannot take others down."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from types import FrameType

from attnlab.config import Config, Launcher
from attnlab.errors import UserError
from attnlab.identity import run_id
from attnlab.run import folder_of, run
from attnlab.study.grid import PlannedRun, Study
from attnlab.tracking.status import State

HEARTBEAT = 20.0  # seconds between lines on runs under way


def launch(study: Study) -> dict[str, State | None]:
    """Run what is not done yet; the state of each run id at the end. Failed runs are tried again with retry=true."""
    waiting = [planned for planned in study.runs if _wants_to_run(planned.config)]
    config = study.base
    workers = 1 if config.launch.name is Launcher.serial else config.launch.workers or os.cpu_count() or 1
    print(
        f"study {study.name}: {len(study.runs)} runs, {len(study.runs) - len(waiting)} not to run, "
        f"{len(waiting)} to run on {min(workers, max(len(waiting), 1))} processes",
        file=sys.stderr, flush=True,
    )  # fmt: skip
    with _terminated_is_an_exit(), closing(_finished(waiting, workers)) as finished:
        for number, (planned, problem) in enumerate(finished, start=1):
            state = folder_of(planned.config).state()
            print(
                f"[{number}/{len(waiting)}] {run_id(planned.config)} {' '.join(planned.overrides)}: {problem or state}",
                file=sys.stderr, flush=True,
            )  # fmt: skip
            if config.fail_fast and state not in (State.done, State.diverged):
                break
    folders = [folder_of(planned.config) for planned in study.runs]
    return {folder.path.name: folder.state() for folder in folders}


def _wants_to_run(config: Config) -> bool:
    match folder_of(config).state():
        case State.done | State.diverged:
            return config.force
        case State.failed:
            return config.retry or config.force
        case _:
            return True


def _finished(waiting: list[PlannedRun], workers: int) -> Generator[tuple[PlannedRun, str | None]]:
    """Each run as it ends, with what went wrong, if anything."""
    if workers == 1:
        for planned in waiting:
            yield planned, _one(planned.config, True)
        return
    left = list(waiting)
    while left:
        with closing(_pooled(left, workers)) as ended:
            for planned, problem in ended:
                left.remove(planned)
                yield planned, problem
        # A process that is killed takes its whole pool down: each run that was under way goes on in a pool of its own
        # now, so that the one which is killed again is known and the others are not lost.
        for planned in [one for one in left if folder_of(one.config).state() is State.interrupted] or left[
            :1
        ]:
            left.remove(planned)
            with closing(_pooled([planned], 1)) as alone:
                yield next(alone, (planned, "its process was killed"))


def _pooled(runs: list[PlannedRun], workers: int) -> Generator[tuple[PlannedRun, str | None]]:
    """Runs side by side, each as it ends; stops short where a process was killed.

    A run is handed over only when a worker is free. Whatever ends this early, Ctrl-C or a caller that wants no more,
    asks the workers to stop: each writes its checkpoint after the step at hand.
    """
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _in_a_session_of_its_own)
    waiting = list(runs)
    jobs: dict[Future[str | None], PlannedRun] = {}
    try:
        while waiting or jobs:
            while waiting and len(jobs) < workers:
                planned = waiting.pop(0)
                jobs[pool.submit(_one, planned.config, False)] = planned
            ended, _ = wait(jobs, HEARTBEAT, FIRST_COMPLETED)
            if not ended:
                _tell([planned.config for planned in jobs.values()])
            for job in ended:
                try:
                    problem = job.result()
                except BrokenProcessPool:
                    return
                yield jobs.pop(job), problem
    except BaseException:
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _in_a_session_of_its_own() -> None:
    """Ctrl-C at the terminal reaches the parent alone, which then asks each worker once."""
    os.setsid()


def _tell(configs: list[Config]) -> None:
    """One line on how far the runs are."""
    parts = []
    for config in configs:
        records = folder_of(config).read_metrics()
        step = int(records[-1]["step"]) if records else 0
        parts.append(f"{config.attention.name} seed {config.seed}: step {step} of {config.train.steps}")
    print("  " + "; ".join(parts), file=sys.stderr, flush=True)


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


def _one(config: Config, bar: bool) -> str | None:
    """One run in this process; what went wrong, or None."""
    try:
        outcome = run(config, bar=bar)
    except UserError as error:
        return str(error)
    except Exception as error:  # the traceback is in the run's status; other runs go on
        return f"failed: {error}"
    return outcome.status.error

"""Running a study: several runs side by side in processes of their own, one of which cannot take others down."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from attnlab.config import Config, Launcher, run_id
from attnlab.errors import UserError
from attnlab.run import folder_of, run
from attnlab.study.grid import PlannedRun, Study
from attnlab.tracking.status import State


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
    for number, (planned, problem) in enumerate(_finished(waiting, workers), start=1):
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


def _finished(waiting: list[PlannedRun], workers: int) -> Iterator[tuple[PlannedRun, str | None]]:
    """Each run as it ends, with what went wrong, if anything."""
    if workers == 1:
        for planned in waiting:
            yield planned, _one(planned.config, True)
        return
    left = list(waiting)
    while left:
        for planned, problem in _pooled(list(left), workers):
            left.remove(planned)
            yield planned, problem
        # A process that is killed takes its whole pool down: each run that was under way goes on in a pool of its own
        # now, so that the one which is killed again is known and the others are not lost.
        for planned in [one for one in left if folder_of(one.config).state() is State.interrupted] or left[
            :1
        ]:
            left.remove(planned)
            yield next(_pooled([planned], 1), (planned, "its process was killed"))


def _pooled(runs: list[PlannedRun], workers: int) -> Iterator[tuple[PlannedRun, str | None]]:
    """Runs side by side, each as it ends; stops short where a process was killed."""
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))
    try:
        jobs = {pool.submit(_one, planned.config, False): planned for planned in runs}
        for job in as_completed(jobs):
            try:
                problem = job.result()
            except BrokenProcessPool:
                return
            yield jobs[job], problem
    finally:  # also when nobody wants the rest: runs that have not begun do not begin
        pool.shutdown(cancel_futures=True)


def _one(config: Config, bar: bool) -> str | None:
    """One run in this process; what went wrong, or None."""
    try:
        outcome = run(config, bar=bar)
    except UserError as error:
        return str(error)
    except Exception as error:  # the traceback is in the run's status; other runs go on
        return f"failed: {error}"
    return outcome.status.error

"""The one door through which a run's numbers leave it: into the run folder first, then into the mirror.

The folder is the truth. W&B, when it is on, gets the same records from here; when it fails in the middle of a run
the run goes on without it.
"""

from __future__ import annotations

import logging
import math
import traceback
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from attnlab.config import Config, Tracking
from attnlab.errors import UserError
from attnlab.tracking.files import CannotWrite
from attnlab.tracking.folder import RunFolder
from attnlab.tracking.media import Cell
from attnlab.tracking.status import State, Status

if TYPE_CHECKING:  # wandb_mirror needs the `wandb` extra; with track=none it is not imported at all
    from attnlab.tracking.wandb_mirror import WandbMirror

log = logging.getLogger(__name__)


class Tracker:
    """Logs one run. A context manager; inside it steps never go back, and no name is logged twice at a step.

        with folder.locked():
            folder.create()
            with Tracker(folder, config, run_id=..., group=..., job_type=..., resume_step=0) as tracker:
                tracker.log(100, {"train/loss/nll": 4.2})
                tracker.finish(State.done, results={"test/prefix/bleu": 36.1})

    Leaving the block by an exception writes the status `failed`, with the traceback, or `interrupted` for Ctrl-C and
    SystemExit (which is what a SIGTERM handler should raise).

    run_id: the folder's id, also W&B's. group: the study, or None. job_type: the arm.
    resume_step: the step of the checkpoint from which training goes on, 0 when it starts from nothing; records after
    it (all, at 0) are dropped, since training logs them again. Save a checkpoint after all of its step is logged.
    """

    def __init__(
        self,
        folder: RunFolder,
        config: Config,
        *,
        run_id: str,
        group: str | None,
        job_type: str,
        resume_step: int,
    ) -> None:
        self.folder = folder
        self._config = config
        self._run_id = run_id
        self._group = group
        self._job_type = job_type
        self._resume_step = resume_step
        self._step = 0
        self._names: set[str] = set()  # what was logged at self._step
        self._nan_steps = 0
        self._last_nan_step: int | None = None
        self._first_nan_step: int | None = None
        self._alarms: dict[str, str] = {}  # kind -> its latest sentence
        self._warned: set[str] = set()  # kinds that stand in this process's log
        self._mirror: WandbMirror | None = None
        self._finished = False

    def __enter__(self) -> Tracker:
        self._rewind()
        self._save(State.running)
        try:
            self._mirror = self._open_mirror()
        except BaseException as error:
            self._finish_after(error)
            raise
        return self

    def log(self, step: int, metrics: dict[str, float]) -> None:
        """Record numbers (Python, NumPy or one-element tensors) under their names `split/group/name` at `step`.

        A NaN or an infinity is kept as it is and counted. Raises ValueError for a step before the last one or a name
        that this step already has: W&B would drop or overwrite such a point, with no more than a warning in a log.
        """
        values = {name: _number(name, value) for name, value in metrics.items()}
        self._check(step, values)
        self.folder.metrics.append({"step": step, **values})
        self._take_note(step, values)
        if self._mirror is not None:
            self._mirror.log(step, values)

    def image(self, step: int, name: str, array: np.ndarray) -> None:
        """Record one picture, [h,w] of values in [0,1]; see media.py for how it is made visible."""
        self.images(step, name, [(name.rpartition("/")[2], array)])

    def images(self, step: int, name: str, items: list[tuple[str, np.ndarray]]) -> None:
        """Record (caption, [h,w] in [0,1]) pictures under one name. Raises ValueError as `log` and media.py do."""
        self._check(step, {name: 0.0})
        images = self.folder.add_images(step, name, items)
        self._take_note(step, {name: 0.0})
        if self._mirror is not None:
            self._mirror.media(images)

    def table(self, step: int, name: str, columns: list[str], rows: list[list[Cell]]) -> None:
        """Record a table, such as sample translations. Raises ValueError as `log` does and for uneven rows."""
        self._check(step, {name: 0.0})
        table = self.folder.add_table(step, name, columns, rows)
        self._take_note(step, {name: 0.0})
        if self._mirror is not None:
            self._mirror.media(table)

    def histogram(self, step: int, name: str, low: float, high: float, counts: list[int]) -> None:
        """Record counts in equal bins from `low` to `high`. Raises ValueError as `log` and media.py do."""
        self._check(step, {name: 0.0})
        histogram = self.folder.add_histogram(step, name, low, high, counts)
        self._take_note(step, {name: 0.0})
        if self._mirror is not None:
            self._mirror.media(histogram)

    def alarm(self, sentence: str) -> None:
        """Raise an alarm that nothing judges again: it stays beside the run's numbers from then on."""
        self.alarms({sentence: sentence})

    def alarms(self, judged: Mapping[str, str | None]) -> None:
        """Take up the alarms of an evaluation, as `measure.alarms.judge` returns them: kind -> sentence, or None.

        A sentence stands in the run's status at once, in place of the earlier one of its kind; None, judged and found
        well, takes that out. Kinds that are not named stay. The first sentence of a kind is a warning in the log, one
        line a process, so that a leaking run does not repeat it at every evaluation.
        """
        if self._finished:
            raise ValueError("the run was finished; no alarm can be raised any more")
        before = dict(self._alarms)
        for kind, sentence in judged.items():
            if sentence is None:
                self._alarms.pop(kind, None)
                continue
            self._alarms[kind] = sentence
            if kind not in self._warned:
                self._warned.add(kind)
                log.warning("ALARM in run %s, step %d: %s", self._run_id, self._step, sentence)
        if self._alarms != before:
            self._save(State.running)

    def finish(
        self,
        state: State,
        *,
        error: str | None = None,
        results: dict[str, float] | None = None,
        step: int | None = None,
    ) -> Status:
        """End the run: write its status, which is returned, and close the mirror (for at most track.finish_timeout seconds).

        step: where it ended, for `diverged` the step whose loss or gradient was not finite, which is seldom one that
        was logged; None: the last one that was.
        """
        if self._finished:
            raise ValueError("finish was called twice")
        self._finished = True
        values = {name: _number(name, value) for name, value in (results or {}).items()}
        # A run that has its result is never opened again, so by then the mirror must have all of it, also where a kill
        # comes between the two. Any other end is told at once.
        if state in (State.done, State.diverged):
            self._close(state)
            return self._save(state, error=error, results=values, step=step)
        try:
            return self._save(state, error=error, results=values, step=step)
        finally:  # also on a full disk
            self._close(state)

    def _close(self, state: State) -> None:
        self.folder.metrics.close()
        self.folder.media.close()
        if self._mirror is not None:
            self._mirror.finish(state, nan_steps=self._nan_steps, first_nan_step=self._first_nan_step)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._finished:
            return
        if error is None:
            self.finish(State.failed, error="the run ended without a call of finish")
            raise RuntimeError("Tracker: the block was left without a call of finish")
        self._finish_after(error)

    def _finish_after(self, error: BaseException) -> None:
        match error:
            case KeyboardInterrupt() | SystemExit() | CannotWrite():
                self.finish(State.interrupted)
            case UserError():
                self.finish(State.failed, error=str(error))
            case _:
                self.finish(State.failed, error="".join(traceback.format_exception(error)))

    def _rewind(self) -> None:
        """Drop what follows the checkpoint and take up the counts from what stays."""
        self.folder.rewind(self._resume_step if self._resume_step > 0 else -1)
        logged = [(int(record.pop("step")), record) for record in self.folder.read_metrics()]
        logged += [(item.step, {item.name: 0.0}) for item in self.folder.read_media()]
        for step, values in sorted(logged, key=lambda pair: pair[0]):
            self._take_note(step, values)
        status = self.folder.read_status()
        if self._resume_step > 0 and status is not None:
            # A status from before there were kinds has sentences alone: each is its own kind.
            kinds = status.alarm_kinds or status.alarms
            self._alarms = dict(zip(kinds, status.alarms, strict=True))

    def _check(self, step: int, values: dict[str, float]) -> None:
        if self._finished:
            raise ValueError("the run was finished; nothing can be logged any more")
        if step < self._step:
            raise ValueError(f"step {step} comes after step {self._step}: steps must not go back")
        if step == self._step and (twice := self._names & values.keys()):
            raise ValueError(f"step {step} already has {', '.join(sorted(twice))}")
        if "step" in values:
            raise ValueError('"step" is the name of the record\'s step')

    def _take_note(self, step: int, values: dict[str, float]) -> None:
        if step != self._step:
            self._names = set()
            self._step = step
        self._names |= values.keys()
        if self._last_nan_step != step and not all(map(math.isfinite, values.values())):
            self._nan_steps += 1
            self._last_nan_step = step
            self._first_nan_step = step if self._first_nan_step is None else self._first_nan_step

    def _save(
        self,
        state: State,
        error: str | None = None,
        results: dict[str, float] | None = None,
        step: int | None = None,
    ) -> Status:
        status = Status(
            state=state,
            step=self._step if step is None else step,
            error=error,
            alarms=list(self._alarms.values()),
            alarm_kinds=list(self._alarms),
            nan_steps=self._nan_steps,
            first_nan_step=self._first_nan_step,
            results=results or {},
        )
        self.folder.save_status(status)
        return status

    def _open_mirror(self) -> WandbMirror | None:
        match self._config.track.name:
            case Tracking.none:
                return None
            case Tracking.wandb:
                from attnlab.tracking.wandb_mirror import WandbMirror

                return WandbMirror(
                    self.folder,
                    self._config,
                    run_id=self._run_id,
                    group=self._group,
                    job_type=self._job_type,
                    resume_step=self._resume_step,
                )


def _number(name: str, value: float) -> float:
    if isinstance(value, (str, bytes)):  # float("nan") would take it
        raise ValueError(f"{name}: {value!r} is not a number")
    return float(value)

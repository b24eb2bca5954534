"""Mirrors a run into W&B: the same numbers, pictures and tables under the same names and steps.

Each setting below answers a trap of wandb 0.31 that loses data without an error:
- one W&B run per run in one process needs `reinit`; by default a second `wandb.init` returns the first run;
- every point carries its `step`, and steps do not go back, or W&B drops it;
- the local file is flushed each second, not each 15, so that a killed run can be read up to its last second. W&B
  holds the newest step back until a later one comes, since more may be logged at it; metrics.jsonl has it at once;
- offline, W&B cannot resume: it starts a second record of the same id, which repeats steps of the first. Here the
  new record starts with a replay of the run folder up to the checkpoint, and the old one is moved away.
"""

from __future__ import annotations

import logging
import math
import shlex
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from attnlab.config import Config, TrackMode
from attnlab.errors import UserError
from attnlab.tracking.files import require_writable
from attnlab.tracking.folder import RunFolder
from attnlab.tracking.media import Histogram, Images, Media, Table
from attnlab.tracking.status import State
from attnlab.tracking.wandb_agent import agent_run_id, refuse_second_run
from attnlab.tracking.wandb_facts import LOWEST, is_detail, run_config, run_name
from attnlab.tracking.wandb_records import find_records, next_step, own_id, retire
from attnlab.tracking.wandb_setup import import_wandb, wandb_environment

if TYPE_CHECKING:
    import wandb

log = logging.getLogger(__name__)

_FLUSH_SECONDS = 1.0


class WandbMirror:
    """One open W&B run. Raises UserError when wandb is missing or cannot start offline.

    Once open it never raises: when W&B fails, one warning says so and the run goes on without its mirror.
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
        self._folder = folder
        self._config = config
        self._output = Path(config.output).absolute()
        self._own_id = own_id(run_id, folder.attempt)
        self.wandb_id = agent_run_id() or self._own_id
        self._group = group
        self._job_type = job_type
        self._resume_step = resume_step
        self._lowest: dict[str, float] = {}
        self._last: dict[str, float] = {}
        self._poisoned: set[str] = set()  # metrics of LOWEST that had a NaN
        self._defined: set[str] = set()  # details that W&B was told to hide
        self._cleanup = ExitStack()
        self._first_step = 0  # the server has the steps before it, or will have them from an older record
        self._replaying = True
        self._failed: set[str] = set()  # parts of the mirror that are given up
        self._warned = False
        try:
            # W&B falls back to the temporary folder, in silence, where it cannot write.
            require_writable(self._output / "wandb")
            require_writable(self._output / ".wandb-data")
            self._cleanup.enter_context(wandb_environment(self._output))
            self._wandb = import_wandb()
            refuse_second_run(self._output, self.wandb_id, self._own_id)
            self._run: wandb.Run = self._start(config.track.mode)
            for name in LOWEST:
                self._run.define_metric(name, summary="min,last")
            self._replay()
            self._replaying = False
        except BaseException:
            self._cleanup.close()
            raise

    def log(self, step: int, metrics: dict[str, float]) -> None:
        self._note_lowest(metrics)
        if (shown := self._wandb_step(step)) is not None:
            with self._guarded("numbers") as run:
                for name in filter(is_detail, metrics.keys() - self._defined):
                    self._defined.add(name)
                    run.define_metric(name, hidden=True)
                run.log(metrics, step=shown)

    def media(self, item: Media) -> None:
        shown = self._wandb_step(item.step)
        # After a failure not tried again: a table asks the server first, and without an answer that takes long.
        if shown is None or "media" in self._failed:
            return
        with self._guarded("media") as run:
            match item:
                case Images(name=name, items=items):
                    pictures = [self._wandb.Image(str(path), caption=caption) for caption, path in items]
                    run.log({name: pictures}, step=shown)
                case Table(name=name, columns=columns, rows=rows):
                    table = self._wandb.Table(columns=columns, data=rows, allow_mixed_types=True)
                    run.log({name: table}, step=shown)
                case Histogram(name=name, low=low, high=high, counts=counts):
                    edges = np.linspace(low, high, len(counts) + 1)
                    histogram = self._wandb.Histogram(np_histogram=(np.array(counts), edges))
                    run.log({name: histogram}, step=shown)

    def finish(self, state: State, *, nan_steps: int, first_nan_step: int | None) -> None:
        """Close the W&B run, waiting for an upload at most track.finish_timeout seconds."""
        with self._cleanup:
            summary: dict[str, Any] = {
                "run/state": state.value,
                "run/nan_steps": nan_steps,
                "run/first_nan_step": first_nan_step,
            }
            for name in self._poisoned & self._lowest.keys():  # W&B's own minimum stays NaN after one NaN
                summary[name] = {"min": self._lowest[name], "last": self._last[name]}
            try:
                self._run.log({}, commit=True)  # the newest step, which would change the summary once more
                self._run.summary.update(summary)
                self._run.finish(exit_code=0 if state in (State.done, State.diverged) else 1)
            except TimeoutError:
                timeout = self._config.track.finish_timeout
                self._warn(f"the upload did not end within track.finish_timeout={timeout:g} s")
            except Exception as error:  # whatever W&B raises, the run itself has ended well
                self._warn(_first_line(error))

    def _start(self, mode: TrackMode) -> wandb.Run:
        match mode:
            case TrackMode.offline:
                return self._start_offline()
            case TrackMode.online:
                try:
                    return self._start_online()
                except (self._wandb.Error, OSError) as error:  # OSError includes TimeoutError
                    log.warning(
                        "track.mode=online: %s. This run is recorded offline; upload it later with `%s`",
                        _first_line(error).rstrip("."),
                        self._sync_command(),
                    )
                    return self._start_offline()

    def _start_online(self) -> wandb.Run:
        self._wandb.finish()  # of whatever another library left open: login does nothing beside an open run
        # Asked here, since `init` would prompt for the key on a terminal, in the middle of a sweep.
        if not self._wandb.login(prompt=False, verify=False):
            raise self._wandb.errors.UsageError("no API key (WANDB_API_KEY or `wandb login`)")
        before = set(find_records(self._output, self.wandb_id))
        try:
            run = self._init("online")
        except (self._wandb.Error, OSError):
            self._wandb.teardown()  # it holds on to the id, even of a run that could not start
            for leftover in set(find_records(self._output, self.wandb_id)) - before:
                shutil.rmtree(leftover, ignore_errors=True)  # nothing was logged into it
            raise
        retire(self._output, self.wandb_id)
        self._first_step = run.starting_step  # not run.step, which is still 0 just after the start
        return run

    def _start_offline(self) -> wandb.Run:
        retire(self._output, self.wandb_id)
        self._first_step = next_step(self._output, self.wandb_id)
        try:
            return self._init("offline")
        except Exception as error:  # W&B's service has errors outside its own hierarchy
            raise UserError(
                f"track=wandb: W&B could not start in {self._output} ({_first_line(error)}); "
                "mend that or choose track=none"
            ) from error

    def _init(self, mode: Literal["online", "offline"]) -> wandb.Run:
        track = self._config.track
        return self._wandb.init(
            mode=mode,
            dir=str(self._output),
            project=track.project,
            entity=track.entity,
            id=self.wandb_id,
            name=run_name(self._config),
            group=self._group,
            job_type=self._job_type,
            tags=track.tags,
            config=run_config(self._config, self._own_id, self._folder.read_provenance()),
            resume="allow" if mode == "online" else None,
            reinit="finish_previous",
            settings=self._wandb.Settings(
                init_timeout=track.init_timeout,
                finish_timeout=track.finish_timeout,
                finish_timeout_raises=True,
                x_transaction_log_flush_interval=_FLUSH_SECONDS,
                # The folder has all that these would gather, and what leaves the machine is what the run logs.
                console="off",
                save_code=False,
                disable_code=True,
                disable_git=True,
                disable_job_creation=True,
                x_save_requirements=False,
                x_disable_meta=True,
            ),
        )

    def _replay(self) -> None:
        """Mirror what the folder already holds, in order of steps: what a resumed run did before its checkpoint."""
        records: list[tuple[int, dict[str, float] | Media]] = [
            (int(record.pop("step")), record) for record in self._folder.read_metrics()
        ]
        records += [(item.step, item) for item in self._folder.read_media()]
        for step, record in sorted(records, key=lambda pair: pair[0]):
            if isinstance(record, dict):
                self.log(step, record)
            else:
                self.media(record)

    def _note_lowest(self, metrics: dict[str, float]) -> None:
        for name in metrics.keys() & set(LOWEST):
            value = metrics[name]
            self._last[name] = value
            if math.isnan(value):
                self._poisoned.add(name)
            else:
                self._lowest[name] = min(value, self._lowest.get(name, math.inf))

    def _wandb_step(self, step: int) -> int | None:
        """Where W&B shows what belongs to `step`; None when it has that already.

        Steps that the server has cannot be added to. The steps between the checkpoint and a kill are trained again
        with the same result, so nothing is lost; but what a resumed run adds *at* its checkpoint's step, such as the
        scores after the last step of training, is new, and goes to the first step that is free.
        """
        if step >= self._first_step:
            return step
        return self._first_step if step == self._resume_step and not self._replaying else None

    @contextmanager
    def _guarded(self, part: Literal["numbers", "media"]) -> Iterator[wandb.Run]:
        try:
            yield self._run
        except Exception as error:  # a dashboard must not end hours of training, whatever its library raises
            self._failed.add(part)
            self._warn(f"{part}: {_first_line(error)}")

    def _warn(self, reason: str) -> None:
        """Say once what failed, that nothing is lost, and where W&B's part lies."""
        if not self._warned:
            log.warning(
                "track=wandb: W&B failed (%s); the run folder %s is complete, and what was not uploaded lies in %s "
                "for `wandb sync --include-online`",
                reason,
                self._folder.path,
                Path(self._run.dir).parent,
            )
        self._warned = True

    def _sync_command(self) -> str:
        return shlex.join(["attnlab", "sync", "--output", str(self._output)])


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).strip().splitlines()[0]

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

from attnlab.config import Config, Protocol, TrackMode
from attnlab.errors import UserError
from attnlab.identity import plain
from attnlab.tracking.files import require_writable
from attnlab.tracking.folder import RunFolder
from attnlab.tracking.media import Images, Table
from attnlab.tracking.status import State
from attnlab.tracking.wandb_records import find_records, next_step, retire
from attnlab.tracking.wandb_setup import import_wandb, wandb_environment

if TYPE_CHECKING:
    import wandb

log = logging.getLogger(__name__)

_FLUSH_SECONDS = 1.0

# What W&B's table of runs shows of a metric beside its last value, which it shows of every metric.
_BEST = {
    "dev/nll": "min",
    "dev/prefix_nll": "min",
    "dev/ppl": "min",
    **{
        f"test/{protocol.value}/{score}": "max"
        for protocol in Protocol
        for score in ("bleu", "bleu_lower", "chrf")
    },
}


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
        # A run that was started afresh (force=true) is another run to W&B; its old record stays with its old id.
        self.wandb_id = run_id if folder.attempt == 0 else f"{run_id}_{folder.attempt}"
        self._group = group
        self._job_type = job_type
        self._resume_step = resume_step
        self._best: dict[str, float] = {}
        self._last: dict[str, float] = {}
        self._poisoned: set[str] = set()  # metrics of _BEST that had a NaN
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
            self._run: wandb.Run = self._start(config.track.mode)
            for name, summary in _BEST.items():
                self._run.define_metric(name, summary=f"{summary},last")
            self._replay()
            self._replaying = False
        except BaseException:
            self._cleanup.close()
            raise

    def log(self, step: int, metrics: dict[str, float]) -> None:
        self._note_best(metrics)
        if (shown := self._wandb_step(step)) is not None:
            with self._guarded("numbers") as run:
                run.log(metrics, step=shown)

    def media(self, item: Images | Table) -> None:
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

    def finish(self, state: State, *, nan_steps: int, first_nan_step: int | None) -> None:
        """Close the W&B run, waiting for an upload at most track.finish_timeout seconds."""
        with self._cleanup:
            summary: dict[str, Any] = {
                "run/state": state.value,
                "run/nan_steps": nan_steps,
                "run/first_nan_step": first_nan_step,
            }
            for name in self._poisoned & self._best.keys():  # W&B's own minimum stays NaN after one NaN
                summary[name] = {_BEST[name]: self._best[name], "last": self._last[name]}
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
            name=f"{self._job_type}-s{self._config.seed}",
            group=self._group,
            job_type=self._job_type,
            tags=track.tags,
            config=self._wandb_config(),
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

    def _wandb_config(self) -> dict[str, Any]:
        """The configuration as typed leaves, so that runs can be filtered by `model.d_k`, and the provenance."""
        config = plain(self._config)
        # The grid is the study's, not the run's, and its keys ("model.d_k") would be taken for paths.
        del config["study"]["grid"], config["study"]["cells"]
        provenance = self._folder.read_provenance()
        if provenance is not None:
            config["provenance"] = {key: value for key, value in provenance.items() if key != "earlier"}
        return _json_safe(config)

    def _replay(self) -> None:
        """Mirror what the folder already holds, in order of steps: what a resumed run did before its checkpoint."""
        records: list[tuple[int, dict[str, float] | Images | Table]] = [
            (int(record.pop("step")), record) for record in self._folder.read_metrics()
        ]
        records += [(item.step, item) for item in self._folder.read_media()]
        for step, record in sorted(records, key=lambda pair: pair[0]):
            if isinstance(record, dict):
                self.log(step, record)
            else:
                self.media(record)

    def _note_best(self, metrics: dict[str, float]) -> None:
        for name in _BEST.keys() & metrics.keys():
            value = metrics[name]
            self._last[name] = value
            if math.isnan(value):
                self._poisoned.add(name)
            elif name not in self._best:
                self._best[name] = value
            else:
                better = min if _BEST[name] == "min" else max
                self._best[name] = better(self._best[name], value)

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


def _json_safe(value: Any) -> Any:
    """Infinities as the words that the command line takes ("-inf"): W&B's server speaks strict JSON."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {key: _json_safe(item) for key, item in value.items()}
        case list():
            return [_json_safe(item) for item in value]
        case _:
            return value


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).strip().splitlines()[0]

"""Runs on more than one machine: each is one job, handed to the launcher object of a Hydra plugin.

launch=slurm is hydra-submitit-launcher, launch=ray is hydra-ray-launcher; scheduling is theirs. The machines share the
output folder (and data.dir), since a job leaves its results in its run folder like any run.

The launch() of either plugin waits for its jobs in turn and raises at the first that was killed. The others go on all
the same, under way or in the queue, so they are watched until each has ended.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.compose import conf_dir, typed
from attnlab.config import Config, LaunchConfig
from attnlab.errors import UserError
from attnlab.study.attempt import Attempt, attempt, one_sentence
from attnlab.study.board import Board
from attnlab.study.grid import PlannedRun, Study
from attnlab.study.pending import Pending
from attnlab.study.submitted import Submitted, noted, problem_of
from attnlab.tracking.status import State

if TYPE_CHECKING:
    from hydra.plugins.launcher import Launcher
    from omegaconf import DictConfig

LOOK = 1.0  # seconds between looks at the run folders
GAP = 30.0  # seconds that a launch which has raised may show no run under way: a job takes a while to begin its run

Ended = tuple[PlannedRun, Attempt]


def through_plugin(study: Study, runs: Sequence[PlannedRun], board: Board) -> Generator[Ended]:
    """Each run as its folder says that it ended. Raises UserError without the plugin and for options it has not.

    Ctrl-C ends the watching: jobs that the cluster has go on there, and the same command finds what they left.
    """
    if study.base.fail_fast:
        raise UserError(
            f"fail_fast: got true with launch={study.base.launch.name}, whose jobs cannot be called back, "
            "allowed: false, or launch=local"
        )
    if not runs:
        return
    launcher = launcher_of(study)
    commands = [[*study.fixed, *run.overrides, *_spelled_out(run.config)] for run in runs]
    told: dict[tuple[str, ...], str | None] = {}  # what each job said went wrong
    raised: list[str] = []
    jobs: list[Submitted] = []

    def hand_over() -> None:
        try:
            with noted(jobs):
                ends = launcher.launch(commands, initial_job_idx=0)
            told.update((run.overrides, end.return_value) for run, end in zip(runs, ends, strict=True))
        except Exception as error:  # the plugin's own: a job was killed, the cluster cannot be reached
            raised.append(one_sentence(error))

    pending = Pending(runs)
    launching = threading.Thread(target=hand_over, daemon=True)
    launching.start()
    seen = time.monotonic()  # when a job was last known to be there
    while pending:
        if launching.is_alive():
            launching.join(LOOK)
        else:
            time.sleep(LOOK)
        over = not launching.is_alive() and all(job.done() for job in jobs)
        for run in pending.made_elsewhere():
            yield run, Attempt(None)
        running = [run for run in pending.left() if run.folder.state() is State.running]
        board.tick(running)
        if running or not over:
            seen = time.monotonic()
        elif not raised or time.monotonic() - seen >= GAP:
            break
    if raised:
        told = dict.fromkeys((run.overrides for run in runs), raised[0])
        told |= {run.overrides: problem_of(job) for run, job in zip(runs, jobs, strict=False)}
    for run in pending.left():
        yield run, Attempt(told[run.overrides] or f"its job left no result; what it printed: {_logs(study)}")


def launcher_of(study: Study) -> Launcher:
    """The plugin's launcher, set up to run `job` for each list of overrides."""
    from hydra import initialize_config_dir
    from hydra._internal.callbacks import Callbacks
    from hydra.core.config_store import ConfigStore
    from hydra.core.global_hydra import GlobalHydra
    from hydra.core.plugins import Plugins
    from hydra.types import HydraContext, RunMode
    from omegaconf import open_dict

    config = study.base.launch
    os.environ.setdefault(
        "RAY_USAGE_STATS_ENABLED", "0"
    )  # Ray reports its use to its maker unless told not to
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        hydra = GlobalHydra.instance().hydra
        assert hydra is not None
        if f"{config.plugin}.yaml" not in ConfigStore.instance().list("hydra/launcher"):
            raise UserError(
                f"launch.plugin: got '{config.plugin}', which is not installed, allowed: "
                f"pip install 'attnlab[{config.name}]', or launch=local"
            )
        composed = hydra.compose_config(
            "config",
            [*study.fixed, *_spelled_out(study.base), f"hydra/launcher={config.plugin}", "hydra/job_logging=disabled",
             "hydra/hydra_logging=disabled", f"hydra.sweep.dir={_quoted(str(_logs(study)))}", "hydra.sweep.subdir=."],
            RunMode.MULTIRUN, from_shell=False, with_log_configuration=False,
        )  # fmt: skip
        with open_dict(composed):
            composed.hydra.launcher = _with_options(composed.hydra.launcher, config)
        context = HydraContext(config_loader=hydra.config_loader, callbacks=Callbacks())
        return Plugins.instance().instantiate_launcher(
            hydra_context=context, task_function=job, config=composed
        )


def job(composed: DictConfig) -> str | None:
    """What a machine of the cluster does: one run. The problem, if there was one."""
    return attempt(typed(composed)).problem


def _with_options(launcher: DictConfig, config: LaunchConfig) -> DictConfig:
    """The plugin's settings with those of launch.options that are not null, and `workers` where it has a place."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    given: dict[str, Any] = {key: value for key, value in config.options.items() if value is not None}
    if config.workers is not None and "array_parallelism" in launcher:
        given["array_parallelism"] = config.workers
    try:
        merged = OmegaConf.merge(launcher, given)
    except OmegaConfBaseException as error:
        names = sorted(str(key) for key in launcher if not str(key).startswith("_"))
        raise UserError(
            f"launch.options.{error.full_key}: got a setting that {config.plugin} does not take, allowed: {', '.join(names)}"
        ) from None
    assert OmegaConf.is_dict(merged)
    return merged  # type: ignore[return-value]  # a merge of two mappings is one


def _spelled_out(config: Config) -> list[str]:
    """The folders of a run in full, to stand last among its overrides: its job may start in another one."""
    folders = {"output": Path(config.output)}
    if config.data.dir is not None:
        folders["data.dir"] = Path(config.data.dir).expanduser()
    return [f"{key}={_quoted(str(path.absolute()))}" for key, path in folders.items()]


def _logs(study: Study) -> Path:
    """Where the plugin keeps what its jobs print."""
    return Path(study.base.output).absolute() / "logs" / f"{study.name}-{study.base.launch.name}"


def _quoted(text: str) -> str:
    """As a text of Hydra's grammar, where a backslash is one unless a quote follows."""
    escaped = re.sub(r"(\\*)('|$)", lambda found: found[1] * 2 + ("\\'" if found[2] else ""), text)
    return f"'{escaped}'"

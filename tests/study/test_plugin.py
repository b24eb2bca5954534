"""Runs handed to Hydra's plugins: a Slurm of this machine's processes, a Ray of this machine, and what is refused."""

import os
import threading
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from end_to_end.conftest import SMALL
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf
from stand_ins import job_killed

from attnlab.compose import load
from attnlab.config import LaunchConfig, Launcher
from attnlab.errors import UserError
from attnlab.run import run
from attnlab.study import plugin
from attnlab.study.board import Board
from attnlab.study.grid import expand
from attnlab.study.launch import launch
from attnlab.study.plugin import _quoted, _with_options, through_plugin
from attnlab.tracking.folder import folder_of
from attnlab.tracking.status import State, Status

DEMO = ["experiment=demo", *SMALL, "track=none", "attention=correct,zero_fill", "decode.protocols=[prefix]"]
SUBMITIT_LOCAL = ["launch=slurm", "launch.plugin=submitit_local", "launch.options.timeout_min=10"]


@pytest.mark.parametrize(
    "text", ["/a/b", "/with space/and,comma=1", "it's", "back\\slash", "end\\", "\\'", "{x: 1}"]
)
def test_any_folder_is_one_text_in_hydras_grammar(text):
    assert OverridesParser.create().parse_override(f"output={_quoted(text)}").value() == text


def test_options_are_the_plugins_own_and_null_leaves_its_default():
    own = OmegaConf.structured(
        {"_target_": "x.Y", "partition": "any", "timeout_min": 60, "array_parallelism": 256}
    )
    OmegaConf.set_struct(own, True)
    config = LaunchConfig(Launcher.slurm, 16, "submitit_slurm", {"timeout_min": 240, "partition": None})
    made = _with_options(own, config)
    assert made == {"_target_": "x.Y", "partition": "any", "timeout_min": 240, "array_parallelism": 16}
    config.options["partiton"] = "gpu"
    with pytest.raises(
        UserError, match=r"launch.options.partiton: .*allowed: array_parallelism, partition, timeout_min"
    ):
        _with_options(own, config)


class Job:
    """A job of submitit's, which ends when the test says so; a problem is returned, an exception is its death."""

    def __init__(self):
        self.over = threading.Event()
        self.answer = None

    def end(self, answer=None):
        self.answer = answer
        self.over.set()

    def done(self):
        return self.over.is_set()

    def result(self):
        self.over.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return SimpleNamespace(return_value=self.answer)


def watched(study, monkeypatch, launch):
    """What became of each run, by its seed, where the plugin's launcher does `launch`; and how often it was looked."""
    looks = []
    monkeypatch.setattr(plugin, "launcher_of", lambda _: SimpleNamespace(launch=launch))
    monkeypatch.setattr(Board, "tick", lambda *_: looks.append(time.monotonic()))
    monkeypatch.setattr(plugin, "LOOK", 0.05)
    with closing(through_plugin(study, study.runs, Board(study.runs))) as over:
        return {run.config.seed: found.problem for run, found in over}, looks


def seeds(tmp_path, launcher):
    return expand([*DEMO, f"output={tmp_path}", "attention=correct", "seed=1,2,3", f"launch={launcher}"])


def done(run):
    run.folder.create()
    run.folder.save_status(Status(State.done))


def test_a_killed_job_gives_up_no_other_that_waits_in_the_queue(tmp_path, monkeypatch):
    submitit = pytest.importorskip("submitit")
    study = seeds(tmp_path, "slurm")
    killed, queued, refused = jobs = [Job(), Job(), Job()]
    monkeypatch.setattr(submitit.AutoExecutor, "map_array", lambda *_: jobs)

    def launch_of_hydra_submitit(commands, initial_job_idx):
        submitted = submitit.AutoExecutor(tmp_path, "debug").map_array(print, commands)
        return [job.result() for job in submitted]

    killed.end(RuntimeError("out of memory"))
    refused.end("data: got no text")
    threading.Timer(0.4, lambda: (done(study.runs[1]), queued.end())).start()  # until then it only waits
    monkeypatch.setattr(plugin, "GAP", 0.1)
    began = time.monotonic()
    found, looks = watched(study, monkeypatch, launch_of_hydra_submitit)
    assert found == {1: "RuntimeError: out of memory", 2: None, 3: "data: got no text"}
    assert len(looks) <= (time.monotonic() - began) / plugin.LOOK + 1  # it waits in between
    assert submitit.AutoExecutor.map_array(None) is jobs  # left as it was


def test_after_a_launch_that_raised_a_run_may_take_a_while_to_begin(tmp_path, monkeypatch):
    study = seeds(tmp_path, "ray")

    def cluster():
        time.sleep(0.3)
        with study.runs[1].folder.locked():
            study.runs[1].folder.create()
            study.runs[1].folder.save_status(Status(State.running))
            time.sleep(0.3)
            done(study.runs[1])
        time.sleep(0.3)
        done(study.runs[2])

    def launch_of_ray(commands, initial_job_idx):
        threading.Thread(target=cluster).start()
        raise RuntimeError("a worker crashed")

    monkeypatch.setattr(plugin, "GAP", 2.0)
    found, _ = watched(study, monkeypatch, launch_of_ray)
    assert found == {1: "RuntimeError: a worker crashed", 2: None, 3: None}


def test_a_job_that_starts_in_another_folder_finds_text_and_output(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = expand(
        ["experiment=demo", "data=files", "data.dir=my text", "data.name=mine", "attention=correct", "seed=1,2,3",
         "output=there", "launch=slurm"]
    )  # fmt: skip
    given = []

    def launch_of_nothing(commands, initial_job_idx):
        given.extend(commands)
        return [SimpleNamespace(return_value=None) for _ in commands]

    watched(study, monkeypatch, launch_of_nothing)
    monkeypatch.chdir("/")
    configs = [load(command) for command in given]
    assert [Path(config.data.dir) for config in configs] == [tmp_path / "my text"] * 3
    assert [folder_of(config).path for config in configs] == [
        tmp_path / "there" / "runs" / run.run_id for run in study.runs
    ]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_job_that_is_killed_takes_no_other_down(tmp_path, monkeypatch):
    pytest.importorskip("hydra_plugins.hydra_submitit_launcher")
    monkeypatch.setattr(plugin, "job", job_killed)
    monkeypatch.setattr(plugin, "GAP", 0.0)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    study = expand([*DEMO, f"output={tmp_path}", "attention=zero_fill,correct", *SUBMITIT_LOCAL])
    with closing(through_plugin(study, study.runs, Board(study.runs))) as over:
        found = {run.config.attention.name: ended.problem for run, ended in over}
    assert found["correct"] is None
    assert "UncompletedJobError" in found["zero_fill"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "more"),
    [
        ("hydra_plugins.hydra_submitit_launcher", SUBMITIT_LOCAL),
        ("hydra_plugins.hydra_ray_launcher", ["launch=ray", "launch.options.ray.init.num_cpus=2"]),
    ],
    ids=["slurm", "ray"],
)
@pytest.mark.timeout(600)
def test_each_run_is_a_job_that_leaves_what_a_run_leaves(tmp_path, monkeypatch, module, more, capfd):
    pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    study = expand([*DEMO, "output=there", *more])  # a job may start in another folder
    assert list(launch(study).values()) == [State.done] * 2
    shown = capfd.readouterr().err
    assert "[2/2]" in shown
    assert "as jobs of" in shown
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    planned = study.runs[1]
    alone = run(load([*study.fixed, *planned.overrides, "output=alone"]), bar=False).status.results
    assert folder_of(planned.config).read_status().results == alone
    launch(study)
    assert "2 done, 0 to run" in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_job_that_cannot_run_is_told_with_its_reason(tmp_path, capfd):
    pytest.importorskip("hydra_plugins.hydra_submitit_launcher")
    too_many = ["attention=correct", "data.tokenizer.vocab_size=100000"]
    study = expand([*DEMO, f"output={tmp_path}", *SUBMITIT_LOCAL, *too_many])
    assert list(launch(study).values()) == [None]
    assert "too large" in capfd.readouterr().err

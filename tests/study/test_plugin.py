"""Runs handed to Hydra's plugins: a Slurm of this machine's processes, a Ray of this machine, and what is refused."""

import os

import pytest
from end_to_end.conftest import SMALL
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from attnlab.compose import load
from attnlab.config import LaunchConfig, Launcher
from attnlab.errors import UserError
from attnlab.run import run
from attnlab.study.grid import expand
from attnlab.study.launch import launch
from attnlab.study.plugin import _quoted, _with_options
from attnlab.tracking.folder import folder_of
from attnlab.tracking.status import State

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

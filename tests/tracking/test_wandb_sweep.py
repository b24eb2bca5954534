"""conf/wandb_sweep: each file is what the command makes of its study, and says the study's grid; run by a real agent."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf
from tracking_example import child_environment, expanded
from wandb_server import ENTITY, SWEEP, StandIn

from attnlab import cli
from attnlab.compose import conf_dir
from attnlab.config import Config
from attnlab.errors import UserError
from attnlab.identity import run_id
from attnlab.study.grid import Impossible, PlannedRun, expand
from attnlab.tracking.folder import RunFolder
from attnlab.tracking.status import State
from attnlab.tracking.workspace.sweep import sweep

STUDIES = sorted(path.stem for path in (conf_dir() / "experiment").glob("*.yaml"))


def agents_commands(text: str) -> list[list[str]]:
    """What an agent runs for each combination, as wandb 0.31 puts it together (`create_sweep_command_args`)."""
    config = yaml.safe_load(text)
    axes = {key: axis["values"] for key, axis in config["parameters"].items()}
    commands = []
    for values in itertools.product(*axes.values()):
        arguments = [f"{key}={value}" for key, value in zip(axes, values, strict=True)]
        *command, last = config["command"]
        assert last == "${args_no_hyphens}"
        commands.append([*command, *arguments])
    return commands


def test_each_study_has_its_file_and_no_file_is_left_over() -> None:
    assert sorted(path.stem for path in (conf_dir() / "wandb_sweep").iterdir()) == STUDIES


@pytest.mark.parametrize("study", STUDIES)
def test_the_file_is_what_the_command_makes(study: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["workspace", f"experiment={study}", "--sweep"]) == 0
    made, path = capsys.readouterr().out, conf_dir() / "wandb_sweep" / f"{study}.yaml"
    assert path.read_text(encoding="utf-8") == made, f"attnlab workspace experiment={study} --sweep > {path}"


@pytest.mark.parametrize("study", STUDIES)
def test_the_sweeps_grid_is_the_studys(study: str) -> None:
    text = (conf_dir() / "wandb_sweep" / f"{study}.yaml").read_text(encoding="utf-8")
    own: Any = OmegaConf.to_container(OmegaConf.load(conf_dir() / "experiment" / f"{study}.yaml"))
    axes = {key: axis["values"] for key, axis in yaml.safe_load(text)["parameters"].items()}
    assert axes == own["study"]["grid"]
    listed = len(own["study"].get("cells", []))
    assert (f"the {listed} cells that the study lists" in text) == (listed > 0)
    command = agents_commands(text)[-1]
    assert command[:3] == ["attnlab", "run", f"experiment={study}"]
    (planned,) = expand(command[2:]).cells  # one run, though the study may list cells beside its grid
    assert isinstance(planned, PlannedRun)
    assert run_id(planned.config) in {run_id(one.config) for one in expanded(study).runs}
    assert (planned.config.track.name, planned.config.track.mode) == ("wandb", "online")


def test_values_arrive_as_the_command_line_takes_them() -> None:
    """None, booleans and lists would be written as Python's by an agent."""
    axes = [
        ("model.d_k", "null", "8"),
        ("model.tie_embeddings", "true", "false"),
        ("attention.where.layers", "[1,2]", "null"),
    ]
    axes += [("train.lr", "3e-4", "0.001"), ("data.name", "007", "'a b'")]
    written = [[f"{key}={value}" for value in values] for key, *values in axes]
    cells = [Impossible(overrides, "") for overrides in itertools.product(*written)]
    text = sweep(replace(expanded("demo"), cells=cells, fixed=("experiment=demo",)), 0)
    assert [command[-len(axes) :] for command in agents_commands(text)] == [
        list(cell.overrides) for cell in cells
    ]
    assert yaml.safe_load(text)["parameters"]["train.lr"]["values"] == [
        "3e-4",
        0.001,
    ]  # numbers where that is the same


def test_a_study_without_a_grid_is_refused() -> None:
    with pytest.raises(UserError, match=r"study\.grid: got nothing in demo"):
        sweep(replace(expanded("demo"), cells=[]), 0)


@pytest.mark.slow
def test_a_sweep_and_an_agent_train_the_grid(server: StandIn, tmp_path: Path, output: Path) -> None:
    """`wandb sweep` and `wandb agent` themselves, on two runs of seconds; then nothing is left for the study to do."""
    pytest.importorskip("wandb", reason="comes with attnlab[wandb]")
    small = [
        "experiment=demo", "attention=correct,zero_fill", f"output={output}", "data.train_pairs=60", "data.dev_pairs=4",
        "data.test_pairs=4", "data.tokenizer.vocab_size=200", "model.d_model=16", "model.heads=2", "model.d_ff=16",
        "model.encoder_layers=1", "model.decoder_layers=1", "train.steps=4", "train.warmup=1", "measure.every=2",
        "measure.evaluate_every=4", "decode.max_length_factor=0", "decode.max_length_extra=4",
    ]  # fmt: skip
    text = sweep(expand(small), 0)
    (tmp_path / "sweep.yaml").write_text(text)

    def wandb(*arguments: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        return subprocess.run(
            [sys.executable, "-m", "wandb", *arguments], env=child_environment() | server.environment() | {"PATH": path},
            cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200,
        )  # fmt: skip

    made = wandb("sweep", "--project", "attnlab", "sweep.yaml")
    assert made.returncode == 0, made.stderr
    ran = wandb("agent", f"{ENTITY}/attnlab/{SWEEP}")
    assert ran.returncode == 0, ran.stderr
    assert set(server.runs) == {"agent-run-0", "agent-run-1"}
    seen: dict[str, Config] = {}
    for planned in expand(small).runs:
        folder = RunFolder(output / "runs" / run_id(planned.config))
        assert folder.state() is State.done
        (run,) = [run for run in server.runs.values() if run.config["run_id"] == folder.path.name]
        assert run.config["attention"]["name"] == planned.config.attention.name
        assert run.summary["test/prefix/bleu"] == folder.read_status().results["test/prefix/bleu"]
        assert run.upsert["sweep"] == SWEEP
        seen[folder.path.name] = planned.config
    assert len(seen) == 2

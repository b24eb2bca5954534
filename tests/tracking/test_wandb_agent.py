"""Runs that an agent of a W&B sweep starts, in the environment that `wandb agent` makes (read in wandb 0.31).

Each in a process of its own: W&B reads the environment once a process.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from test_wandb_mirror import assert_same, by_step, numbers
from test_wandb_online import FINISH, KILL, STOP, server_numbers, steps
from tracking_example import Child, make_config, make_folder
from wandb_server import StandIn

from attnlab import cli
from attnlab.identity import plain
from attnlab.tracking.sync import unsynced
from attnlab.tracking.wandb_agent import refuse_many_runs
from attnlab.tracking.wandb_reader import read_wandb
from attnlab.tracking.wandb_records import find_records

pytest.importorskip("wandb", reason="comes with attnlab[wandb]")

AGENTS = "agent-run"


@pytest.fixture
def agent(tmp_path: Path) -> dict[str, str]:
    """What an agent sets for its run: ids, and a file of the sweep's parameters that W&B would take as configuration."""
    parameters = tmp_path / "sweep" / "config-agent-run.yaml"
    parameters.parent.mkdir()
    parameters.write_text(
        "wandb_version: 1\n\nattention:\n  value: no_scale\nmodel.d_k:\n  value: 8\nseed:\n  value: '1'\n"
    )
    return {
        "WANDB_SWEEP_ID": "a-sweep",
        "WANDB_RUN_ID": AGENTS,
        "WANDB_SWEEP_PARAM_PATH": str(parameters),
        "WANDB_PROJECT": "attnlab-tests",
        "WANDB_DIR": str(tmp_path),
    }


def test_the_agents_run_gets_the_numbers_and_the_typed_configuration(
    server: StandIn, child: Child, output: Path, agent: dict[str, str]
) -> None:
    result = child(steps("online", 0, 20, FINISH), agent | server.environment())
    assert (result.returncode, result.stderr) == (0, "")
    assert set(server.runs) == {AGENTS}
    assert_same(server_numbers(server, AGENTS), by_step(make_folder(output)))
    run = server.runs[AGENTS]
    assert run.upsert["sweep"] == "a-sweep"
    assert run.config["run_id"] == "0123456789"  # the run folder's
    assert run.config["attention"] == plain(make_config(output))["attention"] | {"mask_fill": "-inf"}
    assert "model.d_k" not in run.config
    assert run.config["seed"] == 1


@pytest.mark.slow
def test_a_killed_run_of_an_agent_goes_on_with_each_step_once(
    server: StandIn, child: Child, output: Path, agent: dict[str, str]
) -> None:
    child(steps("online", 0, 25, KILL), agent | server.environment())
    result = child(steps("online", 11, 40, FINISH, resume=10), agent | server.environment())
    assert result.returncode == 0, result.stderr
    assert_same(server_numbers(server, AGENTS), by_step(make_folder(output)))


@pytest.mark.slow
def test_a_run_that_goes_on_under_another_agent_arrives_whole(
    server: StandIn, child: Child, output: Path, agent: dict[str, str]
) -> None:
    assert child(steps("online", 0, 20, STOP), agent | server.environment()).returncode == 0
    other = agent | {"WANDB_RUN_ID": "another", "WANDB_SWEEP_ID": "another-sweep"}
    assert child(steps("online", 11, 30, FINISH, resume=10), other | server.environment()).returncode == 0
    assert_same(server_numbers(server, "another"), by_step(make_folder(output)))
    assert max(server_numbers(server, AGENTS)) == 20


def test_a_second_run_in_the_agents_run_is_refused(child: Child, output: Path, agent: dict[str, str]) -> None:
    assert child(steps("offline", 0, 5, FINISH), agent).returncode == 0
    second = steps("offline", 0, 5, FINISH).replace(
        "make_folder(output)", "make_folder(output, 'abcdefabcd')"
    )
    result = child(second, agent)
    assert result.stderr.strip().splitlines()[-1] == (
        "attnlab.errors.UserError: WANDB_RUN_ID: got agent-run, which holds run 0123456789, allowed: one run for each "
        "run of an agent"
    )
    (record,) = find_records(output)
    assert_same(numbers(read_wandb(record).history), by_step(make_folder(output)))


def test_a_study_is_refused_in_an_agents_process_and_one_run_is_not(
    output: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refuse_many_runs(4)
    monkeypatch.setenv("WANDB_RUN_ID", AGENTS)
    refuse_many_runs(4)  # an id alone is no agent
    monkeypatch.setenv("WANDB_SWEEP_ID", "a-sweep")
    refuse_many_runs(1)
    assert cli.main(["run", "experiment=demo", f"output={output}"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("attnlab: experiment: got 4 runs in a process of `wandb agent`, allowed: one")
    assert not output.exists()


def test_sync_leaves_the_running_run_of_an_agent_alone(
    child: Child, output: Path, agent: dict[str, str]
) -> None:
    wait = "time.sleep(1.5)\nwith folder.locked():\n    from attnlab.tracking.sync import unsynced\n"
    result = child(steps("offline", 0, 5, wait + "    print(unsynced(output))\n" + FINISH), agent)
    assert (result.returncode, result.stdout.strip()) == (0, "[]")
    assert unsynced(output) == find_records(output) != []

"""Launching: side by side or in turn, one failure among others, and the same command again."""

import os
import signal
from pathlib import Path

import pytest
from end_to_end.conftest import SMALL

import attnlab.run
from attnlab.run import folder_of
from attnlab.study.grid import expand
from attnlab.study.launch import _finished, launch
from attnlab.summary import study_table
from attnlab.tracking.status import State

DEMO = ["experiment=demo", *SMALL, "track=none", "attention=correct,zero_fill", "decode.protocols=[prefix]"]


@pytest.mark.parametrize("launcher", ["serial", "local"])
def test_every_run_is_done_and_a_second_launch_trains_nothing(tmp_path, launcher, capfd):
    study = expand([*DEMO, f"output={tmp_path}", f"launch={launcher}"])
    states = launch(study)
    assert list(states.values()) == [State.done] * 2
    written = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("status.json")}
    assert launch(study) == states
    assert written == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("status.json")}
    assert "0 to run" in capfd.readouterr().err
    shown = study_table(study)
    for planned in study.runs:
        results = folder_of(planned.config).read_status().results
        row = next(line for line in shown.splitlines() if line.startswith(planned.config.attention.name))
        assert f"{results['final/dev/nll']:.3f}" in row
        assert f"{results['test/prefix/bleu']:.3f}" in row


@pytest.fixture
def broken_zero_fill(monkeypatch):
    """The arm zero_fill fails by an error of the program's."""
    right = attnlab.run.build

    def build(model, attention, *more):
        if attention.name == "zero_fill":
            raise RuntimeError("boom")
        return right(model, attention, *more)

    monkeypatch.setattr("attnlab.run.build", build)


def test_R39_one_failed_run_takes_no_other_down_and_is_retried_only_when_asked(
    tmp_path, capfd, broken_zero_fill
):
    bad = [*DEMO, f"output={tmp_path}", "launch=serial", "attention=zero_fill,correct"]
    states = launch(expand(bad))
    assert sorted(states.values()) == [State.done, State.failed]
    assert "boom" in capfd.readouterr().err
    launch(expand(bad))
    assert "0 to run" in capfd.readouterr().err
    launch(expand([*bad, "retry=true"]))
    assert "1 to run" in capfd.readouterr().err


def test_fail_fast_stops_at_the_first_failure(tmp_path, broken_zero_fill):
    bad = [*DEMO, f"output={tmp_path}", "launch=serial", "attention=zero_fill,correct", "fail_fast=true"]
    assert list(launch(expand(bad)).values()) == [State.failed, None]


def test_a_mistake_of_the_user_s_is_no_failed_run_and_runs_once_it_is_mended(tmp_path, capfd):
    study = expand(
        [
            *DEMO,
            f"output={tmp_path}",
            "launch=serial",
            "attention=correct",
            "data.tokenizer.vocab_size=100000",
        ]
    )
    assert list(launch(study).values()) == [None]
    assert "too large" in capfd.readouterr().err


def killed_once(config, bar):
    """Stands in for `_one` in a worker: the first run of all kills its own process, as an out-of-memory killer would."""
    flag = Path(config.output) / "killed"
    if config.attention.name == "zero_fill" and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return None


def killed_always(config, bar):
    """The same each time it is tried."""
    if config.attention.name == "zero_fill":
        os.kill(os.getpid(), signal.SIGKILL)
    return None


@pytest.mark.parametrize(
    ("worker", "problem"), [(killed_once, None), (killed_always, "its process was killed")]
)
def test_a_killed_process_takes_no_other_run_down(tmp_path, monkeypatch, worker, problem):
    monkeypatch.setattr("attnlab.study.launch._one", worker)
    study = expand([*DEMO, f"output={tmp_path}", "launch.workers=2", "seed=1,2"])
    ended = {(p.config.attention.name, p.config.seed): text for p, text in _finished(study.runs, 2)}
    assert len(ended) == 4
    assert ended["correct", 1] is ended["correct", 2] is None
    assert problem in ended.values()

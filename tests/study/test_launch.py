"""Launching: side by side or in turn, one failure among others, two launches at once, and the same command again."""

import json
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from end_to_end.conftest import SMALL
from stand_ins import killed_always, killed_once, killed_when_idle, noisy

import attnlab.run
from attnlab.errors import UserError
from attnlab.study import launch as launching
from attnlab.study.board import Board
from attnlab.study.grid import expand
from attnlab.study.launch import launch, where, workers_of
from attnlab.study.pending import Pending
from attnlab.study.side_by_side import side_by_side
from attnlab.summary import study_table
from attnlab.tracking.folder import folder_of
from attnlab.tracking.status import State, Status

DEMO = ["experiment=demo", *SMALL, "track=none", "attention=correct,zero_fill", "decode.protocols=[prefix]"]


def ended(runs, workers, work):
    """What became of each run, by arm and seed, with `work` in the workers in place of training."""
    with closing(side_by_side(runs, workers, Board(runs), work)) as over:
        return {(run.config.attention.name, run.config.seed): found.problem for run, found in over}


@pytest.mark.parametrize("launcher", ["serial", "local"])
def test_every_run_is_done_and_a_second_launch_trains_nothing(tmp_path, launcher, capfd):
    study = expand([*DEMO, f"output={tmp_path}", f"launch={launcher}", "launch.workers=2"])
    states = launch(study)
    assert list(states.values()) == [State.done] * 2
    written = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("status.json")}
    assert launch(study) == states
    assert written == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("status.json")}
    assert "2 runs, 2 done, 0 to run" in capfd.readouterr().err
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
    shown = capfd.readouterr().err
    at_once, afterwards = shown.index("FAILED: RuntimeError: boom"), shown.index("[2/2]")
    assert at_once < afterwards
    failed = next(name for name, state in states.items() if state is State.failed)
    assert str(tmp_path / "runs" / failed / "status.json") in shown
    assert "Traceback" in json.loads((tmp_path / "runs" / failed / "status.json").read_text())["error"]
    assert re.search(r"\nfailed\n  zero_fill seed 1: RuntimeError: boom\n", study_table(expand(bad)))
    launch(expand(bad))
    assert "0 to run, 1 failed earlier (retry=true tries again)" in capfd.readouterr().err
    launch(expand([*bad, "retry=true"]))
    assert "1 to run" in capfd.readouterr().err


def test_fail_fast_stops_at_the_first_failure(tmp_path, broken_zero_fill):
    bad = [*DEMO, f"output={tmp_path}", "launch=serial", "attention=zero_fill,correct", "fail_fast=true"]
    assert list(launch(expand(bad)).values()) == [State.failed, None]


def test_a_mistake_of_the_user_s_is_no_failed_run_and_runs_once_it_is_mended(tmp_path, capfd):
    too_many = "data.tokenizer.vocab_size=100000"
    study = expand([*DEMO, f"output={tmp_path}", "launch=serial", "attention=correct", too_many])
    assert list(launch(study).values()) == [None]
    assert "too large" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("work", "problem"), [(killed_once, None), (killed_always, "its process was killed (SIGKILL)")]
)
def test_a_killed_process_takes_no_other_run_down(tmp_path, work, problem, capfd):
    study = expand([*DEMO, f"output={tmp_path}", "seed=1,2"])
    over = ended(study.runs, 2, work)
    told = over.pop(("zero_fill", 1)) if problem else None
    assert problem is None or problem in told
    assert len(over) == 4 - (problem is not None)
    assert set(over.values()) == {None}
    assert "its process was killed (SIGKILL)" in capfd.readouterr().err


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks /proc whether the worker is dead")
def test_a_worker_killed_while_it_has_nothing_to_do_costs_no_run(tmp_path):
    study = expand([*DEMO, f"output={tmp_path}", "attention=correct", "seed=1,2"])
    mark, second = tmp_path / "idle", study.runs[1].folder
    held = threading.Event()

    def other_launch():
        """The second run is under way there until the worker that made the first is dead."""
        with second.locked():
            second.create()
            second.save_status(Status(State.running))
            held.set()
            until(lambda: mark.exists() and mark.read_text() and not alive(int(mark.read_text())))

    other = threading.Thread(target=other_launch)
    other.start()
    held.wait()
    assert ended(study.runs, 1, killed_when_idle) == {("correct", 1): None, ("correct", 2): None}
    other.join()


def test_workers_are_quiet_and_what_they_print_is_kept(tmp_path, capfd):
    study = expand([*DEMO, f"output={tmp_path}"])
    ended(study.runs, 2, noisy)
    shown = capfd.readouterr()
    assert "chatter" not in shown.out + shown.err
    for run in study.runs:
        log = (tmp_path / "logs" / f"{folder_of(run.config).path.name}.log").read_text()
        assert "chatter of a library" in log
        assert "written in C" in log


def test_R48_a_run_that_another_launch_makes_is_waited_for_and_not_made_twice(tmp_path):
    study = expand([*DEMO, f"output={tmp_path}", "launch=serial"])
    theirs, ours = (folder_of(run.config) for run in study.runs)
    asked = threading.Event()

    def other_launch():
        with theirs.locked():
            theirs.create()
            theirs.save_status(Status(State.running))
            asked.set()
            time.sleep(1.5)
            theirs.save_status(Status(State.failed, error="boom"))

    other = threading.Thread(target=other_launch)
    other.start()
    asked.wait()
    states = launch(study)
    other.join()
    # Failed there: it is not tried again without retry=true, although this launch began before it failed.
    assert states == {theirs.path.name: State.failed, ours.path.name: State.done}


def test_pending_runs_leave_out_what_is_under_way_elsewhere_and_what_was_ended_there(tmp_path, monkeypatch):
    study = expand([*DEMO, f"output={tmp_path}", "seed=1,2"])
    monkeypatch.setattr("attnlab.study.pending.AGAIN", 0.0)
    first, second, third, _ = study.runs
    failed_before = folder_of(third.config)
    failed_before.create()
    failed_before.save_status(Status(State.failed, error="boom", updated="2026-01-01T00:00:00+00:00"))
    pending = Pending(study.runs)
    folder = folder_of(first.config)
    with folder.locked():
        folder.create()
        folder.save_status(Status(State.running))
        assert pending.take() is second
        pending.put_back(second)
        folder.save_status(Status(State.done))
    assert list(pending.made_elsewhere()) == [first]
    assert third in pending.left()  # failed before this launch began, which was asked to try it again
    assert {pending.take().overrides for _ in range(3)} == {run.overrides for run in study.runs[1:]}
    assert not pending


@pytest.mark.parametrize(
    ("more", "workers"),
    [
        (["launch.workers=3"], 3),
        (["launch=serial"], 1),
        (["launch=local"], launching.cores()),
        (["device=cuda"], 1),
    ],
)
def test_workers_are_as_many_as_cores_and_on_a_gpu_as_many_as_stated(more, workers):
    config = expand([*DEMO, *more]).base
    assert workers_of(config) == workers
    if config.device == "cuda":
        assert "launch.workers=N" in where(config, 2)
        assert (
            where(expand([*DEMO, *more, "launch.workers=4"]).base, 9)
            == "on 4 processes side by side on the GPU"
        )


def test_a_plugin_that_is_not_installed_is_one_sentence(tmp_path):
    study = expand([*DEMO, f"output={tmp_path}", "launch=slurm", "launch.plugin=nowhere"])
    with pytest.raises(UserError, match=r"launch.plugin: got 'nowhere'.*pip install 'attnlab\[slurm\]'"):
        launch(study)


def test_fail_fast_is_refused_where_jobs_cannot_be_called_back(tmp_path):
    with pytest.raises(UserError, match="fail_fast: got true with launch=ray"):
        launch(expand([*DEMO, f"output={tmp_path}", "launch=ray", "fail_fast=true"]))


SIX = [
    "seed=1,2,3",
    "launch.workers=2",
    "train.steps=120",
    "train.checkpoint_every=20",
    "measure.enabled=false",
]


def command(tmp_path, *more):
    items = [*DEMO, *SIX, f"output={tmp_path}", *more]
    return [sys.executable, "-m", "attnlab", "run", *items]


def states_of(tmp_path):
    runs = expand([*DEMO, *SIX, f"output={tmp_path}"]).runs
    return {folder_of(run.config).path.name: folder_of(run.config).state() for run in runs}


def until(condition, seconds=120.0):
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < seconds, "it did not happen"
        time.sleep(0.1)


def sessions(tmp_path, name):
    provenance = json.loads((tmp_path / "runs" / name / "provenance.json").read_text())
    return 1 + len(provenance["earlier"])


def workers_below(pid):
    """Processes whose parent is `pid`."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children]


def alive(pid):
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the workers in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "kill -9"])
def test_R47_an_interrupted_sweep_goes_on_where_it_stood(tmp_path, number):
    first = subprocess.Popen(command(tmp_path), start_new_session=True, stderr=subprocess.PIPE, text=True)
    until(lambda: list(states_of(tmp_path).values()).count(State.done) >= 2)
    # The third run is under way and has a checkpoint.
    under_way = [name for name, state in states_of(tmp_path).items() if state is State.running]
    until(lambda: any((tmp_path / "runs" / name / "checkpoint.pt").exists() for name in under_way))
    workers = workers_below(first.pid)
    first.send_signal(number)
    assert first.wait(60) == (130 if number == signal.SIGINT else -signal.SIGKILL)
    until(lambda: not any(map(alive, workers)), 60)  # also where nobody was left to stop them
    before = states_of(tmp_path)
    assert set(before.values()) <= {State.done, State.interrupted, None}
    assert State.interrupted in before.values()
    done = [name for name, state in before.items() if state is State.done]
    written = {name: (tmp_path / "runs" / name / "status.json").stat().st_mtime_ns for name in done}
    again = subprocess.run(command(tmp_path), capture_output=True, text=True, timeout=200)
    assert again.returncode == 0, again.stderr
    assert f"6 runs, {len(done)} done, {6 - len(done)} to run" in again.stderr
    for name, state in states_of(tmp_path).items():
        assert state is State.done
        assert sessions(tmp_path, name) == (2 if before[name] is State.interrupted else 1)
    assert written == {name: (tmp_path / "runs" / name / "status.json").stat().st_mtime_ns for name in done}


@pytest.mark.slow
def test_R48_two_launches_at_once_make_each_run_once(tmp_path):
    both = [
        subprocess.Popen(command(tmp_path), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        for _ in range(2)
    ]
    for process in both:
        shown = process.communicate(timeout=200)[1]
        assert process.returncode == 0, shown
        assert "[6/6]" in shown or "6 runs, 6 done" in shown or "to run" in shown
    for name, state in states_of(tmp_path).items():
        assert state is State.done
        assert sessions(tmp_path, name) == 1
    assert not list((tmp_path / "runs").glob("*.aside-*"))


@pytest.mark.slow
def test_the_exit_code_is_0_only_when_every_run_has_a_result(tmp_path):
    many = [
        *command(tmp_path, "seed=1", "train.steps=12", "data.tokenizer.vocab_size=100000"),
        "launch=local",
    ]
    failing = subprocess.run(many, capture_output=True, text=True)
    assert failing.returncode == 1
    assert "too large" in failing.stderr

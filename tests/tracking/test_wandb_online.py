"""The online mirror and `attnlab sync` against a stand-in server on the loopback; never the real one.

Each runs in a process of its own: W&B reads the server's address once a process.
"""

from __future__ import annotations

import re
import shlex
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from test_wandb_mirror import assert_same, by_step, numbers, only_record, tree
from tracking_example import FULL_RUN, Child, make_config, make_folder, make_tracker
from wandb_server import API_KEY, StandIn

from attnlab import cli
from attnlab.config import TrackMode
from attnlab.errors import UserError
from attnlab.identity import plain
from attnlab.tracking.status import State
from attnlab.tracking.sync import dashboard, sync, unsynced
from attnlab.tracking.wandb_reader import read_wandb
from attnlab.tracking.wandb_records import find_records, is_offline, is_uploaded

wandb = pytest.importorskip("wandb", reason="comes with attnlab[wandb]")

STEPS = """
import os, signal, time
from attnlab.tracking.status import State
folder, config = make_folder(output), make_config(output, mode=TrackMode.{mode})
config.track.finish_timeout = {finish_timeout}
folder.save_provenance({{"git": None}})
tracker = make_tracker(folder, config, resume_step={resume}).__enter__()
log_steps(tracker, {first}, {last})
{end}
"""
KILL = "time.sleep(1.5)\nos.kill(os.getpid(), signal.SIGKILL)"
STOP = "tracker.finish(State.interrupted)"
FINISH = "tracker.log({last}, {{'test/prefix/bleu': 12.5}})\ntracker.finish(State.done)"
SYNC = "from attnlab.tracking.sync import sync\nprint(sync(output, dry_run=False))"


def steps(mode: str, first: int, last: int, end: str, *, resume: int = 0, finish_timeout: float = 5.0) -> str:
    end = end.format(last=last)
    return STEPS.format(
        mode=mode, first=first, last=last, end=end, resume=resume, finish_timeout=finish_timeout
    )


def server_numbers(server: StandIn, run_id: str = "0123456789") -> dict[int, dict[str, float]]:
    """Step -> numbers, and no step twice."""
    rows: list[dict[str, Any]] = server.runs[run_id].history
    assert len({row["_step"] for row in rows}) == len(rows)
    return numbers(rows)


def test_an_online_run_arrives_whole(server: StandIn, child: Child, output: Path, home: Path) -> None:
    result = child(steps("online", 0, 30, FINISH), server.environment())
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert_same(server_numbers(server), by_step(make_folder(output)))
    run = server.runs["0123456789"]
    wanted = plain(make_config(output, mode=TrackMode.online))
    wanted["attention"]["mask_fill"] = "-inf"
    del wanted["study"]["grid"], wanted["study"]["cells"], wanted["launch"]["options"]
    assert {key: value for key, value in run.config.items() if key != "_wandb"} == {
        **wanted,
        "run_id": "0123456789",
        "provenance": {"git": None},
    }
    assert (run.upsert["groupName"], run.upsert["jobType"]) == ("demo", "no_scale")
    assert run.upsert["tags"] == ["test", "tracking"]
    assert run.upsert["project"] == "attnlab-tests"
    assert run.exit_code == 0
    assert run.summary["dev/nll"] == {"min": 5 - 30 / 7, "last": 5 - 30 / 7}
    pictures = {name for name in run.files if name.startswith("media/images/probe/maps/cross")}
    assert len(pictures) == 4
    leaks = [
        name for name in run.files if "requirements" in name or "metadata" in name or "output.log" in name
    ]
    assert leaks == []
    assert run.upsert["repo"] is None
    assert tree(home) == set()
    # The stand-in answers all that W&B asks but this, which may be answered with nothing: the server's extras.
    assert set(server.unknown) <= {"ServerFeaturesQuery"}


@pytest.mark.slow
def test_R44_a_killed_and_resumed_online_run_has_each_step_once(
    server: StandIn, child: Child, output: Path
) -> None:
    result = child(steps("online", 0, 25, KILL), server.environment())
    assert result.returncode == -signal.SIGKILL, result.stderr
    result = child(steps("online", 11, 40, FINISH, resume=10), server.environment())
    assert result.returncode == 0, result.stderr
    assert_same(server_numbers(server), by_step(make_folder(output)))
    assert server.runs["0123456789"].exit_code == 0


@pytest.mark.slow
def test_R42_scores_that_a_resumed_run_adds_at_its_last_step_arrive(
    server: StandIn, child: Child, output: Path
) -> None:
    assert child(steps("online", 0, 20, STOP), server.environment()).returncode == 0
    result = child(steps("online", 21, 20, FINISH, resume=20), server.environment())
    assert result.returncode == 0, result.stderr
    assert by_step(make_folder(output))[20]["test/prefix/bleu"] == 12.5
    seen = server_numbers(server)
    assert max(seen) == 21  # W&B has closed step 20, so they stand at the next
    assert seen[21] == {"test/prefix/bleu": 12.5}


def test_an_offline_run_is_uploaded_by_sync(
    server: StandIn, child: Child, output: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert child(steps("offline", 0, 20, FINISH)).returncode == 0
    (record,) = find_records(output)
    assert unsynced(output) == [record]
    assert sync(output, dry_run=True) == [record]
    assert str(record) in capsys.readouterr().out
    assert server.runs == {}
    result = child(SYNC, server.environment())
    assert result.returncode == 0, result.stderr
    assert_same(server_numbers(server), by_step(make_folder(output)))
    assert server.runs["0123456789"].config["model"] == plain(make_config(output))["model"]
    assert len([name for name in server.runs["0123456789"].files if name.endswith(".png")]) == 3
    assert is_uploaded(record)
    assert unsynced(output) == []
    assert tree(home) == set()


@pytest.mark.slow
def test_R44_an_uploaded_run_that_goes_on_offline_repeats_nothing(
    server: StandIn, child: Child, output: Path
) -> None:
    assert child(steps("offline", 0, 20, STOP)).returncode == 0
    assert child(SYNC, server.environment()).returncode == 0
    assert child(steps("offline", 11, 30, FINISH, resume=10)).returncode == 0
    result = child(SYNC, server.environment())
    assert result.returncode == 0, result.stderr
    assert_same(server_numbers(server), by_step(make_folder(output)))


@pytest.mark.slow
def test_R44_an_online_run_that_goes_on_without_its_server_repeats_nothing(
    server: StandIn, child: Child, output: Path
) -> None:
    assert child(steps("online", 0, 20, STOP), server.environment()).returncode == 0
    result = child(steps("online", 11, 30, FINISH, resume=10))  # no key: offline
    assert "attnlab sync" in result.stderr
    assert (
        child(
            "from attnlab.tracking.sync import sync\nsync(output, dry_run=False)", server.environment()
        ).returncode
        == 0
    )
    assert_same(server_numbers(server), by_step(make_folder(output)))


def test_R46_without_a_key_an_online_run_goes_on_offline_and_says_so_once(child: Child, output: Path) -> None:
    started = time.monotonic()
    result = child(FULL_RUN.format(mode="online"))
    assert time.monotonic() - started < 60
    assert result.returncode == 0
    (line,) = result.stderr.splitlines()
    assert "API key" in line
    (command,) = re.findall("`(attnlab sync [^`]*)`", line)
    arguments = cli._parser().parse_args(shlex.split(command)[1:])
    assert arguments.output == str(output)
    (record,) = find_records(output)
    assert is_offline(record)
    assert_same(numbers(read_wandb(record).history), by_step(make_folder(output)) | {20: {}})


@pytest.mark.parametrize("fault", ["refuses", pytest.param("is silent", marks=pytest.mark.slow)])
def test_R46_without_its_server_an_online_run_goes_on_offline_in_time(
    child: Child, output: Path, fault: str
) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        if fault == "is silent":
            listener.listen(64)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        code = FULL_RUN.format(mode="online").replace(
            "with make", "config.track.init_timeout = 1.0\nwith make", 1
        )
        started = time.monotonic()
        result = child(code, {"WANDB_BASE_URL": url, "WANDB_API_KEY": API_KEY})
        assert time.monotonic() - started < 60
    assert result.returncode == 0, result.stderr
    (line,) = result.stderr.splitlines()
    assert "attnlab sync" in line
    (record,) = find_records(output)  # the record of the failed try is gone
    assert is_offline(record)
    assert read_wandb(record).exit_code == 0


def test_R46_a_server_that_dies_does_not_hold_up_the_end(server: StandIn, child: Child, output: Path) -> None:
    def stop_server() -> None:
        while not server.runs:
            time.sleep(0.02)
        server.stop()
        (output / "stopped").touch()

    stopper = threading.Thread(target=stop_server)
    stopper.start()
    wait = "while not (output / 'stopped').exists(): time.sleep(0.02)\nstarted = time.monotonic()\n"
    after = "\nprint(time.monotonic() - started)"
    result = child(steps("online", 0, 5, wait + FINISH + after, finish_timeout=1.0), server.environment())
    stopper.join()
    assert float(result.stdout) < 5
    assert result.returncode == 0, result.stderr
    (line,) = result.stderr.splitlines()
    assert "track.finish_timeout=1 s" in line
    (record,) = find_records(output)
    assert str(record) in line
    assert make_folder(output).read_status().state is State.done
    assert_same(numbers(read_wandb(record).history), by_step(make_folder(output)))


@pytest.mark.slow
def test_R46_a_server_that_falls_silent_costs_a_bounded_time(
    server: StandIn, child: Child, output: Path
) -> None:
    """It takes requests and answers none. W&B waits 20 s for the first table, once, and finish_timeout at the end."""

    def fall_silent() -> None:
        while not (output / "logged").exists():
            time.sleep(0.02)
        server.silent.set()
        (output / "silent").touch()

    threading.Thread(target=fall_silent, daemon=True).start()
    end = (
        "(output / 'logged').touch()\n"
        "while not (output / 'silent').exists(): time.sleep(0.02)\n"
        "started = time.monotonic()\n"
        "for step in (6, 7, 8): tracker.table(step, 'test/translations', ['a'], [['b']])\n"
        "print(time.monotonic() - started)\n"
        "tracker.log(8, {{'dev/nll': 1.0}})\n"
        "started = time.monotonic()\n"
        "tracker.finish(State.done)\n"
        "print(time.monotonic() - started)"
    )
    result = child(steps("online", 0, 5, end, finish_timeout=1.0), server.environment())
    tables, finish = map(float, result.stdout.split())
    assert tables < 40
    assert finish < 10
    (line,) = result.stderr.splitlines()
    assert "is complete" in line
    folder = make_folder(output)
    assert folder.read_status().state is State.done
    assert [item.step for item in folder.read_media()][-3:] == [6, 7, 8]
    (record,) = find_records(output)
    assert_same(
        {step: row for step, row in numbers(read_wandb(record).history).items() if row}, by_step(folder)
    )


def test_sync_leaves_a_running_run_alone(output: Path) -> None:
    folder = make_folder(output)
    with folder.locked(), make_tracker(folder, make_config(output)) as tracker:
        tracker.log(1, {"train/loss/nll": 1.0})
        assert unsynced(output) == []
        tracker.finish(State.done)
        assert len(unsynced(output)) == 1


def test_sync_without_a_key_or_without_an_upload_is_one_sentence(
    output: Path, child: Child, server: StandIn
) -> None:
    with make_tracker(make_folder(output), make_config(output)) as tracker:
        tracker.finish(State.done)
    only_record(output)
    code = "from attnlab.tracking.sync import sync\nsync(output, dry_run=False)"
    assert (
        child(code)
        .stderr.strip()
        .splitlines()[-1]
        .startswith("attnlab.errors.UserError: sync: W&B has no API key")
    )
    (output / "elsewhere").mkdir()
    assert sync(output / "elsewhere", dry_run=False) == []
    with pytest.raises(UserError, match=r"--output: got '.*nowhere', which is no folder"):
        sync(output / "nowhere", dry_run=False)


def test_dashboard_without_runs_is_one_sentence(output: Path) -> None:
    with pytest.raises(UserError, match=r"dashboard: .*outputs/wandb"):
        dashboard(output)

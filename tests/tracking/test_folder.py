from __future__ import annotations

import errno
import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf
from tracking_example import Child, child_command, child_environment, make_config, make_folder

from attnlab.errors import UserError
from attnlab.identity import plain
from attnlab.tracking import files
from attnlab.tracking.files import CannotWrite, dump_json, number, write_atomic
from attnlab.tracking.folder import RunBusy, RunFolder
from attnlab.tracking.status import State, Status

HOLD = """
import time
folder = make_folder(output)
with folder.locked():
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(output: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock of run 0123456789."""
    command, environment = child_command(output, HOLD), child_environment()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def refuse_constant(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


@given(st.floats(allow_nan=True, allow_infinity=True, width=64))
def test_strict_json_keeps_every_float(value: float) -> None:
    read = number(json.loads(dump_json({"x": [value]}), parse_constant=refuse_constant)["x"][0])
    assert read == value or (math.isnan(read) and math.isnan(value))


def test_a_word_is_not_a_number() -> None:
    with pytest.raises(ValueError, match="'nan'"):
        number("nan")


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "home" / "status.json"
    write_atomic(path, "old")

    def fail(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.os, "fsync", fail)
    with pytest.raises(
        CannotWrite, match=r"^output: cannot write .*status\.json \(No space left on device\)"
    ):
        write_atomic(path, "new, but longer")
    assert path.read_text() == "old"
    assert [file.name for file in path.parent.iterdir()] == ["status.json"]


def test_a_second_process_is_refused_and_told_who_holds_the_run(
    output: Path, holder: subprocess.Popen[str]
) -> None:
    folder = RunFolder(output / "runs" / "0123456789")
    with pytest.raises(RunBusy, match=rf"0123456789 .*\b{holder.pid}\b"), folder.locked():
        pass


def test_the_lock_of_a_killed_process_is_free_at_once(output: Path, holder: subprocess.Popen[str]) -> None:
    folder = RunFolder(output / "runs" / "0123456789")
    folder.save_status(Status(State.running, step=7))
    assert folder.state() is State.running
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert folder.state() is State.interrupted
    with folder.locked():
        assert folder.state() is State.running
    assert folder.read_status().step == 7


def test_what_a_kill_left_half_written_is_gone_when_the_run_goes_on(output: Path, child: Child) -> None:
    result = child(
        "import os, signal\n"
        "from attnlab.tracking import files\n"
        "folder = make_folder(output)\n"
        "folder.save_translations('test.prefix', ['eins'])\n"
        "files.os.fsync = lambda number: os.kill(os.getpid(), signal.SIGKILL)\n"
        "folder.save_translations('test.prefix', ['zwei'])\n"
    )
    assert result.returncode == -signal.SIGKILL
    folder = RunFolder(output / "runs" / "0123456789")
    (left,) = folder.path.rglob(".*.tmp")
    assert left.parent.name == "translations"
    folder.create()
    assert [path.name for path in folder.path.rglob("*") if path.is_file()] == ["test.prefix.txt"]
    assert folder.read_translations("test.prefix") == ["eins"]


def test_the_lock_is_free_after_the_block(output: Path) -> None:
    folder = make_folder(output)
    again = RunFolder(folder.path).locked()
    with folder.locked(), pytest.raises(RunBusy, match=str(os.getpid())), again:
        pass
    with folder.locked():
        pass


def test_set_aside_keeps_everything_and_the_lock(output: Path, child: Child) -> None:
    folder = make_folder(output)
    with folder.locked():
        folder.metrics.append({"step": 1, "a/b": 1.0})
        folder.save_translations("test.prefix", ["eins"])
        first = folder.set_aside()
        assert not folder.path.exists()
        folder.create()
        assert folder.attempt == 1
        assert folder.read_metrics() == []
        result = child("make_folder(output)\nwith RunFolder(output / 'runs' / '0123456789').locked(): pass")
        assert "RunBusy" in result.stderr
        second = folder.set_aside()
    assert [first.name, second.name] == ["0123456789.aside-1", "0123456789.aside-2"]
    assert RunFolder(first).read_metrics() == [{"step": 1, "a/b": 1.0}]
    assert RunFolder(first).read_translations("test.prefix") == ["eins"]


def test_set_aside_needs_the_lock(output: Path) -> None:
    with pytest.raises(ValueError, match="lock"):
        make_folder(output).set_aside()


def test_status_comes_back_as_it_was_and_is_strict_json(output: Path) -> None:
    folder = make_folder(output)
    assert folder.read_status() is None
    assert folder.state() is None
    status = Status(
        State.diverged,
        step=30,
        error="the loss is NaN at step 30",
        alarms=["dev/leak_gap is 2.1"],
        alarm_kinds=["leak"],
        nan_steps=1,
        first_nan_step=30,
        results={"dev/nll": math.inf, "test/prefix/bleu": 12.25},
    )
    folder.save_status(status)
    assert folder.read_status() == status
    assert folder.state() is State.diverged
    json.loads((folder.path / "status.json").read_text(), parse_constant=refuse_constant)


def test_config_yaml_holds_every_value(output: Path) -> None:
    folder = make_folder(output)
    config = make_config(output)
    folder.save_config(config)
    read = OmegaConf.to_container(OmegaConf.load(folder.path / "config.yaml"))
    assert read == plain(config)
    assert read["attention"]["mask_fill"] == -math.inf
    assert read["train"]["eps"] == 1e-9


def test_provenance_keeps_the_sessions_before(output: Path) -> None:
    folder = make_folder(output)
    assert folder.read_provenance() is None
    for commit in ("a", "b", "c"):
        folder.save_provenance({"commit": commit})
    earlier = [{"commit": "a"}, {"commit": "b"}]
    assert folder.read_provenance() == {"commit": "c", "earlier": earlier}


def test_translations_stay_one_line_a_sentence(output: Path) -> None:
    folder = make_folder(output)
    lines = ["Ein Haus .", "", "zwei\u2028Zeilen\x85oder\x0bnicht", "ß"]
    path = folder.save_translations("test.prefix", lines)
    assert path.read_bytes() == "".join(f"{line}\n" for line in lines).encode()
    assert folder.read_translations("test.prefix") == lines
    for bad in ("a\nb", "a\r"):
        with pytest.raises(ValueError, match="translation 1"):
            folder.save_translations("test.prefix", ["a", bad])


def test_rewind_drops_numbers_pictures_and_tables_after_the_step(output: Path) -> None:
    folder = make_folder(output)
    for step in (10, 20, 30):
        folder.metrics.append({"step": step, "a/b": float(step)})
        folder.add_images(step, "probe/maps", [("head 1", np.eye(3))])
        folder.add_table(step, "test/samples", ["source", "length"], [["ein", step]])
    folder.rewind(20)
    assert [record["step"] for record in folder.read_metrics()] == [10, 20]
    assert [(item.step, item.name) for item in folder.read_media()] == [
        (10, "probe/maps"),
        (10, "test/samples"),
        (20, "probe/maps"),
        (20, "test/samples"),
    ]
    assert sorted(path.name for path in folder.path.rglob("*.png")) == ["0000010-000.png", "0000020-000.png"]
    folder.rewind(-1)
    assert folder.read_metrics() == []
    assert folder.read_media() == []


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_the_status_is_believed_where_the_lock_may_not_be_opened(
    output: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Another user's outputs, or a read-only file system: looking at them must not fail."""

    def denied(*arguments: object, **named: object) -> None:
        raise OSError(number, os.strerror(number))

    folder = make_folder(output)
    with folder.locked():
        folder.save_status(Status(State.running))
    with monkeypatch.context() as patch:
        patch.setattr("filelock.FileLock.acquire", denied)
        assert folder.state() is State.running
    assert folder.state() is State.interrupted


@pytest.mark.parametrize("place", ["below a file", "in /proc", "read only"])
def test_R45_an_unwritable_output_stops_with_its_path(place: str, tmp_path: Path) -> None:
    match place:
        case "below a file":
            output = tmp_path / "file" / "outputs"
            (tmp_path / "file").write_text("")
        case "in /proc":
            if sys.platform != "linux":
                pytest.skip("there is no /proc")
            output = Path("/proc/attnlab")
        case _:
            if os.geteuid() == 0:
                pytest.skip("root may write everywhere")
            output = tmp_path / "read_only"
            output.mkdir(mode=0o500)
    with pytest.raises(UserError, match=str(output)) as caught:
        RunFolder(output / "runs" / "0123456789").create()
    assert str(caught.value).startswith("output: ")
    with pytest.raises(UserError, match=str(output)), RunFolder(output / "runs" / "0123456789").locked():
        pass

"""A file made once: by one of many processes, without half-written states, and never at the price of hanging."""

import multiprocessing
import time
from pathlib import Path

import pytest
from filelock import FileLock

from attnlab.data.cache import make_once


def _make_slowly(path: Path, log: Path) -> None:
    def make() -> bytes:
        with log.open("a") as file:
            file.write("made\n")
        time.sleep(0.2)
        return b"content"

    assert make_once(path, make, bool, timeout=30.0) == b"content"


def test_processes_that_start_together_make_it_once(tmp_path):
    context = multiprocessing.get_context("fork")
    processes = [
        context.Process(target=_make_slowly, args=(tmp_path / "a" / "file", tmp_path / "log"))
        for _ in range(6)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 6
    assert (tmp_path / "log").read_text() == "made\n"


def test_what_is_not_acceptable_is_made_again(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    assert make_once(path, lambda: b"new", lambda content: content == b"new", timeout=1.0) == b"new"
    assert path.read_bytes() == b"new"
    assert (
        make_once(path, lambda: pytest.fail("made again"), lambda content: content == b"new", 1.0) == b"new"
    )


def test_a_failure_leaves_nothing_behind(tmp_path):
    with pytest.raises(KeyError):
        make_once(tmp_path / "file", lambda: {}["nothing"], bool, timeout=1.0)
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == []


def test_a_file_that_cannot_be_put_in_place_is_not_left_lying_about(tmp_path, caplog):
    (tmp_path / "file").mkdir()
    assert make_once(tmp_path / "file", lambda: b"mine", bool, timeout=1.0) == b"mine"
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".lock") == ["file"]
    assert "cannot be kept" in caplog.text


def test_R61_a_lock_that_is_held_is_not_waited_for_over_the_limit(tmp_path, caplog):
    with FileLock(tmp_path / "file.lock"):
        start = time.monotonic()
        assert make_once(tmp_path / "file", lambda: b"mine", bool, timeout=0.3) == b"mine"
    assert 0.2 < time.monotonic() - start < 3.0
    assert len(caplog.records) == 1


def test_R61_a_folder_that_cannot_be_written_costs_the_cache_and_not_the_run(tmp_path, caplog):
    (tmp_path / "file").write_text("in the way of the folder; as root, rights alone forbid nothing")
    assert make_once(tmp_path / "file" / "sub" / "name", lambda: b"mine", bool, timeout=1.0) == b"mine"
    assert any("cannot be" in record.message for record in caplog.records)


def test_R61_a_filled_cache_is_read_without_a_lock(tmp_path):
    (tmp_path / "file").write_bytes(b"there")
    with FileLock(tmp_path / "file.lock"):
        assert make_once(tmp_path / "file", lambda: pytest.fail("made again"), bool, timeout=60.0) == b"there"

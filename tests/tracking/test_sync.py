"""`attnlab sync` against the stand-in server: what it uploads, what it leaves, what stops it and what does not."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from test_wandb_mirror import HOSTILE, assert_same, by_step, numbers, only_record, tree
from test_wandb_online import SYNC
from tracking_example import Child, child_environment, make_config, make_folder, make_tracker
from wandb_server import API_KEY, StandIn

from attnlab.errors import UserError
from attnlab.tracking import wandb_setup
from attnlab.tracking.status import State
from attnlab.tracking.sync import sync
from attnlab.tracking.wandb_reader import read_wandb
from attnlab.tracking.wandb_records import find_records, is_uploaded
from attnlab.tracking.wandb_setup import require_answer

pytest.importorskip("wandb", reason="comes with attnlab[wandb]")


def offline_run(output: Path, run_id: str, steps: int = 50) -> Path:
    """A finished run; its .wandb file."""
    with make_tracker(make_folder(output, run_id), make_config(output)) as tracker:
        for step in range(steps):
            tracker.log(step, {"train/loss/nll": 1.0 * step})
        tracker.finish(State.done)
    only_record(output, run_id)
    (record,) = find_records(output, run_id)
    (file,) = record.glob("*.wandb")
    return file


@pytest.fixture
def records(output: Path) -> dict[str, Path]:
    """Two whole records and four that a kill or a disk left in another state, by run id."""
    files = {
        name: offline_run(output, name) for name in ("garbage", "flipped", "empty", "torn", "one", "two")
    }
    content = {name: bytearray(file.read_bytes()) for name, file in files.items()}
    content["flipped"][len(content["flipped"]) // 2] ^= 0xFF
    files["garbage"].write_bytes(b"garbage" * 100)
    files["flipped"].write_bytes(content["flipped"])
    files["empty"].write_bytes(content["empty"][:7])
    files["torn"].write_bytes(content["torn"][: len(content["torn"]) * 2 // 3])
    return files


def test_one_bad_record_does_not_stop_the_others_and_nothing_is_sent_twice(
    server: StandIn, child: Child, output: Path, records: dict[str, Path]
) -> None:
    before = {name: read_wandb(records[name]).history for name in ("torn", "one", "two")}
    assert 0 < len(before["torn"]) < 50
    for attempt in range(2):
        result = child(SYNC, server.environment())
        sentence = result.stderr.strip().splitlines()[-1]
        assert sentence.startswith(
            f"attnlab.errors.UserError: sync: 2 of {5 - 3 * attempt} runs were not uploaded"
        )
        assert f"{records['garbage'].parent} (not a .wandb file" in sentence
        assert f"{records['flipped'].parent} (damaged at byte" in sentence
        assert set(server.runs) == {"torn", "one", "two"}
        for name, rows in before.items():
            assert is_uploaded(records[name].parent)
            assert [row["_step"] for row in server.runs[name].history] == [row["_step"] for row in rows]
    for name in ("one", "two"):
        assert_same(numbers(server.runs[name].history), by_step(make_folder(output, name)))
        assert server.runs[name].exit_code == 0


def test_a_server_that_does_not_answer_is_one_sentence(
    output: Path, server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    offline_run(output, "one", steps=1)
    monkeypatch.setattr(wandb_setup, "_ANSWER_SECONDS", 0.3)
    with StandIn() as gone:
        pass
    for url, reason in ((server.url, "timed out"), (gone.url, "refused")):
        server.silent.set()
        started = time.monotonic()
        with pytest.raises(UserError, match=f"sync: W&B's server {url} does not answer .*{reason}"):
            require_answer("sync", url)
        assert time.monotonic() - started < 5
    server.silent.clear()
    require_answer("sync", server.url)


def test_a_second_sync_finds_nothing(output: Path, server: StandIn, child: Child) -> None:
    file = offline_run(output, "one")
    assert child(SYNC, server.environment()).returncode == 0
    sent = server.runs["one"].lines
    result = child(SYNC, server.environment())
    assert (result.returncode, result.stdout.splitlines()[0]) == (0, f"nothing to upload in {output}")
    assert server.runs["one"].lines == sent
    os.utime(file)  # the record went on after it was uploaded
    assert sync(output, dry_run=True) == [file.parent]


def test_sync_is_verbose_where_the_mirror_is_silent(output: Path, server: StandIn, child: Child) -> None:
    offline_run(output, "one")
    result = child(SYNC, server.environment())
    assert "Finished syncing" in result.stdout + result.stderr
    assert API_KEY not in result.stdout + result.stderr


def test_sync_writes_nothing_outside_the_output_folder(
    output: Path, server: StandIn, child: Child, tmp_path: Path
) -> None:
    offline_run(output, "one")
    before = tree(tmp_path)  # its working folder and the home
    assert child(SYNC, server.environment()).returncode == 0
    assert all(path.startswith("outputs/") for path in tree(tmp_path) - before)


def test_text_arrives_at_the_server_as_it_is(output: Path, server: StandIn, child: Child) -> None:
    config = make_config(output)
    config.attention.name = HOSTILE
    config.track.tags = ["a, b", "<b>"]
    with make_tracker(make_folder(output, "one"), config) as tracker:
        tracker.table(1, "test/translations", [HOSTILE], [[HOSTILE]])
        tracker.finish(State.done)
    only_record(output, "one")
    assert child(SYNC, server.environment()).returncode == 0
    run = server.runs["one"]
    assert run.upsert["displayName"] == f"{HOSTILE} d_k=8 s1"
    assert (run.upsert["jobType"], run.upsert["tags"]) == (HOSTILE, ["a, b", "<b>"])
    assert run.config["attention"]["name"] == HOSTILE
    (table,) = [json.loads(content) for name, content in run.files.items() if name.endswith(".table.json")]
    assert (table["columns"], table["data"]) == ([HOSTILE], [[HOSTILE]])


def test_the_dashboard_opens_over_the_local_runs_and_closes_with_q(
    output: Path, child: Child, tmp_path: Path
) -> None:
    """`wandb leet` itself, on a terminal of its own."""
    offline_run(output, "one")
    terminal, inside = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    opened = subprocess.Popen(
        [sys.executable, "-m", "attnlab", "dashboard", "--output", str(output)],
        env=child_environment() | {"TERM": "xterm-256color"}, cwd=tmp_path,
        stdin=inside, stdout=inside, stderr=inside, start_new_session=True,
    )  # fmt: skip
    os.close(inside)
    shown, deadline = b"", time.monotonic() + 60
    while b"-one" not in shown and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            shown += os.read(terminal, 65536)
    os.write(terminal, b"q")
    while opened.poll() is None and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            with contextlib.suppress(OSError):  # it has closed its side
                os.read(terminal, 65536)
    opened.kill()
    os.close(terminal)
    assert b"-one" in shown, shown[-2000:]
    assert opened.wait() == 0

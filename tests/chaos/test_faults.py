"""What a user meets when the machine fails beneath a run: each outcome is a row of docs/faults.md."""

import re
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from sweeps import RUN, names, same_run

import attnlab.run
from attnlab.cli import main
from attnlab.compose import load
from attnlab.study.grid import expand
from attnlab.study.plan import plan
from attnlab.tracking.folder import folder_of
from attnlab.tracking.status import State

ONE = [*RUN, "attention=zero_fill", "seed=1", "track=none", "device=cpu"]  # the arm that raises alarms


def command(output, *more):
    return ["run", *ONE, f"output={output}", *more]


def folder_at(output, *more):
    return folder_of(load(command(output, *more)[1:]))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An undisturbed run."""
    output = tmp_path_factory.mktemp("undisturbed") / "outputs"
    assert main(command(output)) == 0
    return folder_at(output)


@pytest.fixture
def output(tmp_path):
    return tmp_path / "outputs"


def stopped(output, monkeypatch, *more):
    """A run that Ctrl-C stopped at its second probe, at step 10 of 40, and its folder."""
    probe, passages = attnlab.run.probe, iter((False, True))

    def interrupted(*arguments, **named):
        if next(passages, False):
            signal.raise_signal(signal.SIGINT)
        return probe(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr("attnlab.run.probe", interrupted)
        assert main(command(output, *more)) == 130
    folder = folder_at(output, *more)
    assert folder.state() is State.interrupted
    assert folder.read_metrics()[-1]["step"] == 10
    return folder


def refused(capsys, arguments):
    """The one sentence of a command that refuses to go on."""
    capsys.readouterr()
    assert main(arguments) == 2
    shown = capsys.readouterr().err
    assert "Traceback" not in shown
    return shown.strip().split("\n")[-1].removeprefix("attnlab: ")


@pytest.fixture
def disk(tmp_path):
    """A file system of its own: `disk("size=1m")` makes it, and later calls change it."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = []

    def options(text):
        how = ["-o", f"remount,{text}"] if mounted else ["-t", "tmpfs", "-o", text]
        done = subprocess.run(["mount", *how, "tmpfs", place], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"a file system cannot be mounted here: {done.stderr.strip()}")
        mounted.append(text)
        return place

    if sys.platform != "linux" or shutil.which("mount") is None:
        pytest.skip("there is no mount command")
    yield options
    if mounted:
        subprocess.run(["umount", "--lazy", place], check=True)  # a cache file may still be mapped


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.5, 0.7, 0.97])
def test_a_full_disk_is_one_sentence_and_the_run_goes_on_once_there_is_room(whole, disk, capsys, share):
    output = whole.path.parents[1]
    pages = sum(-(-path.stat().st_size // 4096) for path in output.rglob("*") if path.is_file())
    place = disk(f"size={int(share * pages) * 4}k")
    sentence = refused(capsys, command(place))
    assert re.match(f"output: cannot write (into )?{place}/", sentence)
    assert "No space left on device" in sentence
    folder = folder_at(place)
    assert folder.state() in (None, State.interrupted)
    disk("size=64m")
    assert main(command(place)) == 0
    same_run(folder, whole)
    assert names(place) == names(output)


@pytest.mark.slow
def test_R45_a_read_only_outputs_folder_stops_with_its_path_and_can_be_looked_at(
    whole, disk, capsys, monkeypatch
):
    place = disk("size=64m")
    folder = stopped(place, monkeypatch)
    disk("ro")
    assert folder.state() is State.interrupted
    sentence = refused(capsys, command(place))
    assert sentence.startswith(f"output: cannot write into {place}/runs (Read-only file system)")
    disk("rw")
    assert main(command(place)) == 0
    same_run(folder, whole)


@pytest.mark.slow
def test_a_vanished_data_file_is_one_sentence_and_matters_only_at_the_start(
    tmp_path, output, capsys, monkeypatch
):
    text = tmp_path / "text"
    text.mkdir()
    for stem, pairs in (("train", 80), ("val", 20), ("test_2016_flickr", 20)):
        for language in ("en", "de"):
            lines = [f"{language} {stem} sentence {i} of {i % 7}\n" for i in range(pairs)]
            (text / f"{stem}.{language}").write_text("".join(lines))
    more = [
        "data=files",
        f"data.dir={text}",
        "data.tokenizer.vocab_size=60",
        *(f"data.{name}_pairs=null" for name in ("train", "dev", "test")),
    ]
    assert main(command(tmp_path / "undisturbed", *more)) == 0
    whole = folder_at(tmp_path / "undisturbed", *more)
    folder = stopped(output, monkeypatch, *more)
    (text / "train.de").rename(text / "elsewhere")
    sentence = refused(capsys, command(output, *more))
    assert sentence == f"data.dir={text} has train.en but no train.de; give both sides."
    assert folder.state() is State.interrupted
    (text / "elsewhere").rename(text / "train.de")
    probe = attnlab.run.probe

    def vanishing(*arguments, **named):
        shutil.rmtree(text, ignore_errors=True)
        return probe(*arguments, **named)

    monkeypatch.setattr("attnlab.run.probe", vanishing)
    assert main(command(output, *more)) == 0
    assert not text.exists()
    same_run(folder, whole)


def half(data):
    return data[: len(data) // 2]


def flipped(data):
    return data[:5000] + bytes([data[5000] ^ 4]) + data[5001:]


@pytest.mark.slow
@pytest.mark.parametrize("damage", [half, flipped], ids=["truncated", "a bit flipped"])
def test_a_damaged_checkpoint_is_refused_and_force_trains_afresh(whole, output, capsys, monkeypatch, damage):
    folder = stopped(output, monkeypatch)
    folder.checkpoint.write_bytes(damage(folder.checkpoint.read_bytes()))
    before = folder.metrics.path.read_bytes()
    sentence = refused(capsys, command(output))
    assert sentence.startswith(f"{folder.checkpoint}: got a file that is no attnlab checkpoint")
    assert "force=true trains afresh" in sentence
    assert folder.state() is State.interrupted
    assert folder.metrics.path.read_bytes() == before
    assert main(command(output, "force=true")) == 0
    same_run(folder, whole)
    assert (output / "runs" / f"{folder.path.name}.aside-1" / "checkpoint.pt").exists()


@pytest.mark.slow
def test_a_torn_last_line_of_the_records_costs_nothing_and_a_corrupt_one_is_refused(
    whole, output, capsys, monkeypatch
):
    folder = stopped(output, monkeypatch)
    before = folder.metrics.path.read_bytes()
    folder.metrics.path.write_bytes(before + b'{"step": 12, "train/lo\n')
    sentence = refused(capsys, command(output))
    line = before.count(b"\n") + 1
    assert sentence.startswith(f"{folder.metrics.path}, line {line}: got ")
    assert "force=true" in sentence
    folder.metrics.path.write_bytes(before + b'{"step": 12, "train/lo')
    assert main(command(output)) == 0
    same_run(folder, whole)


@pytest.mark.slow
def test_a_clock_that_jumps_back_changes_no_number_and_makes_no_time_negative(whole, output, monkeypatch):
    jumps = iter(range(10**6))

    class Backwards(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(2026, 1, 1, tzinfo=UTC) - timedelta(hours=next(jumps))

    monkeypatch.setattr("attnlab.tracking.status.datetime", Backwards)
    monkeypatch.setattr("attnlab.tracking.provenance.datetime", Backwards)
    folder = stopped(output, monkeypatch)
    assert main(command(output)) == 0
    same_run(folder, whole)
    assert next(jumps) > 4
    assert main(command(output, "force=true")) == 0  # in one session, whose length is not known now
    items = ["experiment=demo", *ONE, "seed=1,2", f"output={output}"]
    shown = plan(expand(items))
    assert "2 runs, 1 done, 1 to run" in shown
    assert "time: unknown" in shown
    assert re.search(r"-\d", shown) is None

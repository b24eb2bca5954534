"""The offline mirror, read back from W&B's own file and compared with the run folder."""

from __future__ import annotations

import json
import logging
import math
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tracking_example import (
    FULL_RUN,
    Child,
    child_command,
    child_environment,
    log_steps,
    make_config,
    make_folder,
    make_tracker,
)

from attnlab.errors import UserError
from attnlab.identity import plain
from attnlab.tracking.folder import RunFolder
from attnlab.tracking.media import Histogram
from attnlab.tracking.status import State

wandb = pytest.importorskip("wandb", reason="comes with attnlab[wandb]")
Image = pytest.importorskip("PIL.Image", reason="comes with attnlab[wandb]")

from attnlab.tracking import wandb_mirror  # noqa: E402
from attnlab.tracking.wandb_reader import WandbRun, read_wandb  # noqa: E402
from attnlab.tracking.wandb_records import find_records  # noqa: E402


def only_record(output: Path, wandb_id: str = "0123456789", *, killed: bool = False) -> WandbRun:
    """The one record of a run, once W&B's own process has written its end (a moment after `finish` returns)."""
    (record,) = find_records(output, wandb_id)
    deadline = time.monotonic() + 10
    while (read := read_wandb(record)).exit_code is None and not killed and time.monotonic() < deadline:
        time.sleep(0.01)
    return read


def numbers(rows: list[dict[str, Any]]) -> dict[int, dict[str, float]]:
    """Step -> the numbers logged at it, without W&B's own entries and without media."""
    return {
        row["_step"]: {
            name: value for name, value in row.items() if name[0] != "_" and not isinstance(value, dict)
        }
        for row in rows
    }


def by_step(folder: RunFolder) -> dict[int, dict[str, float]]:
    merged: dict[int, dict[str, float]] = {}
    for record in folder.read_metrics():
        merged.setdefault(int(record.pop("step")), {}).update(record)
    return merged


def assert_same(read: dict[int, dict[str, float]], wanted: dict[int, dict[str, float]]) -> None:
    """Value for value, NaN equal to NaN."""
    assert read.keys() == wanted.keys()
    for step, values in wanted.items():
        np.testing.assert_equal(read[step], values)


def test_the_offline_record_equals_metrics_jsonl_value_for_value(output: Path) -> None:
    folder, config = make_folder(output), make_config(output)
    folder.save_provenance({"git": {"commit": "abc", "dirty": False}})
    with make_tracker(folder, config) as tracker:
        log_steps(tracker, 0, 30)
        tracker.finish(State.done, results={"test/prefix/bleu": 30.0})
    record = only_record(output)
    assert_same(numbers(record.history), by_step(folder))
    assert (record.run_id, record.project) == ("0123456789", "attnlab-tests")
    assert (record.group, record.job_type, record.tags) == ("demo", "no_scale", ["test", "tracking"])
    assert record.exit_code == 0
    assert record.config["provenance"] == {"git": {"commit": "abc", "dirty": False}}


def test_the_best_value_survives_a_nan(output: Path) -> None:
    folder = make_folder(output)
    with make_tracker(folder, make_config(output)) as tracker:
        log_steps(tracker, 0, 30)
        tracker.log(31, {"test/prefix/bleu": 12.5})
        tracker.finish(State.done)
    record = only_record(output)
    assert record.metrics["dev/nll"] == {"min", "last"}
    assert set(record.metrics) == {"dev/nll", "dev/prefix_nll", "dev/ppl"}
    best = min(value for value in (5 - step / 7 for step in (0, 10, 30)))
    assert record.summary["dev/nll"] == {"min": best, "last": best}
    assert record.summary["dev/ppl"] == {"min": 1.0, "last": 2.0**30}
    assert record.summary["test/prefix/bleu"] == 12.5  # a plain number: nothing is chosen by the test set
    assert record.summary["train/loss/nll"] == 0.1 + 30 / 3
    assert record.summary["run/state"] == "done"


def test_R43_the_mirror_says_diverged_and_counts(output: Path) -> None:
    folder = make_folder(output)
    with make_tracker(folder, make_config(output)) as tracker:
        tracker.log(1, {"train/loss/nll": 4.0})
        tracker.log(2, {"train/loss/nll": math.nan})
        tracker.finish(State.diverged, error="the loss is NaN at step 2")
    record = only_record(output)
    assert math.isnan(numbers(record.history)[2]["train/loss/nll"])
    assert record.summary["run/state"] == "diverged"
    assert (record.summary["run/nan_steps"], record.summary["run/first_nan_step"]) == (1, 2)
    assert record.exit_code == 0


@pytest.mark.parametrize(
    ("error", "state"), [(ZeroDivisionError(), "failed"), (KeyboardInterrupt(), "interrupted")]
)
def test_a_run_that_breaks_off_is_not_finished_in_the_mirror(
    output: Path, error: BaseException, state: str
) -> None:
    def run() -> None:
        with make_tracker(make_folder(output), make_config(output)) as tracker:
            tracker.log(1, {"train/loss/nll": 4.0})
            raise error

    with pytest.raises(type(error)):
        run()
    record = only_record(output)
    assert record.summary["run/state"] == state
    assert record.exit_code == 1
    assert numbers(record.history) == {1: {"train/loss/nll": 4.0}}


def test_R38_runs_of_one_process_stay_apart(output: Path) -> None:
    configs = []
    for index, key_size in enumerate((8, 16, 32)):
        config = make_config(output)
        config.model.d_k = key_size
        configs.append(config)
        with make_tracker(make_folder(output, f"run{index}"), config) as tracker:
            for step in range(3 + index):
                tracker.log(step, {"train/loss/nll": 100.0 * index + step})
            tracker.finish(State.done)
    for index, config in enumerate(configs):
        record = only_record(output, f"run{index}")
        assert record.run_id == f"run{index}"
        assert record.config["model"]["d_k"] == config.model.d_k
        wanted = {step: {"train/loss/nll": 100.0 * index + step} for step in range(3 + index)}
        assert numbers(record.history) == wanted


def test_R38_a_run_left_open_by_someone_else_gets_nothing(output: Path) -> None:
    foreign = wandb.init(mode="offline", dir=str(output), id="foreign", settings=wandb.Settings(silent=True))
    foreign.log({"x": 1.0}, step=1)
    with make_tracker(make_folder(output), make_config(output)) as tracker:
        tracker.log(1, {"train/loss/nll": 4.0})
        tracker.finish(State.done)
    assert numbers(only_record(output, "foreign").history) == {1: {"x": 1.0}}
    assert numbers(only_record(output).history) == {1: {"train/loss/nll": 4.0}}


def test_R40_the_config_has_typed_leaves(output: Path) -> None:
    config = make_config(output)
    with make_tracker(make_folder(output), config) as tracker:
        tracker.finish(State.done)
    record = only_record(output)
    wanted = plain(config)
    assert wanted["attention"].pop("mask_fill") == -math.inf
    assert record.config["attention"].pop("mask_fill") == "-inf"  # JSON has no infinity
    assert wanted["study"].pop("grid")
    assert wanted["study"].pop("cells") == []
    assert wanted["launch"].pop("options") == {}  # an empty group, which W&B leaves out
    assert record.config == wanted | {"run_id": "0123456789"}
    leaves = (
        record.config["model"]["d_k"],
        record.config["model"]["tie_embeddings"],
        record.config["train"]["clip"],
    )
    assert [type(leaf) for leaf in leaves] == [int, bool, type(None)]
    assert type(record.config["train"]["lr"]) is float
    assert record.config["attention"]["scale"] == "none"
    assert record.config["attention"]["where"]["heads"] == [1, 2]


def test_R42_every_point_of_every_cadence_arrives(output: Path) -> None:
    folder = make_folder(output)
    with make_tracker(folder, make_config(output)) as tracker:
        for step in range(0, 101, 5):
            tracker.log(step, {"train/loss/nll": float(step)})
            if step % 10 == 0:
                tracker.log(step, {"probe/entropy/decoder": float(step)})
            if step % 25 == 0:
                tracker.log(step, {"dev/nll": float(step)})
        tracker.table(100, "test/samples", ["source", "translation"], [["a man", "ein Mann"]])
        tracker.log(100, {"test/prefix/bleu": 1.0})
        tracker.log(10**9, {"train/loss/nll": 1.0})
        tracker.finish(State.done)
    wanted = by_step(folder)
    assert len(wanted) == 22
    assert wanted[100].keys() == {"train/loss/nll", "probe/entropy/decoder", "dev/nll", "test/prefix/bleu"}
    assert_same(numbers(only_record(output).history), wanted)


def test_R44_a_killed_and_resumed_offline_run_is_one_record_with_each_step_once(
    output: Path, child: Child
) -> None:
    result = child(
        "import os, signal, time\n"
        "folder, config = make_folder(output), make_config(output)\n"
        "tracker = make_tracker(folder, config).__enter__()\n"
        "log_steps(tracker, 0, 50)\n"
        "time.sleep(1.5)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert result.returncode == -9, result.stderr
    folder, config = make_folder(output), make_config(output)
    killed = only_record(output, killed=True)
    assert killed.exit_code is None
    assert killed.config["model"]["d_k"] == 8
    # W&B keeps the newest step back until a later one comes.
    assert [row["_step"] for row in killed.history] == list(range(50))
    with make_tracker(folder, config, resume_step=40) as tracker:
        log_steps(tracker, 41, 60)
        tracker.finish(State.done)
    resumed = only_record(output)

    whole = make_folder(output, "uninterrupted")
    with make_tracker(whole, config) as tracker:
        log_steps(tracker, 0, 60)
        tracker.finish(State.done)
    uninterrupted = only_record(output, "uninterrupted")
    assert [row["_step"] for row in resumed.history] == list(range(61))
    assert_same(numbers(resumed.history), numbers(uninterrupted.history))
    assert resumed.config == uninterrupted.config | {"run_id": "0123456789"}
    ours = {"dev/nll", "dev/ppl", "train/lr", "run/state", "run/nan_steps", "run/first_nan_step"}
    assert {key: resumed.summary[key] for key in ours} == {key: uninterrupted.summary[key] for key in ours}
    maps = [row["_step"] for row in resumed.history if "probe/maps/cross" in row]
    assert maps == [0, 10, 20, 30, 40, 50, 60]
    superseded = list((output / ".wandb-data" / "superseded").iterdir())
    assert len(superseded) == 1
    assert len(read_wandb(superseded[0]).history) == 50


def test_a_run_started_afresh_is_another_run_to_wandb(output: Path) -> None:
    folder, config = make_folder(output), make_config(output)
    with folder.locked():
        with make_tracker(folder, config) as tracker:
            tracker.log(1, {"train/loss/nll": 1.0})
            tracker.finish(State.done)
        folder.set_aside()
        folder.create()
        with make_tracker(folder, config) as tracker:
            tracker.log(1, {"train/loss/nll": 2.0})
            tracker.finish(State.done)
    assert numbers(only_record(output).history) == {1: {"train/loss/nll": 1.0}}
    afresh = only_record(output, "0123456789_1")
    assert numbers(afresh.history) == {1: {"train/loss/nll": 2.0}}
    assert afresh.config["run_id"] == "0123456789_1"


def test_pictures_in_the_record_can_be_seen(output: Path) -> None:
    weights = np.array([[0.01, 0.02], [0.04, 0.0]])
    with make_tracker(make_folder(output), make_config(output)) as tracker:
        tracker.images(7, "probe/maps/cross", [("head 1", weights), ("head 2", weights.T)])
        tracker.finish(State.done)
    logged = only_record(output).history[0]["probe/maps/cross"]
    (record,) = find_records(output)
    assert logged["captions"] == ["head 1 (white = 0.04)", "head 2 (white = 0.04)"]
    for file, wanted in zip(logged["filenames"], ([[64, 128], [255, 0]], [[64, 255], [128, 0]]), strict=True):
        with Image.open(record / "files" / file) as image:
            shown = np.asarray(image.convert("L"))
        assert shown.shape == (240, 240)
        np.testing.assert_array_equal(shown[::120, ::120], wanted)


def test_a_table_of_translations_is_in_the_record(output: Path) -> None:
    rows = [["A man .", "Ein Mann .", 0.5], ["Two dogs .", "Zwei Hunde .", 3]]
    with make_tracker(make_folder(output), make_config(output)) as tracker:
        tracker.table(7, "test/prefix/samples", ["source", "translation", "score"], rows)
        tracker.finish(State.done)
    logged = only_record(output).history[0]["test/prefix/samples"]
    (record,) = find_records(output)
    table = json.loads((record / "files" / logged["path"]).read_text())
    assert table["columns"] == ["source", "translation", "score"]
    assert table["data"] == rows


def test_histograms_are_in_the_record_with_their_edges(output: Path) -> None:
    folder = make_folder(output)
    with make_tracker(folder, make_config(output)) as tracker:
        tracker.histogram(7, "train/grad_log10/w_q/cross", -2.0, 0.0, [3, 0, 5, 1])
        tracker.log(7, {"train/loss/nll": 1.0})
        tracker.finish(State.done)
    (row,) = only_record(output).history
    assert row["train/grad_log10/w_q/cross"] == {
        "_type": "histogram",
        "values": [3, 0, 5, 1],
        "bins": [-2.0, -1.5, -1.0, -0.5, 0.0],
    }
    assert row["train/loss/nll"] == 1.0
    assert folder.read_media() == [Histogram(7, "train/grad_log10/w_q/cross", -2.0, 0.0, [3, 0, 5, 1])]


def test_single_layers_and_heads_are_recorded_without_panels_of_their_own(output: Path) -> None:
    shown = {"train/grad/w_q/encoder": 1.0, "probe/entropy/encoder": 2.0, "final/dev/nll": 3.0}
    details = {
        "train/grad/w_q/encoder/layer1": 4.0,
        "probe/max_weight/decoder/layer2/head1": 5.0,
        "final/probe/entropy/encoder": 6.0,
    }
    with make_tracker(make_folder(output), make_config(output)) as tracker:
        tracker.log(1, shown | details)
        tracker.log(2, shown | details)
        tracker.finish(State.done)
    record = only_record(output)
    assert record.hidden == set(details)
    assert numbers(record.history) == {1: shown | details, 2: shown | details}
    assert {name: record.summary[name] for name in shown | details} == shown | details


HOSTILE = '<script>alert(1)</script> "it\'s" \\ \u05e2\u05d1\u05e8\u05d9\u05ea \u202eabc\u202c \U0001f600'


def test_text_arrives_as_it_is(output: Path) -> None:
    config = make_config(output)
    config.attention.name = config.data.name = HOSTILE
    config.track.tags = ["a, b", "<b>"]
    config.study.grid = {"seed": [1]}
    with make_tracker(make_folder(output), config) as tracker:
        tracker.table(1, "test/translations", ["source", HOSTILE], [[HOSTILE, "\u202e"]])
        tracker.finish(State.done)
    record = only_record(output)
    assert record.name == f"{HOSTILE} s1"
    assert record.job_type == HOSTILE
    assert record.tags == ["a, b", "<b>"]
    assert record.config["attention"]["name"] == record.config["data"]["name"] == HOSTILE
    (folder,) = find_records(output)
    table = json.loads((folder / "files" / record.history[0]["test/translations"]["path"]).read_text())
    assert (table["columns"], table["data"]) == (["source", HOSTILE], [[HOSTILE, "\u202e"]])


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_no_file_is_written_outside_the_output_folder(
    output: Path, child: Child, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "t").mkdir()
    before = tree(tmp_path)
    result = child(FULL_RUN.format(mode="offline"), {"TMPDIR": str(tmp_path / "t")})
    assert result.returncode == 0, result.stderr
    assert result.stdout == ""
    assert result.stderr == ""
    new = tree(tmp_path) - before
    assert new
    assert all(path == "outputs" or path.startswith("outputs/") for path in new), new
    assert tree(home) == set()
    assert (output / ".wandb-data" / "artifacts").is_dir()  # where the table's artifact waits


def test_R45_while_it_runs_only_sockets_are_in_the_temporary_folder(output: Path, child: Child) -> None:
    temporary = (
        tempfile.mkdtemp()
    )  # the path of a socket has at most 107 bytes, which pytest's folders can take alone
    look = "import shutil\n    shutil.copytree(os.environ['TMPDIR'], output / 'seen', ignore=notes)\n    tracker.finish"
    notes = "import os\ndef notes(folder, names):\n    print(*names, sep='\\n')\n    return names\n"
    code = notes + FULL_RUN.format(mode="offline").replace("tracker.finish", look)
    result = child(code, {"TMPDIR": temporary})
    shutil.rmtree(temporary)
    assert result.returncode == 0, result.stderr
    names = result.stdout.split()
    assert names
    assert all(name.startswith(("wandb-", "wandb_symon")) for name in names), names
    assert tree(output / ".wandb-data" / "tmp") == set()  # and what was there is gone


def test_the_environment_is_left_as_it_was(output: Path) -> None:
    before, temporary = dict(os.environ), tempfile.gettempdir()
    with make_tracker(make_folder(output), make_config(output)) as tracker:
        assert os.environ["WANDB_DATA_DIR"].startswith(str(output))
        tracker.finish(State.done)
    # WANDB_SERVICE is where W&B's own process listens, until this one ends.
    assert dict(os.environ) | {"WANDB_SERVICE": ""} == before | {"WANDB_SERVICE": ""}
    assert tempfile.gettempdir() == temporary


def test_R45_without_the_right_to_make_symlinks_all_else_is_there(
    output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise OSError("symbolic link privilege not held")

    monkeypatch.setattr(os, "symlink", refuse)
    folder = make_folder(output)
    with make_tracker(folder, make_config(output)) as tracker:
        log_steps(tracker, 0, 3)
        tracker.finish(State.done)
    assert not (output / "wandb" / "latest-run").exists()
    assert_same(numbers(only_record(output).history), by_step(folder))


def test_R45_R46_neither_a_temporary_folder_nor_stdin_is_needed(
    output: Path, child: Child, tmp_path: Path
) -> None:
    (tmp_path / "not_a_folder").touch()
    result = child(
        "import os\nos.close(0)\n" + FULL_RUN.format(mode="offline"),
        {"TMPDIR": str(tmp_path / "not_a_folder")},
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert_same(numbers(only_record(output).history), by_step(make_folder(output)) | {20: {}})


@pytest.mark.parametrize("name", ["wandb", ".wandb-data"])
def test_R45_an_unwritable_wandb_folder_stops_with_its_path(output: Path, name: str) -> None:
    folder = make_folder(output)
    (output / name).write_text("a file where the folder should be")
    started = time.monotonic()
    with (
        pytest.raises(UserError, match=f"output: .*{output / name}"),
        make_tracker(folder, make_config(output)),
    ):
        pass
    assert time.monotonic() - started < 1.0
    assert folder.read_status().state is State.interrupted


def test_a_killed_run_can_be_read_to_its_last_seconds(output: Path) -> None:
    code = (
        "import time\n"
        "tracker = make_tracker(make_folder(output), make_config(output)).__enter__()\n"
        "for step in range(10**6):\n"
        "    tracker.log(step, {'train/loss/nll': 1.0 * step})\n"
        "    print(step, flush=True)\n"
        "    time.sleep(0.02)\n"
    )
    process = subprocess.Popen(
        child_command(output, code), env=child_environment(), stdout=subprocess.PIPE, text=True
    )
    printed = []  # (time, step) of what was logged
    for line in process.stdout:
        printed.append((time.monotonic(), int(line)))
        if printed[-1][0] - printed[0][0] > 2.5:
            break
    process.send_signal(signal.SIGKILL)
    killed = time.monotonic()
    process.wait()
    process.stdout.close()
    folder = make_folder(output)
    last = printed[-1][1]
    steps = [record["step"] for record in folder.read_metrics()]
    assert steps == list(range(len(steps)))
    assert steps[-1] >= last  # metrics.jsonl has all that was logged
    record = only_record(output, killed=True)
    # The flush interval is 1 s; half a second more for a busy machine.
    due = max(step for when, step in printed if when < killed - wandb_mirror._FLUSH_SECONDS - 0.5)
    assert record.history[-1]["_step"] >= due
    assert record.config["seed"] == 1


def test_a_mirror_that_fails_does_not_end_the_run(
    output: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_folder(output)

    def fail(*arguments: object, **options: object) -> None:
        raise ConnectionResetError("Connection lost\nand more")

    with make_tracker(folder, make_config(output)) as tracker:
        tracker.log(1, {"train/loss/nll": 1.0})
        monkeypatch.setattr(wandb, "Table", fail)
        monkeypatch.setattr(wandb.Run, "log", fail)
        for step in range(2, 5):
            tracker.log(step, {"train/loss/nll": 1.0})
            tracker.table(step, "test/samples", ["a"], [["b"]])
        tracker.finish(State.done)
    assert [record["step"] for record in folder.read_metrics()] == [1, 2, 3, 4]
    assert folder.read_status().state is State.done
    (warning,) = [entry for entry in caplog.records if entry.levelno >= logging.WARNING]
    text = warning.getMessage()
    assert "Connection lost" in text
    assert "\n" not in text
    assert str(folder.path) in text

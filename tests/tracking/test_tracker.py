"""The tracker without W&B: order, non-finite numbers, resuming, how a run ends."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from tracking_example import Child, log_steps, make_config, make_folder, make_tracker

from attnlab.config import Config, Tracking
from attnlab.errors import UserError
from attnlab.tracking.folder import RunFolder
from attnlab.tracking.status import State


@pytest.fixture
def config(output: Path) -> Config:
    return make_config(output, Tracking.none)


@pytest.fixture
def folder(output: Path) -> RunFolder:
    return make_folder(output)


def test_one_call_is_one_record_in_order(folder: RunFolder, config: Config) -> None:
    with make_tracker(folder, config) as tracker:
        assert folder.read_status().state is State.running
        tracker.log(0, {"probe/entropy/decoder": 1.5})
        tracker.log(10, {"train/loss/nll": 4.0})
        tracker.log(10, {"dev/nll": 3.5, "dev/ppl": 33})
        tracker.finish(State.done, results={"dev/nll": 3.5})
    assert folder.read_metrics() == [
        {"step": 0, "probe/entropy/decoder": 1.5},
        {"step": 10, "train/loss/nll": 4.0},
        {"step": 10, "dev/nll": 3.5, "dev/ppl": 33.0},
    ]
    status = folder.read_status()
    assert (status.state, status.step, status.results) == (State.done, 10, {"dev/nll": 3.5})
    assert (status.nan_steps, status.first_nan_step) == (0, None)


def test_numbers_of_every_kind_are_taken_and_words_are_not(folder: RunFolder, config: Config) -> None:
    values = {"a/int": 3, "a/f32": np.float32(0.1), "a/f64": np.float64(0.1), "a/tensor": torch.tensor(0.5)}
    with make_tracker(folder, config) as tracker:
        tracker.log(1, values)
        for word in ("nan", "1.0", b"2"):
            with pytest.raises(ValueError, match="a/word"):
                tracker.log(2, {"a/word": word})
        tracker.finish(State.done)
    wanted = {"a/int": 3.0, "a/f32": float(np.float32(0.1)), "a/f64": 0.1, "a/tensor": 0.5}
    assert folder.read_metrics() == [{"step": 1, **wanted}]


def test_R42_steps_that_go_back_and_names_that_repeat_are_errors(folder: RunFolder, config: Config) -> None:
    with make_tracker(folder, config) as tracker:
        tracker.log(10, {"train/loss/nll": 4.0})
        tracker.image(10, "probe/maps/cross", np.eye(2))
        with pytest.raises(ValueError, match="step 9 comes after step 10"):
            tracker.log(9, {"dev/nll": 1.0})
        with pytest.raises(ValueError, match="step 9 comes after step 10"):
            tracker.table(9, "test/samples", ["a"], [["b"]])
        with pytest.raises(ValueError, match=r"step 10 already has train/loss/nll"):
            tracker.log(10, {"train/loss/nll": 4.0})
        with pytest.raises(ValueError, match=r"step 10 already has probe/maps/cross"):
            tracker.image(10, "probe/maps/cross", np.eye(2))
        with pytest.raises(ValueError, match=r"step 10 already has probe/maps/cross"):
            tracker.log(10, {"probe/maps/cross": 1.0})
        tracker.log(11, {"train/loss/nll": 4.0})
        tracker.finish(State.done)
        with pytest.raises(ValueError, match="finished"):
            tracker.log(12, {"train/loss/nll": 4.0})
    assert [record["step"] for record in folder.read_metrics()] == [10, 11]


@pytest.mark.parametrize(
    "bad", [math.nan, np.float32("nan"), np.float16("nan"), math.inf, -math.inf, torch.tensor(math.nan)]
)
def test_R43_non_finite_numbers_are_kept_and_counted_by_step(
    folder: RunFolder, config: Config, bad: float
) -> None:
    with make_tracker(folder, config) as tracker:
        tracker.log(1, {"train/loss/nll": 4.0})
        tracker.log(2, {"train/loss/nll": bad, "train/grad/norm": bad})
        tracker.log(2, {"dev/nll": bad})
        tracker.log(3, {"train/loss/nll": 4.0})
        tracker.log(4, {"train/loss/nll": bad})
        tracker.finish(State.diverged, error="the loss is not finite at step 4")
    status = folder.read_status()
    assert (status.state, status.nan_steps, status.first_nan_step) == (State.diverged, 2, 2)
    read = folder.read_metrics()[1]["train/loss/nll"]
    assert read == float(bad) or (math.isnan(read) and math.isnan(bad))


def test_R44_a_killed_and_resumed_run_has_the_files_of_an_uninterrupted_one(
    output: Path, folder: RunFolder, config: Config, child: Child
) -> None:
    result = child(
        "import os, signal\n"
        "folder, config = make_folder(output), make_config(output, Tracking.none)\n"
        "tracker = make_tracker(folder, config).__enter__()\n"
        "log_steps(tracker, 0, 50)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert result.returncode == -9
    assert folder.read_metrics()[-1] == {
        "step": 50,
        "dev/nll": 5 - 50 / 7,
        "dev/ppl": 2.0**50,
    }  # not one record was lost
    assert folder.state() is State.interrupted
    with (folder.path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 51, "train/lo')
    with make_tracker(folder, config, resume_step=40) as tracker:
        assert max(record["step"] for record in folder.read_metrics()) == 40
        log_steps(tracker, 41, 60)
        tracker.finish(State.done)

    whole = make_folder(output, "uninterrupted")
    with make_tracker(whole, config) as tracker:
        log_steps(tracker, 0, 60)
        tracker.finish(State.done)
    for name in ("metrics.jsonl", "media.jsonl"):
        assert (folder.path / name).read_bytes() == (whole.path / name).read_bytes()
    pictures = [sorted(path.name for path in one.path.rglob("*.png")) for one in (folder, whole)]
    assert pictures[0] == pictures[1]
    resumed, uninterrupted = folder.read_status(), whole.read_status()
    assert (resumed.step, resumed.nan_steps, resumed.first_nan_step) == (60, 4, 3)
    assert (uninterrupted.step, uninterrupted.nan_steps, uninterrupted.first_nan_step) == (60, 4, 3)


def test_a_resumed_run_cannot_log_again_what_its_checkpoints_step_has(
    folder: RunFolder, config: Config
) -> None:
    with make_tracker(folder, config) as tracker:
        log_steps(tracker, 0, 25)
        tracker.alarm("dev/leak_gap is 2.1")
        tracker.finish(State.interrupted)
    with make_tracker(folder, config, resume_step=20) as tracker:
        with pytest.raises(ValueError, match="step 20 already has dev/nll"):
            tracker.log(20, {"dev/nll": 1.0})
        tracker.log(20, {"dev/bleu": 1.0})
        tracker.finish(State.done)
    assert folder.read_status().alarms == ["dev/leak_gap is 2.1"]


def test_a_run_without_a_checkpoint_starts_from_nothing(folder: RunFolder, config: Config) -> None:
    with make_tracker(folder, config) as tracker:
        tracker.log(0, {"probe/entropy/decoder": math.nan})
        tracker.alarm("something")
        tracker.finish(State.failed, error="something")
    with make_tracker(folder, config) as tracker:
        tracker.log(0, {"probe/entropy/decoder": 2.0})
        tracker.finish(State.done)
    assert folder.read_metrics() == [{"step": 0, "probe/entropy/decoder": 2.0}]
    status = folder.read_status()
    assert (status.nan_steps, status.alarms, status.error) == (0, [], None)


@pytest.mark.parametrize(
    ("error", "state", "text"),
    [
        (ZeroDivisionError("here"), State.failed, "ZeroDivisionError: here"),
        (UserError("data.dir: no such folder"), State.failed, "data.dir: no such folder"),
        (KeyboardInterrupt(), State.interrupted, None),
        (SystemExit(143), State.interrupted, None),
    ],
)
def test_the_status_says_how_a_run_broke_off(
    folder: RunFolder, config: Config, error: BaseException, state: State, text: str | None
) -> None:
    def run() -> None:
        with make_tracker(folder, config) as tracker:
            tracker.log(3, {"train/loss/nll": 4.0})
            raise error

    with pytest.raises(type(error)):
        run()
    status = folder.read_status()
    assert (status.state, status.step) == (state, 3)
    if text is None:
        assert status.error is None
    else:
        assert text in status.error
        assert ("Traceback" in status.error) == (not isinstance(error, UserError))


def test_alarms_stand_in_the_status_at_once(folder: RunFolder, config: Config) -> None:
    with make_tracker(folder, config) as tracker:
        tracker.alarm("dev/leak_gap is 2.1")
        tracker.alarm("dev/leak_gap is 2.1")
        assert folder.read_status().alarms == ["dev/leak_gap is 2.1"]
        tracker.finish(State.done)
    assert folder.read_status().alarms == ["dev/leak_gap is 2.1"]


def test_an_alarm_of_a_kind_is_one_sentence_the_latest_and_one_line_in_the_log(
    folder: RunFolder, config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    with make_tracker(folder, config) as tracker:
        tracker.alarm("two references are empty")
        for step in range(10, 60, 10):
            tracker.log(step, {"dev/leak_gap": step / 10})
            tracker.alarms({"leak": f"the gap is {step / 10}", "loss": None})
            assert folder.read_status().alarms == ["two references are empty", f"the gap is {step / 10}"]
        tracker.alarms({"loss": "the loss is 0"})
        assert folder.read_status().alarms == [
            "two references are empty", "the gap is 5.0", "the loss is 0",
        ]  # fmt: skip
        tracker.alarms({"leak": None, "collapse/prefix": None})
        assert folder.read_status().alarms == ["two references are empty", "the loss is 0"]
        tracker.finish(State.done)
        with pytest.raises(ValueError, match="finished"):
            tracker.alarms({"leak": "the gap is 6.0"})
    assert folder.read_status().state is State.done
    assert [record.getMessage() for record in caplog.records] == [
        "ALARM in run 0123456789, step 0: two references are empty",
        "ALARM in run 0123456789, step 10: the gap is 1.0",
        "ALARM in run 0123456789, step 50: the loss is 0",
    ]
    assert {record.levelname for record in caplog.records} == {"WARNING"}


def test_alarms_are_on_the_terminal_without_any_setting_of_logging(child: Child, output: Path) -> None:
    result = child(ALARMED)
    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr == "ALARM in run 0123456789, step 0: the gap is 1.0\n"


def test_alarms_come_back_with_their_kinds(folder: RunFolder, config: Config) -> None:
    with make_tracker(folder, config) as tracker:
        tracker.log(10, {"dev/leak_gap": 1.0})
        tracker.alarms({"leak": "the gap is 1.0", "empty/prefix": "all are empty"})
        tracker.finish(State.interrupted)
    with make_tracker(folder, config, resume_step=10) as tracker:
        assert folder.read_status().alarms == ["the gap is 1.0", "all are empty"]
        tracker.alarms({"leak": "the gap is 2.0"})
        tracker.alarms({"empty/prefix": None})
        tracker.finish(State.done)
    assert folder.read_status().alarms == ["the gap is 2.0"]


def test_alarms_of_a_status_without_kinds_come_back(folder: RunFolder, config: Config) -> None:
    with make_tracker(folder, config) as tracker:
        tracker.log(10, {"dev/leak_gap": 1.0})
        tracker.alarms({"leak": "the gap is 1.0"})
        tracker.finish(State.interrupted)
    path = folder.path / "status.json"
    fields = json.loads(path.read_text())
    del fields["alarm_kinds"]
    path.write_text(json.dumps(fields))
    with make_tracker(folder, config, resume_step=10) as tracker:
        tracker.finish(State.done)
    assert folder.read_status().alarms == ["the gap is 1.0"]


def test_a_diverged_run_has_the_step_at_which_it_diverged(folder: RunFolder, config: Config) -> None:
    with make_tracker(folder, config) as tracker:
        tracker.log(10, {"train/loss/nll": 4.0})
        status = tracker.finish(State.diverged, error="the loss is NaN at step 17", step=17)
    assert (status.step, folder.read_status().step) == (17, 17)


@pytest.mark.parametrize("state", [State.done, State.diverged, State.failed, State.interrupted])
def test_a_result_is_stated_once_the_mirror_has_it_and_any_other_end_at_once(
    folder: RunFolder, config: Config, state: State
) -> None:
    """A kill while the mirror closes must leave a run that is taken up again, or its last numbers stay unmirrored."""
    seen: list[State] = []

    class Mirror:
        def finish(self, told: State, **counts: int | None) -> None:
            seen.extend((told, folder.read_status().state))

    with make_tracker(folder, config) as tracker:
        tracker._mirror = Mirror()
        tracker.finish(state)
    assert seen == [state, State.running if state in (State.done, State.diverged) else state]
    assert folder.read_status().state is state


def test_leaving_without_finish_is_an_error(folder: RunFolder, config: Config) -> None:
    with pytest.raises(RuntimeError, match="finish"), make_tracker(folder, config):
        pass
    assert folder.read_status().state is State.failed


def test_finishing_twice_is_an_error(folder: RunFolder, config: Config) -> None:
    with make_tracker(folder, config) as tracker:
        tracker.finish(State.done)
        with pytest.raises(ValueError, match="twice"):
            tracker.finish(State.done)


ALARMED = """
config = make_config(output, Tracking.none)
with make_tracker(make_folder(output), config) as tracker:
    tracker.alarms({"leak": "the gap is 1.0"})
    tracker.alarms({"leak": "the gap is 2.0"})
    from attnlab.tracking.status import State
    tracker.finish(State.done)
"""

RUN = """
import sys
config = make_config(output, Tracking.{name})
with make_tracker(make_folder(output), config) as tracker:
    tracker.log(1, {{"train/loss/nll": 4.0}})
    tracker.image(1, "probe/maps/cross", [[0.5]])
    tracker.table(1, "test/samples", ["a"], [["b"]])
    from attnlab.tracking.status import State
    tracker.finish(State.done)
print(sorted({{name.partition(".")[0] for name in sys.modules}} & {{"wandb", "PIL"}}))
"""


def test_without_wandb_nothing_of_it_is_imported(child: Child, output: Path) -> None:
    result = child(RUN.format(name="none"))
    assert result.stdout == "[]\n", result.stderr
    assert not (output / "wandb").exists()


@pytest.mark.parametrize("package", ["wandb", "PIL"])
def test_a_missing_package_is_one_sentence(child: Child, output: Path, package: str) -> None:
    result = child(f"import sys\nsys.modules[{package!r}] = None\n" + RUN.format(name="wandb"))
    sentence = result.stderr.strip().splitlines()[-1]
    assert sentence.startswith("attnlab.errors.UserError: track=wandb needs the package")
    assert "pip install 'attnlab[wandb]'" in sentence
    assert "track=none" in sentence
    assert make_folder(output).read_status().state is State.failed

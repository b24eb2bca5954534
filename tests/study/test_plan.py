"""What a study will run, how far it is, and how long the rest takes: numbers by hand, from made-up run folders."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from attnlab.study import grid
from attnlab.study.board import Board
from attnlab.study.forecast import Forecast, duration, seconds_of, step_of
from attnlab.study.grid import expand
from attnlab.study.plan import plan
from attnlab.tracking.status import State, Status

STUDY = ["experiment=demo", "attention=correct,zero_fill", "seed=1,2", "model.d_k=16,8", "train.steps=1000"]


@pytest.fixture
def study(tmp_path):
    return expand([*STUDY, f"output={tmp_path}", "launch.workers=2", "device=cpu"])


def make(run, state, seconds=0, step=1000, earlier=(), after=0):
    """A run folder that says it began so many seconds after 10:00:00 and took so many."""
    run.folder.create()
    run.folder.metrics.append({"step": 10, "a": 1.0})
    run.folder.metrics.append({"step": step, "a": 1.0})
    run.folder.metrics.close()
    began = datetime(2026, 1, 1, 10, tzinfo=UTC) + timedelta(seconds=after)
    provenance = {"started": began.isoformat(), "earlier": list(earlier)}
    (run.folder.path / "provenance.json").write_text(json.dumps(provenance))
    updated = (began + timedelta(seconds=seconds)).isoformat()
    error = "Traceback\n  line 1\nMemoryError: none left" if state is State.failed else None
    run.folder.save_status(Status(state, step=step, error=error, updated=updated))


def run_of(study, arm, seed, d_k):
    return next(
        run
        for run in study.runs
        if (run.config.attention.name, run.config.seed, run.config.model.d_k) == (arm, seed, d_k)
    )


def test_time_is_that_of_the_cells_other_seeds_else_of_runs_of_the_same_size(study):
    make(run_of(study, "correct", 1, 16), State.done, 100)
    make(run_of(study, "correct", 1, 8), State.done, 60)
    forecast = Forecast(study.runs)
    assert forecast.seconds_left(run_of(study, "correct", 2, 8)) == 60
    assert (
        forecast.seconds_left(run_of(study, "zero_fill", 1, 8)) == 80
    )  # no seed of its own: the mean of both
    half = run_of(study, "correct", 2, 16)
    make(half, State.interrupted, step=500)
    assert forecast.seconds_left(half) == 50
    assert forecast.seconds_left(run_of(study, "correct", 1, 8)) == 60  # made afresh by force=true


def test_a_run_of_several_sessions_or_that_diverged_tells_no_time(study):
    first, second, third, *_ = study.runs
    make(first, State.done, 100, earlier=[{}])
    make(second, State.diverged, 3)
    make(third, State.failed, 3)
    assert [seconds_of(run.folder) for run in (first, second, third)] == [None] * 3
    assert Forecast(study.runs).seconds_left(study.runs[-1]) is None


def test_a_clock_set_back_makes_a_time_unknown(study):
    first, second, *_ = study.runs
    for run, updated in ((first, "2026-01-01T09:59:59+00:00"), (second, "2026-01-01T10:00:00+00:00")):
        make(run, State.done)
        run.folder.save_status(Status(State.done, updated=updated))
    assert [seconds_of(run.folder) for run in (first, second)] == [None, 0]


@pytest.mark.parametrize("line", ['{"step": 80, "to', "{}", "[1]", "80", "\x00\x00"])
def test_a_damaged_last_record_is_left_to_the_run_itself(study, line):
    run = study.runs[0]
    make(run, State.interrupted, step=70)
    with run.folder.metrics.path.open("a") as file:
        file.write(line + "\n")
    assert step_of(run.folder) == 0
    assert "interrupted" in plan(study)


def test_the_step_is_that_of_the_last_whole_record(study):
    run = study.runs[0]
    assert step_of(run.folder) == 0
    make(run, State.running, step=70)
    with run.folder.metrics.path.open("a") as file:
        file.write('{"step": 80, "torn')
    assert step_of(run.folder) == 70


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59, "59 s"), (60, "1 min"), (3599, "1 h 0 min"), (4830, "1 h 20 min")],
)
def test_durations_have_two_units_at_most(seconds, text):
    assert duration(seconds) == text


def test_a_plan_has_each_run_with_state_and_time_and_the_whole(study):
    make(run_of(study, "correct", 1, 16), State.done, 120)
    make(run_of(study, "correct", 2, 16), State.failed)
    make(run_of(study, "zero_fill", 1, 16), State.interrupted, step=250)
    lines = plan(study).splitlines()
    run = run_of(study, "zero_fill", 1, 16)
    assert f"{run.run_id}  interrupted       2 min  attention=zero_fill seed=1 model.d_k=16" in lines
    assert any(line.startswith(run_of(study, "correct", 2, 16).run_id + "  failed ") for line in lines)
    assert lines[-2] == (
        "study demo: 8 runs, 1 done, 6 to run on 2 processes, 1 failed earlier (retry=true tries again)"
    )
    assert lines[-1] == "time: about 6 min"  # (0.75 + 5) x 120 s on 2 processes = 345 s
    assert len(lines) == 1 + 8 + 2


def test_runs_side_by_side_are_counted_over_the_time_that_any_was_under_way(study):
    assert Forecast(study.runs).side_by_side() == 1
    for run, after in zip(study.runs, (0, 0, 0, 300), strict=False):
        make(run, State.done, 100, after=after)
    make(study.runs[4], State.interrupted, 900)
    assert Forecast(study.runs).side_by_side() == 2  # 400 s of runs in 200 s


@pytest.mark.parametrize(
    ("workers", "others", "time"),
    [
        (4, 0, "time: at most 14 min, as with 1 at a time on the GPU"),  # 7 x 120 s: four may take as long
        (4, 1, "time: at most 6 min, as with 2 at a time on the GPU"),
        (2, 1, "time: about 6 min"),  # the 120 s are those of two
    ],
)
def test_on_a_gpu_no_more_runs_side_by_side_are_reckoned_with_than_were_measured(
    tmp_path, workers, others, time
):
    study = expand([*STUDY, f"output={tmp_path}", f"launch.workers={workers}", "device=cuda"])
    for run in study.runs[: 1 + others]:
        make(run, State.done, 120)
    assert plan(study).splitlines()[-1] == time


def test_without_a_finished_run_the_time_is_unknown(study):
    lines = plan(study).splitlines()
    assert lines[-1] == "time: unknown (for 8 runs none like it is done)"
    assert lines[1].split()[:3] == [study.runs[0].run_id, "waiting", "unknown"]


def test_R18_R50_impossible_cells_and_duplicates_are_named_and_counted(tmp_path):
    study = expand(
        [
            "experiment=demo",
            "attention=correct",
            "model.d_k=16,null",
            "model.heads=4,3",
            "model.d_v=16",
            f"output={tmp_path}",
        ]
    )
    text = plan(study)  # nano has d_model 64: 4 heads of 16 by default
    assert "1 duplicate dropped" in text
    assert "1 cell that cannot exist" in text
    assert "model.d_k=null model.heads=3  model.heads: got 3 with d_model 64, allowed: a divisor" in text


def test_hydra_composes_a_study_once_however_many_runs_it_has(monkeypatch):
    composed = []
    right = grid.compose
    monkeypatch.setattr(grid, "compose", lambda items: composed.append(items) or right(items))
    monkeypatch.setattr("attnlab.study.variants.load", lambda items: composed.append(items))
    study = expand(["experiment=demo", "seed=" + ",".join(map(str, range(50)))])
    assert len(study.runs) == 200
    assert len(composed) <= 2


class Clock:
    now = 0.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("attnlab.study.board.time", clock)
    return clock


def test_the_board_counts_runs_and_foretells_from_the_steps_so_far(study, clock, capsys):
    first, second, third = study.runs[:3]
    make(third, State.interrupted, step=400)
    board = Board([first, second, third])
    assert board.line() == "0 of 3 ended, 0 running, 0 failed, time left unknown"
    clock.now = 10.0
    make(first, State.done, 9)
    board.ended(first, None)
    make(second, State.running, step=500)
    clock.now = 30.0
    board.tick([second, third])
    shown = capsys.readouterr().err.splitlines()
    assert shown[0] == f"[1/3] {first.run_id} {' '.join(first.overrides)}: done in 9 s"
    # 1,500 steps in 30 s; 500 of the second and 600 of the third are left: 22 s.
    assert shown[1] == (
        "  1 of 3 ended, 2 running, 0 failed, about 22 s left; correct seed 1 500/1000; correct seed 2 400/1000"
    )
    board.tick([second, third])
    assert capsys.readouterr().err == ""  # a log gets a line from time to time


def test_R39_the_board_says_at_once_what_went_wrong_and_where_the_traceback_is(study, capsys):
    first, second = study.runs[:2]
    board = Board([first, second])
    make(first, State.failed, 3)
    board.ended(first, None)  # failed in another process
    board.ended(second, "data: got no text")
    shown = capsys.readouterr().err.splitlines()
    assert shown[0].endswith(
        f": FAILED: MemoryError: none left (traceback: {first.folder.path / 'status.json'})"
    )
    assert shown[1].endswith(": data: got no text")
    assert board.line().startswith("2 of 2 ended, 0 running, 2 failed")


def test_a_terminal_gets_one_line_that_is_written_anew(study, clock, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    board = Board(study.runs[:2])
    board.tick([])
    board.tick([])
    board.say("done")
    assert capsys.readouterr().err.count("\n") == 1


def test_a_run_of_a_study_keeps_its_id_when_its_folder_moves(study):
    run = study.runs[0]
    moved = replace(run, config=replace(run.config, output="elsewhere"))
    assert moved.run_id == run.run_id
    assert moved.folder.path != run.folder.path

"""Turns, paired ratios and medians, against numbers worked by hand."""

import pytest

from attnlab.bench.rounds import Child, Spread, measure, problem_of, ratio, series, spread, turn
from attnlab.bench.work import Job, Work


def test_the_order_turns_around_from_round_to_round():
    assert [turn(3, number) for number in range(3)] == [[0, 1, 2], [2, 1, 0], [0, 1, 2]]


def test_a_spread_is_median_lowest_and_highest_of_what_is_there():
    assert spread([4.0, None, 1.0, 2.0]) == Spread(2.0, 1.0, 4.0)
    assert spread([4.0, 1.0]) == Spread(2.5, 1.0, 4.0)
    assert spread([None, None]) is None


def test_a_ratio_is_taken_within_each_round_and_only_then_the_median():
    # a machine that halves its speed in the second round: medians over rounds would give 3 / 2.5 = 1.2
    assert ratio([4.0, 2.0, 3.0], [2.0, 1.0, 3.0]) == Spread(2.0, 1.0, 2.0)
    assert ratio([4.0, None, 9.0], [2.0, 1.0, 3.0]) == Spread(2.5, 2.0, 3.0)
    assert ratio([None], [1.0]) is None


def test_a_child_that_crashes_is_a_row_with_its_reason_and_is_not_tried_again(capsys):
    external = "attnlab.bench.systems.external"
    good = Child("good", external, Job(Work(), settings=("echo tokens_per_second 12",)))
    bad = Child("bad", external, Job(Work(), settings=("echo no such corpus >&2; exit 3",)))
    crash = Child("crash", "attnlab.bench.no_such_module", Job(Work()))
    ended = measure([good, bad, crash], 2)
    assert series(ended[0], "tokens_per_second") == [12.0, 12.0]
    assert problem_of(ended[0]) is None
    assert problem_of(ended[1]).startswith("no such corpus (exit code 3")
    assert "no_such_module" in problem_of(ended[2])
    assert series(ended[1], "tokens_per_second") == [None, None]
    assert ended[1][1] is None
    lines = capsys.readouterr().err.splitlines()
    labels = [line.split("  ")[1].split(":")[0] for line in lines]
    assert labels == ["good", "bad", "crash", "good"]  # backwards in the second round, failed ones left out


def test_each_round_has_a_seed_of_its_own_for_all_that_take_part():
    told = "echo tokens_per_second $ATTNLAB_BENCH_SEED"
    both = [Child(name, "attnlab.bench.systems.external", Job(Work(), settings=(told,))) for name in "ab"]
    assert [series(one, "tokens_per_second") for one in measure(both, 2)] == [[1.0, 2.0]] * 2


@pytest.mark.parametrize("values", [[], [None]])
def test_nothing_has_no_median(values):
    assert spread(values) is None

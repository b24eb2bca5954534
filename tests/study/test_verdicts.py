"""Verdicts: where the interval lies, and what has none."""

import math
from dataclasses import replace

import numpy as np
import pytest
from made_cells import cell, claim, row, with_records

from attnlab.study.cells import Cell, SeedRun
from attnlab.study.claims import Verdict
from attnlab.study.verdicts import judge
from attnlab.tracking.status import State, Status


# Values 1, 2, 3: mean 2, sd 1, interval 2 ± 4.3027 / sqrt(3) = [-0.4841, 4.4841].
@pytest.mark.parametrize(
    ("direction", "bounds", "verdict"),
    [
        ("below", [5.0], Verdict.confirmed),
        ("below", [4.0], Verdict.inconclusive),
        ("below", [-0.5], Verdict.refuted),
        ("above", [-1.0], Verdict.confirmed),
        ("above", [0.0], Verdict.inconclusive),
        ("above", [4.5], Verdict.refuted),
        ("within", [-1.0, 5.0], Verdict.confirmed),
        ("within", [-1.0, 4.0], Verdict.inconclusive),
        ("within", [5.0, 6.0], Verdict.refuted),
        ("within", [1.9, 2.1], Verdict.inconclusive),
    ],
)
def test_the_verdict_is_where_the_interval_lies(direction, bounds, verdict):
    found = judge(claim("value", direction, *bounds), {"a": cell("a", {1: 1.0, 2: 2.0, 3: 3.0})})
    assert found.verdict is verdict
    assert found.estimates[0].mean == 2.0
    assert found.estimates[0].interval.high == pytest.approx(4.4841, abs=1e-4)


def test_difference_and_ratio_are_paired_with_the_control():
    cells = {"a": cell("a", {1: 11.0, 2: 21.1, 7: 0.0}), "c": cell("c", {1: 10.0, 2: 20.0, 8: 99.0})}
    found = judge(claim("difference", "above", 0.0, control="c"), cells)
    assert (found.verdict, found.estimates[0].n) == (
        Verdict.confirmed,
        2,
    )  # 1.05 ± 0.64; unpaired it is far off
    assert found.estimates[0].mean == pytest.approx(1.05)
    found = judge(claim("ratio", "within", 0.5, 2.0, control="c"), cells)
    assert found.verdict is Verdict.confirmed
    assert found.estimates[0].mean == pytest.approx(math.sqrt(1.1 * 1.055))


def test_an_ordering_needs_every_step():
    cells = {
        "a": cell("a", {1: 1.0, 2: 2.0}), "b": cell("b", {1: 2.0, 2: 3.01}), "d": cell("d", {1: 0.0, 2: 1.01}),
        "e": cell("e", {1: 0.0, 2: 9.0}),
    }  # fmt: skip
    assert judge(claim("ordering", "above", 0.0, cells=["a", "b"]), cells).verdict is Verdict.confirmed
    assert judge(claim("ordering", "above", 0.0, cells=["a", "b", "d"]), cells).verdict is Verdict.refuted
    assert (
        judge(claim("ordering", "above", 0.0, cells=["a", "b", "e"]), cells).verdict is Verdict.inconclusive
    )
    assert judge(claim("ordering", "below", 0.0, cells=["b", "a", "d"]), cells).verdict is Verdict.confirmed


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({}, "no cell `a`"),
        ({"a": Cell("a", (), (), "heads: no divisor")}, "invalid: heads: no divisor"),
        ({"a": cell("a", {})}, "no finished seed of `a` has m"),
        ({"a": cell("a", {1: 5.0})}, "one seed"),
        ({"a": cell("a", {1: 5.0, 2: math.nan})}, "not finite"),
        ({"a": cell("a", {1: 5.0, 2: 5.1}, diverged=[3])}, "1 of 3 seeds of `a` diverged"),
    ],
)
def test_what_has_no_interval_is_inconclusive_with_the_reason(cells, reason):
    found = judge(claim("value", "above", 0.0), cells)
    assert found.verdict is Verdict.inconclusive
    assert reason in found.reason


def test_what_cannot_be_compared_says_why():
    cells = {"a": cell("a", {1: 0.0}), "c": cell("c", {1: 2.0}), "d": cell("d", {2: 2.0})}
    for kind, arm, control, reason in (
        ("ratio", "c", "a", "to numbers that are not above"), ("difference", "a", "d", "no seed that all"),
    ):  # fmt: skip
        found = judge(claim(kind, "below", 1.0, cells=arm, control=control), cells)
        assert (found.verdict, found.estimates) == (Verdict.inconclusive, ())
        assert reason in found.reason


def test_a_metric_that_no_run_has_is_named():
    found = judge(claim("value", "below", 1.0, metric="final/dev/nl"), {"a": cell("a", {1: 0.0, 2: 1.0})})
    assert found.reason == "no finished seed of `a` has final/dev/nl"


def test_seeds_that_are_all_equal_say_so_beside_the_verdict():
    found = judge(claim("value", "below", 1.0), {"a": cell("a", {1: 0.0, 2: 0.0, 3: 0.0})})
    assert found.verdict is Verdict.confirmed
    assert "every seed has the same number" in found.reason


def test_divergence_is_counted_exactly():
    found = judge(
        claim("value", "above", 0.2, metric="diverged"), {"a": cell("a", {1: 0.0}, diverged=[2, 3, 4, 5])}
    )
    assert found.estimates[0].mean == 0.8
    # Clopper-Pearson of 4 in 5: [0.2836, 0.9949]
    assert found.estimates[0].interval.low == pytest.approx(0.2836, abs=1e-4)
    assert found.verdict is Verdict.confirmed


def test_all_empty_in_every_seed_has_the_exact_interval_over_sentences():
    empty = "test/prefix/empty"
    cells = {
        "a": cell("a", {1: 1.0, 2: 1.0}, metric=empty, more={"test/prefix/sentences": {1: 30.0, 2: 30.0}})
    }
    found = judge(claim("value", "above", 0.95, metric=empty), cells)
    # 0.8843: both seeds translate one test set, which two seeds make no larger
    assert found.estimates[0].interval.low == pytest.approx(0.025 ** (1 / 30))
    assert (
        found.verdict is Verdict.inconclusive
    )  # 30 sentences cannot tell 0.95; a t-interval without width would
    sure = judge(claim("value", "above", 0.85, metric=empty), cells)
    assert sure.verdict is Verdict.confirmed
    assert sure.reason == "the interval over sentences, of these seeds, lies inside"
    alone = {"a": cell("a", {1: 1.0}, metric=empty, more={"test/prefix/sentences": {1: 1000.0}})}
    assert judge(claim("value", "above", 0.9, metric=empty), alone).verdict is Verdict.inconclusive


def test_one_sentence_more_moves_the_interval_of_a_share_a_little():
    empty = "test/prefix/empty"

    def interval(*values):
        seeds = dict(enumerate(values))
        cells = {
            "a": cell("a", seeds, metric=empty, more={"test/prefix/sentences": dict.fromkeys(seeds, 100.0)})
        }
        (one,) = judge(claim("value", "above", 0.5, metric=empty), cells).estimates
        return one.interval.low, one.interval.high

    assert interval(1.0, 1.0, 1.0) == (pytest.approx(0.025**0.01), 1.0)
    # The t-interval alone is 0.9967 ± 0.0143, which ends above 1 and is less than half as wide.
    assert interval(1.0, 1.0, 0.99) == (pytest.approx(0.025**0.01), 1.0)
    half = 4.302652729749464 * 0.2 / 3**0.5  # sd 0.2: seeds that differ, and more than sentences do
    assert interval(0.8, 0.6, 0.4) == (pytest.approx(0.6 - half), 1.0)


def test_while_runs_are_missing_or_failed_there_is_no_verdict():
    """The seeds that are there first need not be like the others, and who looks may stop where it suits."""
    two = cell("a", {1: 1.0, 2: 1.1})
    failed = SeedRun(4, two.runs[0].config, two.runs[0].folder, Status(State.failed), {})
    for less in (replace(two, missing=(3, 4, 5)), replace(two, runs=(*two.runs, failed), missing=(3, 5))):
        found = judge(claim("value", "above", -9.0), {"a": less})
        assert found.verdict is Verdict.inconclusive
        assert found.reason == "provisional, 2 of 5 seeds of `a`: the interval lies inside"
        assert found.estimates[0].mean == pytest.approx(1.05)
    assert judge(claim("value", "above", -9.0), {"a": two}).verdict is Verdict.confirmed


def test_what_was_measured_before_a_run_diverged_counts(tmp_path):
    records = [{"step": 0, "m": 5.0}]
    cells = {"a": with_records(cell("a", {1: 1.0, 2: 1.0}, diverged=[3]), tmp_path, records)}
    before = judge(claim("value", "within", 4.0, 6.0, metric="m@0"), cells)
    assert (before.verdict, before.estimates[0].n) == (Verdict.confirmed, 3)
    for later in ("m", "m - m@0", "m@20"):
        assert judge(claim("value", "within", -9.0, 9.0, metric=later), cells).verdict is Verdict.inconclusive


def test_steps_that_hold_are_rarely_refuted_however_many_they_are():
    """Five cells that do not differ, and a bound that they keep by a hair: 5% for all steps together."""
    rng, one = np.random.default_rng(11), claim("ordering", "below", 1e-9, cells="abcde")
    refuted = sum(judge(one, row(*draw)).verdict is Verdict.refuted for draw in rng.normal(size=(1500, 5, 3)))
    assert refuted / 1500 < 0.04  # one-sided, so 2.5% and three standard errors; 8% at 95% a step


def test_one_step_alone_is_refuted_at_95_percent_and_beside_another_at_97_5():
    # Steps of mean 1 and sd 0.4: ± 0.994 at 95%, ± 1.43 at 95% for two.
    cells = row([0.0, 0.0, 0.0], [0.6, 1.0, 1.4], [0.6, 1.0, 1.4])
    assert judge(claim("ordering", "below", 0.0, cells="ab"), cells).verdict is Verdict.refuted
    assert judge(claim("ordering", "below", 0.0, cells="abc"), cells).verdict is Verdict.inconclusive
    assert judge(claim("ordering", "above", -1e-9, cells="ab"), cells).verdict is Verdict.confirmed

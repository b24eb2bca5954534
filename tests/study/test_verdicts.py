"""Verdicts: where the interval lies, and what has none."""

import math

import pytest
from made_cells import cell, claim

from attnlab.study.cells import Cell
from attnlab.study.claims import Verdict
from attnlab.study.verdicts import judge


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
    for kind, control, reason in (("ratio", "c", "not above 0"), ("difference", "d", "no seed that all")):
        found = judge(claim(kind, "below", 1.0, control=control), cells)
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
    assert found.estimates[0].interval.low == pytest.approx(0.025 ** (1 / 60))  # 0.9404
    assert (
        found.verdict is Verdict.inconclusive
    )  # 60 sentences cannot tell 0.95; a t-interval without width would
    assert judge(claim("value", "above", 0.9, metric=empty), cells).verdict is Verdict.confirmed
    alone = {"a": cell("a", {1: 1.0}, metric=empty, more={"test/prefix/sentences": {1: 1000.0}})}
    assert judge(claim("value", "above", 0.9, metric=empty), alone).verdict is Verdict.inconclusive

"""The number of each kind of claim, with verdicts by hand."""

import math

import pytest
from made_cells import cell, claim, row

from attnlab.study.claims import Verdict
from attnlab.study.quantities import measured
from attnlab.study.verdicts import judge

X = (1.0, 2.0, 4.0)


def mean(one, cells):
    (found,), _ = measured(one, cells)
    return found.mean


def test_a_share_is_what_is_left_of_an_effect_seed_by_seed():
    cells = row([1.3, 2.4], c=[1.0, 2.0], w=[2.0, 4.0])
    one = claim("share", "below", 0.5, control="c", of=("w", "c"))
    assert mean(one, cells) == pytest.approx((0.3 / 1.0 + 0.4 / 2.0) / 2)
    assert judge(one, row([1.3, 2.5], c=[1.0, 2.0], w=[2.0, 4.0])).verdict is Verdict.inconclusive
    assert judge(one, row([1.3, 2.61], c=[1.0, 2.0], w=[2.0, 4.0])).verdict is Verdict.confirmed
    assert judge(one, row([1.3, 2.6], c=[1.0, 2.0], w=[1.0, 4.0])).reason == "a number that is not finite"


def test_slope_and_exponent_take_their_controls_off():
    cells = row([1.0, 1.1], [2.0, 2.1], [3.0, 3.1], d=[1.0, 1.0], e=[1.5, 1.5], f=[2.0, 2.0])
    slope = {"cells": "abc", "against": X}
    assert mean(claim("slope", "above", 0.0, **slope), cells) == pytest.approx(1.0)
    assert mean(claim("slope", "above", 0.0, control="def", **slope), cells) == pytest.approx(0.5)
    power = row([1.0, 2.0], [4.0, 8.0], [16.0, 32.0], d=[3.0, 1.0], e=[6.0, 2.0], f=[12.0, 4.0])
    assert mean(claim("exponent", "above", 0.0, **slope), power) == pytest.approx(2.0)
    assert mean(claim("exponent", "above", 0.0, control="def", **slope), power) == pytest.approx(1.0)


def test_a_rank_is_against_numbers_or_another_metric():
    cells = row([1.0, 1.0], [2.0, 3.0], [9.0, 2.0])
    against_x = claim("rank", "above", 0.6, cells="abc", against=X)
    assert mean(against_x, cells) == pytest.approx((1.0 + 0.5) / 2)
    (found,), _ = measured(against_x, cells)
    assert (found.interval.low, found.interval.high) == (
        -1.0,
        1.0,
    )  # 0.75 ± 3.2, within what a correlation can be
    more = {name: {"bleu": {1: value, 2: value}} for name, value in zip("abc", (9.0, 5.0, 1.0), strict=True)}
    both = {name: cell(name, one.values("m"), more=more[name]) for name, one in cells.items()}
    assert mean(claim("rank", "below", 0.0, cells="abc", against="bleu"), both) == pytest.approx(-0.75)
    flat = claim("rank", "below", 0.0, cells="abc", against="m", metric="m")
    assert judge(flat, row([1.0, 1.0], [1.0, 1.0], [1.0, 1.0])).reason == "a number that is not finite"


def test_optimum_and_sensitivity_are_ratios_of_rows():
    cells = row([3.0, 3.0], [1.0, 2.0], [2.0, 1.0], d=[2.0, 2.0], e=[2.0, 2.0], f=[1.5, 1.5])
    optimum = claim("optimum", "within", 0.1, 1.1, cells="abc", control="def", against=X)
    assert mean(optimum, cells) == pytest.approx(math.sqrt(0.5))  # 2/4 and 4/4
    sensitivity = claim("sensitivity", "above", 1.0, cells="abc", control="def")
    assert mean(sensitivity, cells) == pytest.approx(3.0)  # 1 and 1 over 1/3
    assert judge(sensitivity, cells).verdict is Verdict.confirmed


def test_sd_and_pairing():
    cells = row([1.0, 2.0, 3.0], c=[1.0, 2.0, 3.1])
    assert mean(claim("sd", "below", 2.0), cells) == pytest.approx(1.0)
    assert mean(claim("pairing", "below", 0.5, control="c"), cells) < 0.01
    alone = row([1.0], c=[1.0])
    for one in (claim("sd", "below", 2.0), claim("pairing", "below", 0.5, control="c")):
        assert judge(one, alone).reason == "one seed: no interval over seeds"


def test_each_arm_stands_at_its_best():
    more = {"a": 5.0, "b": 2.0, "c": 1.0, "d": 7.0}  # a's better loss is not what counts
    values = {"a": [0.0, 0.1], "b": [4.0, 4.1], "c": [1.0, 1.0], "d": [0.0, 0.0]}
    cells = {
        name: cell(name, dict(enumerate(values[name])), more={"honest": {0: more[name], 1: more[name]}})
        for name in "abcd"
    }
    one = claim("difference", "above", 2.0, cells="ab", control="cd", choose="honest")
    found = judge(one, cells)
    assert found.estimates[0].mean == pytest.approx(3.05)
    assert (found.verdict, found.claim) == (Verdict.confirmed, one)
    assert found.reason.endswith("chosen: `b` and `c`")


def test_a_setting_that_diverges_is_not_the_best_unless_all_do():
    cells = row([2.0, 2.1], c=[1.0, 1.0]) | {"b": cell("b", {1: 0.1}, diverged=[2])}
    one = claim("difference", "above", 0.0, cells="ab", control=("c",), choose="m")
    assert judge(one, cells).reason.endswith("chosen: `a` and `c`")
    all_gone = cells | {"a": cell("a", {1: 2.0}, diverged=[2])}
    found = judge(one, all_gone)
    assert found.verdict is Verdict.inconclusive
    assert "1 of 2 seeds of `b` diverged" in found.reason


def test_a_seed_that_diverged_anywhere_in_a_row_leaves_no_verdict():
    cells = row([1.0, 1.1], [2.0, 2.1]) | {"c": cell("c", {1: 3.0, 2: 3.1}, diverged=[3])}
    found = judge(claim("slope", "above", 0.0, cells="abc", against=X), cells)
    assert found.verdict is Verdict.inconclusive
    assert found.reason == "1 of 3 seeds of `c` diverged"

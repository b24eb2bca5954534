"""The number of each kind of claim, with verdicts by hand."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from made_cells import cell, claim, row, with_records
from scipy import stats

from attnlab.study.claims import Effect, Verdict
from attnlab.study.quantities import measured
from attnlab.study.verdicts import judge

X = (1.0, 2.0, 4.0)


def mean(one, cells):
    (found,) = measured(one, cells).estimates
    return found.mean


def test_a_share_is_what_is_left_of_an_effect_seed_by_seed():
    cells = row([1.3, 2.4], c=[1.0, 2.0], w=[2.0, 3.1])
    one = claim("share", "below", 0.5, control="c", of=("w", "c"))
    assert mean(one, cells) == pytest.approx((0.3 / 1.0 + 0.4 / 1.1) / 2)
    assert judge(one, row([1.3, 2.5], c=[1.0, 2.0], w=[2.0, 3.1])).verdict is Verdict.inconclusive
    assert judge(one, row([1.3, 2.331], c=[1.0, 2.0], w=[2.0, 3.1])).verdict is Verdict.confirmed
    none_at_all = judge(one, row([1.3, 2.6], c=[1.0, 2.0], w=[1.0, 2.0]))
    assert none_at_all.reason == "no effect to take a share of: the whole is +0.0000 [+0.0000, +0.0000]"


@pytest.mark.parametrize(
    ("whole", "effect", "verdict"),
    [
        ([0.10, 0.11, 0.12], None, Verdict.confirmed),
        ([0.10, 0.11, 0.12], "rise", Verdict.confirmed),
        ([0.10, 0.11, 0.12], "fall", Verdict.inconclusive),
        ([-0.05, -0.06, -0.05], "rise", Verdict.inconclusive),  # no cost, so none of it can be left
        ([-0.01, 0.10, -0.02], None, Verdict.inconclusive),  # 0.023 ± 0.17: perhaps no effect at all
    ],
)
def test_there_is_no_share_of_an_effect_that_is_not_there_or_goes_the_other_way(whole, effect, verdict):
    """The arm itself costs 0.02 in each seed; a share below 0.3 is all that is predicted."""
    control = [1.0, 2.0, 3.0]
    cells = row(
        [one + 0.02 for one in control],
        c=control,
        w=[one + more for one, more in zip(control, whole, strict=True)],
    )
    one = claim("share", "below", 0.3, control="c", of=("w", "c"), effect=effect and Effect(effect))
    found = judge(one, cells)
    assert found.verdict is verdict
    assert found.estimates[0].mean == pytest.approx(sum(0.02 / more for more in whole) / 3)
    if verdict is Verdict.inconclusive:
        assert found.reason.startswith(f"no {effect or 'effect'} to take a share of: the whole is ")


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
    (found,) = measured(against_x, cells).estimates
    assert (found.interval.low, found.interval.high) == (
        -1.0,
        1.0,
    )  # 0.75 ± 3.2, within what a correlation can be
    more = {name: {"bleu": {1: value, 2: value}} for name, value in zip("abc", (9.0, 5.0, 1.0), strict=True)}
    both = {name: cell(name, one.values("m"), more=more[name]) for name, one in cells.items()}
    assert mean(claim("rank", "below", 0.0, cells="abc", against="bleu"), both) == pytest.approx(-0.75)
    flat = claim("rank", "below", 0.0, cells="abc", against="m", metric="m")
    assert judge(flat, row([1.0, 1.0], [1.0, 1.0], [1.0, 1.0])).reason == "a number that is not finite"


def test_ranks_that_are_equal_in_all_seeds_are_known_to_one_step_of_the_lattice():
    """Of all orders of five cells, that nearest to the perfect one; the t-interval would have no width."""
    near = max(
        stats.spearmanr(range(5), order).statistic
        for order in itertools.permutations(range(5))
        if order != tuple(range(5))
    )
    cells = row(*([float(place)] * 3 for place in range(5)))
    found = judge(claim("rank", "above", 0.85, cells="abcde", against=(1, 2, 3, 4, 5)), cells)
    assert (found.estimates[0].interval.low, found.estimates[0].interval.high) == (pytest.approx(near), 1.0)
    assert found.verdict is Verdict.confirmed
    assert judge(replace(found.claim, bounds=(0.95,)), cells).verdict is Verdict.inconclusive


def test_a_best_setting_is_known_to_one_step_of_its_grid():
    """The arm's is two steps of 3 and 4 lower in every seed, or one, or equal: only the first is surely lower."""
    x = (1.0, 3.0, 12.0)
    low, middle, high = ([[best != place] * 3 for place in range(3)] for best in range(3))
    one = claim("optimum", "below", 1.0, cells="abc", control="def", against=x)
    verdicts = []
    for arm in (low, middle, high):
        cells = row(*arm, **dict(zip("def", high, strict=True)))
        found = judge(one, cells)
        mean = found.estimates[0].mean
        assert found.estimates[0].interval.low == pytest.approx(mean / 4)
        assert found.estimates[0].interval.high == pytest.approx(mean * 4)
        verdicts.append(found.verdict)
    assert verdicts == [Verdict.confirmed, Verdict.inconclusive, Verdict.inconclusive]  # 1/12, 1/4 and 1


def test_a_seed_that_diverged_is_the_worst_setting_and_not_a_missing_one(tmp_path):
    """At the loss before training, 8, the sensitivities are (0 + 1 + 7) / 3 to (0 + 1 + 1) / 3."""
    names = {"metric": "final/dev/n", "cells": "abc", "control": "def"}
    cells = {
        name: cell(name, {1: value, 2: value}, metric="final/dev/n")
        for name, value in zip("abdef", (1.0, 2.0, 1.0, 2.0, 2.0), strict=True)
    }
    gone = cell("c", {1: 8.0}, diverged=[2], metric="final/dev/n")
    cells["c"] = with_records(gone, tmp_path, [{"step": 0, "dev/n": 8.0}])
    found = judge(claim("sensitivity", "above", 1.5, **names), cells)
    assert (found.estimates[0].n, found.estimates[0].mean) == (2, pytest.approx(4.0))
    assert found.verdict is Verdict.confirmed
    best = judge(claim("optimum", "within", 0.1, 10.0, against=X, **names), cells)
    assert best.estimates[0].mean == pytest.approx(1.0)
    assert best.verdict is Verdict.confirmed
    slope = judge(claim("slope", "above", 0.0, against=X, **names), cells)  # no other kind knows a cap
    assert slope.reason == "1 of 2 seeds of `c` diverged"


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


def test_each_seed_of_an_arm_stands_with_the_cell_that_the_others_chose():
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
    assert found.chosen == ("b",)


def test_the_best_of_many_equal_cells_is_no_better_than_one():
    """The winner's curse: of eight cells that differ by noise alone, the best of each three seeds by their own mean."""
    rng = np.random.default_rng(7)
    names, one = "abcdefgh", claim("difference", "below", 0.0, cells="abcdefgh", control=("z",), choose="m")
    curse, held_out, verdicts = [], [], []
    for draw in rng.normal(size=(400, 8, 3)):
        cells = row(*draw, z=[0.0] * 3)
        found = judge(one, cells)
        held_out.append(found.estimates[0].mean)
        curse.append(draw.mean(axis=1).min())
        verdicts.append(found.verdict)
    assert len(names) == 8
    assert np.mean(curse) < -0.7  # -1.42 / sqrt(3), the mean of the least of eight
    assert np.mean(held_out) == pytest.approx(0.0, abs=3 * np.std(held_out) / 20)
    assert verdicts.count(Verdict.confirmed) / 400 < 0.06  # 2.5%, and three standard errors


def test_seeds_that_chose_differently_are_named_and_one_seed_chooses_nothing():
    # Without seed 1 the mean of b is lower, without 2 or 3 that of a.
    cells = row([0.0, 3.0, 3.0], [2.0, 1.0, 3.0], c=[0.0, 0.0, 0.0])
    one = claim("difference", "above", -99.0, cells="ab", control="c", choose="m")
    found = judge(one, cells)
    assert found.estimates[0].mean == pytest.approx((2.0 + 3.0 + 3.0) / 3)
    assert found.reason.endswith("chosen: `a` (seed 2, 3) or `b` (seed 1) and `c`")
    assert found.chosen == ("a", "b")
    alone = judge(one, row([0.0], [2.0], c=[0.0]))
    assert (alone.verdict, alone.estimates) == (Verdict.inconclusive, ())
    assert alone.reason == "no seed has another one with m to choose by"


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

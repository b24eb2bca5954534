"""One number a seed from a row of cells: against curves whose answer is known."""

import math

import numpy as np
import pytest
from scipy import stats

from attnlab.study import trends

X = [8.0, 16.0, 32.0, 64.0]


def test_the_slope_is_what_a_doubling_adds():
    rows = [{1: 5 + 0.25 * n, 2: 1 - 3.0 * n} for n in range(4)]
    assert trends.slopes(rows, X) == pytest.approx({1: 0.25, 2: -3.0})


def test_the_exponent_is_that_of_a_power_law_whatever_its_factor():
    rows = [{1: 7 * x**0.5, 2: 0.1 * x**-1.5} for x in X]
    assert trends.exponents(rows, X) == pytest.approx({1: 0.5, 2: -1.5})
    assert math.isnan(trends.exponents([{1: 1.0}, {1: 0.0}], X[:2])[1])


def test_slopes_of_scattered_values_are_least_squares():
    values = np.random.default_rng(3).normal(size=4)
    oracle = stats.linregress(np.log2(X), values).slope
    assert trends.slopes([{1: value} for value in values], X)[1] == pytest.approx(oracle)


def test_ranks_do_not_care_for_distances_and_share_ties():
    rows = [{1: 1.0, 2: 4.0, 3: 0.0}, {1: 2.0, 2: 3.0, 3: 0.0}, {1: 900.0, 2: 3.0, 3: 0.0}]
    order = [{1: 8.0, 2: 8.0, 3: 8.0}, {1: 16.0, 2: 16.0, 3: 16.0}, {1: 17.0, 2: 17.0, 3: 17.0}]
    found = trends.ranks(rows, order)
    assert found[1] == pytest.approx(1.0)
    assert found[2] == pytest.approx(-math.sqrt(3) / 2)  # Pearson of the ranks 3, 1.5, 1.5 with 1, 2, 3
    assert math.isnan(found[3])


def test_the_best_setting_and_the_sensitivity_to_it():
    rows = [{1: 3.0, 2: 1.0}, {1: 1.0, 2: 1.5}, {1: 2.0, 2: 4.5}]
    assert trends.best_settings(rows, [0.1, 0.2, 0.4]) == {1: 0.2, 2: 0.1}
    assert trends.sensitivities(rows) == pytest.approx({1: 1.0, 2: 4 / 3})
    assert math.isnan(trends.best_settings([{1: 1.0}, {1: math.nan}], [1, 2])[1])


def test_only_seeds_that_every_cell_has_count():
    rows = [{1: 0.0, 2: 0.0, 3: 9.0}, {1: 1.0, 2: 1.0}, {2: 2.0, 1: 2.0, 4: 9.0}]
    assert trends.slopes(rows, X[:3]) == pytest.approx({1: 1.0, 2: 1.0})

"""The sd over seeds and the gain of pairing: against worked numbers, and how often the intervals hold the truth."""

import math

import numpy as np
import pytest

from attnlab.study.seed_noise import pairing, spread


def test_the_interval_of_an_sd_is_that_of_chi_squared():
    found = spread([1.0, 2.0, 3.0, 4.0, 5.0])
    # sd^2 = 2.5, 4 degrees of freedom, chi^2 quantiles 0.4844 and 11.1433 (tables)
    assert found.mean == pytest.approx(math.sqrt(2.5))
    assert found.interval.low == pytest.approx(math.sqrt(10 / 11.1433), rel=1e-4)
    assert found.interval.high == pytest.approx(math.sqrt(10 / 0.4844), rel=1e-4)


def test_pairing_that_gains_nothing_gains_half_and_gains_all():
    arm = {1: 1.0, 2: 3.0, 3: 2.0, 4: 4.0}
    assert pairing(arm, arm).mean == 0.0
    assert pairing(arm, {seed: -value for seed, value in arm.items()}).mean == 2.0
    independent = pairing({1: 1.0, 2: 1.0, 3: -1.0, 4: -1.0}, {1: 1.0, 2: -1.0, 3: 1.0, 4: -1.0, 9: 5.0})
    assert (independent.n, independent.mean) == (4, pytest.approx(1.0))
    # var s = var d; the 97.5% quantile of F(3, 3) is 15.439 (tables)
    assert independent.interval.low == pytest.approx(2 / (1 + 15.439), rel=1e-4)
    assert independent.interval.high == pytest.approx(2 / (1 + 1 / 15.439), rel=1e-4)


def test_both_intervals_hold_the_truth_in_95_of_100_draws():
    draws = np.random.default_rng(5).normal(size=(2000, 3, 6))
    held_sd = held_pairing = 0
    for common, one, other in draws:
        arm, control = (
            dict(enumerate(math.sqrt(0.7) * common + math.sqrt(0.3) * own)) for own in (one, other)
        )
        sd, gain = spread(list(arm.values())).interval, pairing(arm, control).interval
        held_sd += sd.low <= 1.0 <= sd.high
        held_pairing += gain.low <= 0.3 <= gain.high  # 1 - r, where r = 0.7
    assert held_sd / 2000 == pytest.approx(0.95, abs=0.015)  # 3 standard errors
    assert held_pairing / 2000 == pytest.approx(0.95, abs=0.015)


def test_what_has_no_spread_to_speak_of():
    assert spread([1.0]).interval is None
    assert spread([1.0, math.nan]).interval is None
    assert pairing({1: 1.0}, {2: 1.0}) is None
    assert pairing({1: 1.0}, {1: 1.0}).interval is None
    assert math.isnan(pairing({1: 1.0, 2: 1.0}, {1: 1.0, 2: 1.0}).mean)

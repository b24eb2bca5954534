"""The learning rate by its formulas."""

import pytest

from attnlab.compose import load
from attnlab.training.schedule import learning_rate


def test_paper_schedule_is_equation_3():
    train = load(["train=paper"]).train
    for step in (1, 10, 3999, 4000, 4001, 50_000):
        assert learning_rate(train, step, 512) == pytest.approx(
            512**-0.5 * min(step**-0.5, step * 4000**-1.5)
        )


def test_inverse_sqrt_peaks_at_lr_at_the_end_of_the_warm_up():
    train = load(["train=multi30k"]).train
    rates = [learning_rate(train, step, 128) for step in range(1, 8001)]
    assert max(rates) == rates[1999] == pytest.approx(5e-3)
    assert rates[999] == pytest.approx(2.5e-3)
    assert rates[7999] == pytest.approx(5e-3 / 2)


def test_no_warm_up_starts_at_the_peak():
    assert learning_rate(load(["train.warmup=0"]).train, 1, 64) == pytest.approx(3e-3)

"""How a claim writes what it measures."""

import math

import pytest
from made_cells import cell, with_records

from attnlab.study.metric import Metric, Term


def test_a_result_a_step_a_difference_and_a_quotient():
    assert Metric.parse("final/dev/nll") == Metric(Term("final/dev/nll", None))
    assert Metric.parse("a/b@20 / c/d") == Metric(Term("a/b", 20), "/", Term("c/d", None))
    assert Metric.parse("a - b@0") == Metric(Term("a", None), "-", Term("b", 0))


@pytest.mark.parametrize("text", ["", "a b", "a + b", "a/ b", "a@x", "a@", "a - b - c", "@0"])
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match="allowed: name, name@step, or two"):
        Metric.parse(text)


def test_two_terms_are_joined_within_each_run():
    one = cell("c", {1: 6.0, 2: 9.0, 3: 1.0}, more={"n": {1: 2.0, 2: 0.0}})
    assert Metric.parse("m - n").of(one) == {1: 4.0, 2: 9.0}
    assert Metric.parse("n - m").of(one) == {1: -4.0, 2: -9.0}
    found = Metric.parse("m / n").of(one)
    assert found[1] == 3.0
    assert math.isnan(found[2])


def test_a_step_is_read_from_the_records_of_that_step(tmp_path):
    records = [
        {"step": 0, "m": 5.0, "k": 1.0},
        {"step": 2, "m": 4.0},
        {"step": 2, "k": "NaN"},
        {"step": 20, "m": 3.0},
    ]
    one = with_records(cell("c", {1: 2.0}), tmp_path, records)
    assert Metric.parse("m@0").of(one) == {1: 5.0}
    assert Metric.parse("m@2").of(one) == {1: 4.0}
    assert math.isnan(Metric.parse("k@2").of(one)[1])
    assert Metric.parse("m@1").of(one) == {}
    assert Metric.parse("m@20 - m@0").of(one) == {1: -2.0}
    assert Metric.parse("m / m@0").of(one) == {1: 0.4}


def test_a_run_that_diverged_has_the_steps_before_and_no_result(tmp_path):
    one = with_records(cell("c", {1: 2.0}, diverged=[2]), tmp_path, [{"step": 0, "m": 5.0}])
    assert Metric.parse("m@0").of(one) == {1: 5.0, 2: 5.0}
    assert Metric.parse("m").of(one) == {1: 2.0}
    assert Metric.parse("m / m@0").of(one) == {1: 0.4}

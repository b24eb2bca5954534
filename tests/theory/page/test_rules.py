"""The rules that compare: they must fail on a wrong digit, shape or word, and on nothing else."""

import math

import pytest
import torch

from attnlab.theory.page.rules import (
    AtMost,
    Claim,
    Digits,
    Kind,
    Outcome,
    Printed,
    Shapes,
    Text,
    judge,
    like,
    new_number,
)


@pytest.mark.parametrize(
    ("value", "printed", "text"),
    [
        (0.57611, "0.576", "0.576"), (-1e-9, "0.000", "0.000"), (-math.inf, "-inf", "-inf"), (True, "True", "True"),
        (1.4e-7, "4.8e-07", "1.4e-07"), (0.0, "0.0e+00", "0.0e+00"), (5, "5", "5"), ("▁it", "0.3", "▁it"),
        (-15.83, "-15.8", "-15.8"), (0.5, ".", "0.5"),
    ],
)  # fmt: skip
def test_a_value_is_written_with_the_printed_digits(value, printed, text):
    assert like(value, printed) == text


def test_digits_hold_up_to_half_a_unit_of_the_last_one():
    rule = Digits("0.576 ▁it 2")
    assert rule.holds([torch.tensor(0.57649), "▁it", 2])
    for wrong in (
        [0.57651, "▁it", 2],
        [0.576, "▁in", 2],
        [0.576, "▁it", 3],
        [0.576, "▁it"],
        [0.576, "▁it", 2, 2],
    ):
        assert not rule.holds(wrong)


def test_bounds_shapes_and_texts():
    assert AtMost("4.8e-07", 1e-6).holds(torch.tensor(9e-7))
    assert not AtMost("4.8e-07", 1e-6).holds(2e-6)
    assert AtMost("4.8e-07", 1e-6).tolerance == "<= 1e-06"
    assert not AtMost("0.0e+00", 0.0).holds(math.nan)
    assert Shapes(((2, 5), (3,))).holds([torch.Size([2, 5]), torch.Size([3])])
    assert not Shapes(((2, 5),)).holds([torch.Size([5, 2])])
    assert not Shapes(((2, 5),)).holds([(2, 5), (1,)])
    assert Text("▁Die ▁Katze").holds(["▁Die", "▁Katze"])
    assert not Text("a b").holds("a c")
    with pytest.raises(ValueError, match="study"):
        Claim("C03").holds(0)


def test_on_other_weights_only_rounding_differences_are_judged():
    digits = Printed("S57", "weights", Kind.released, Digits("0.75 1.00"))
    assert new_number(digits, [0.75, 1.0]).outcome is Outcome.new
    bound = Printed("S41.difference", "ours - library", Kind.released, AtMost("1.5e-06", 1e-5))
    assert new_number(bound, 1.0).outcome is Outcome.failed
    assert judge(bound, 1e-6).outcome is Outcome.passed

"""Curves of a page against sums by hand."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.report.curves import Curves, add_curves, rounded, thin, wanted
from attnlab.report.heads import head_entropies, head_lines

numbers = st.floats(-1e3, 1e3, allow_nan=False)


def test_a_short_curve_is_kept_point_by_point():
    assert thin([0, 10, 20], [3.0, 2.0, 1.0], 3) == ([0, 10, 20], [3.0, 2.0, 1.0])


def test_stretches_become_their_mean_at_their_last_step():
    steps, values = thin(range(9), [9.0, 1, 2, 3, 4, 5, 6, 7, 8], 5)
    assert steps == [0, 2, 4, 6, 8]
    assert values == [9.0, 1.5, 3.5, 5.5, 7.5]  # the first alone, then pairs


@given(st.lists(numbers, min_size=2, max_size=200), st.integers(2, 40))
def test_thinning_keeps_the_ends_and_the_sum(values, points):
    steps, means = thin(range(len(values)), values, points)
    assert len(steps) <= points or len(values) <= points
    assert (steps[0], steps[-1]) == (0, len(values) - 1)
    assert means[0] == rounded(values[0])
    widths = [b - a for a, b in itertools.pairwise(steps)]
    total = values[0] + sum(width * mean for width, mean in zip(widths, means[1:], strict=True))
    assert total == pytest.approx(sum(values), abs=1e-3 * sum(map(abs, values)) + 1e-9)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_number_that_is_none_is_a_gap(bad):
    assert thin(range(5), [1.0, 1.0, bad, 1.0, 1.0], 3)[1] == [1.0, None, 1.0]
    assert thin([0, 1], [bad, 1.0], 3)[1] == [None, 1.0]


def test_steps_that_runs_share_are_stored_once():
    curves = Curves()
    records = [{"step": 0, "dev/nll": 3.0, "other": 1.0}, {"step": 10, "dev/nll": 2.0}]
    for run in (0, 1):
        add_curves(curves, run, records, [wanted(9, "dev/nll", "probe/entropy/<site>")])
    add_curves(curves, 2, records[:1], [wanted(9, "dev/nll")])
    assert curves.grids == [[0, 10], [0]]
    assert curves.lines == {"dev/nll": {0: (0, [3.0, 2.0]), 1: (0, [3.0, 2.0]), 2: (1, [3.0])}}


def test_a_site_is_one_of_three():
    wish = wanted(9, "probe/entropy/<site>")
    assert [
        bool(wish.pattern.fullmatch(f"probe/entropy/{name}"))
        for name in ("encoder", "cross", "else", "encoder/layer1/head1")
    ] == [True, True, False, False]


def test_heads_are_averaged_over_seeds_at_shared_steps():
    def run(values):
        return head_lines(
            [
                {
                    "step": step,
                    "probe/entropy_normalized/cross/layer1/head2": value,
                    "probe/entropy_normalized/cross": 9.0,
                }
                for step, value in values
            ]
        )

    found = head_entropies({3: [run([(0, 0.5), (10, 0.2), (20, 0.1)]), run([(0, 0.7), (10, math.nan)])]})
    assert found.heads == [("cross", 1, 2)]
    assert found.steps == {3: [0, 10]}
    assert found.values == {3: [[600, None]]}


def test_heads_stand_in_the_order_of_the_model():
    names = ["cross/layer1/head1", "encoder/layer10/head1", "encoder/layer2/head1", "decoder/layer1/head2"]
    found = head_entropies(
        {0: [head_lines([{"step": 0} | {f"probe/entropy_normalized/{name}": 0.5 for name in names}])]}
    )
    assert found.heads == [("encoder", 2, 1), ("encoder", 10, 1), ("decoder", 1, 2), ("cross", 1, 1)]

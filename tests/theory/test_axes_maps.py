"""The index algebra of wrong axes against our own reshapes, and its leak maps against autograd."""

import pytest
import torch

from attnlab.config import Axes
from attnlab.model.attention import attend, merge_heads, split_heads
from attnlab.model.masks import causal
from attnlab.theory import axes_maps

SIZES = [(14, 4), (10, 4), (12, 8), (7, 3), (5, 1), (1, 4)]


@pytest.mark.parametrize(("n", "heads"), SIZES)
@pytest.mark.parametrize("axes", Axes)
def test_split_and_merge_sources_equal_the_reshapes(n, heads, axes):
    chunk = torch.arange(n * heads).view(1, n, heads)  # one number a piece: token * heads + piece
    split = split_heads(chunk, heads, axes)[0, :, :, 0]
    merged = merge_heads(torch.arange(heads * n).view(1, heads, n, 1), axes)[0]
    for head in range(heads):
        for row in range(n):
            token, piece = axes_maps.split_source(head, row, n, heads, axes)
            assert split[head, row].item() == token * heads + piece
    for token in range(n):
        for piece in range(heads):
            head, row = axes_maps.merge_source(token, piece, n, heads, axes)
            assert merged[token, piece].item() == head * n + row


def jacobian_support(n: int, heads: int, split: Axes, merge: Axes, mask: bool) -> torch.Tensor:
    """[n,n]: which outputs of split, attend, merge move with which inputs; q = k = v = x."""
    x = torch.randn(1, n, heads * 3, generator=torch.Generator().manual_seed(n), dtype=torch.float64)

    def block(x):
        parts = split_heads(x, heads, split)
        return merge_heads(attend(parts, parts, parts, causal(n) if mask else None).out, merge)

    full = torch.func.jacrev(block)(x)[0, :, :, 0]  # [n, D, n, D]
    return full.abs().sum((1, 3)) > 1e-12


@pytest.mark.parametrize(("n", "heads"), SIZES)
@pytest.mark.parametrize("split", Axes)
@pytest.mark.parametrize("merge", Axes)
@pytest.mark.parametrize("mask", [True, False])
def test_visible_cells_equal_the_support_of_the_jacobian(n, heads, split, merge, mask):
    exact = jacobian_support(n, heads, split, merge, mask)
    assert torch.equal(axes_maps.visible(n, heads, split, merge, mask), exact)


def test_counts_at_14_tokens_and_4_heads():
    right, wrong = Axes.heads_first, Axes.no_transpose
    maps = {
        name: axes_maps.visible(14, 4, split, merge, True)
        for name, split, merge in (
            ("right", right, right),
            ("split", wrong, wrong),
            ("merge", right, wrong),
            ("split only", wrong, right),
        )
    }
    assert axes_maps.future_cells(maps["right"]) == 0
    assert axes_maps.past_cells(maps["right"]) == 105
    assert axes_maps.future_cells(maps["split"]) == 0
    assert axes_maps.past_cells(maps["split"]) == 38
    assert axes_maps.future_cells(maps["merge"]) == 45
    assert axes_maps.next_tokens_visible(maps["merge"]) == 9
    assert axes_maps.future_cells(maps["split only"]) == 45


def test_R11_wrong_axes_are_invisible_for_one_head_or_one_token():
    for n, heads in ((9, 1), (1, 4)):
        maps = [axes_maps.visible(n, heads, split, merge, True) for split in Axes for merge in Axes]
        assert all(torch.equal(maps[0], other) for other in maps)


def test_the_rows_that_the_page_names():
    """12 tokens, 8 heads: rows 1-8 of head 1 are token 1, rows 9-12 the first half of token 2."""
    sources = [axes_maps.split_source(0, row, 12, 8, Axes.no_transpose) for row in range(12)]
    assert sources == [(0, piece) for piece in range(8)] + [(1, piece) for piece in range(4)]

"""The fast steps of attention against the plain lines they stand for, in every arm."""

import math
from itertools import product

import pytest
import torch
from torch import Tensor

from attnlab.config import Mask
from attnlab.model import fast
from attnlab.model.attention import attend
from attnlab.model.masks import causal

LENGTHS = (1, 5, 12, 15)  # shorter than a register
# a fill is of the mask before the softmax alone
CASES = [
    (mask, fill, padded)
    for mask, fill, padded in product(Mask, (-math.inf, 0.0, -10.0), (False, True))
    if fill == -math.inf or mask is Mask.before_softmax
]


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_softmax_is_torchs(n: int, dtype: torch.dtype) -> None:
    scores = 4 * torch.randn(3, 2, 7, n, dtype=dtype, generator=torch.Generator().manual_seed(n))
    ours, plain = scores.clone().requires_grad_(), scores.clone().requires_grad_()
    upstream = torch.randn(scores.shape, dtype=dtype, generator=torch.Generator().manual_seed(1))
    (fast.softmax(ours) * upstream).sum().backward()
    (torch.softmax(plain, -1) * upstream).sum().backward()
    tolerance = 1e-15 if dtype is torch.float64 else 2e-7
    torch.testing.assert_close(fast.softmax(ours), torch.softmax(plain, -1), atol=tolerance, rtol=0)
    torch.testing.assert_close(ours.grad, plain.grad, atol=4 * tolerance, rtol=0)


@pytest.mark.parametrize(("n", "grad"), [(fast.LANES, True), (5, False)])
def test_long_rows_and_mere_looks_take_torchs_own(
    n: int, grad: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.nn.functional, "pad", lambda *_, **__: pytest.fail("padded"))
    scores = torch.randn(2, 1, 3, n, requires_grad=grad)
    assert torch.equal(fast.softmax(scores), torch.softmax(scores, -1))


def test_softmax_of_a_hidden_row_is_torchs_nan() -> None:
    scores = torch.full((1, 1, 2, 5), -math.inf, requires_grad=True)
    assert fast.softmax(scores).isnan().all()


@pytest.mark.parametrize(("mask", "fill", "padded"), CASES)
@pytest.mark.parametrize("n", [6, 18])
def test_every_arm_equals_its_plain_lines(
    mask: Mask, fill: float, padded: bool, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(4, 2, n, 8, dtype=torch.float64, generator=generator) for _ in range(3))
    upstream = torch.randn(4, 2, n, 8, dtype=torch.float64, generator=generator)
    lengths = torch.tensor([n, n - 1, n - 3, 1])
    real = (torch.arange(n) < lengths[:, None])[:, None, None] if padded else None

    def outcome() -> list[Tensor]:
        leaves = [x.clone().requires_grad_() for x in (q, k, v)]
        attended = attend(*leaves, causal(n), real=real, mask=mask, mask_fill=fill)
        (attended.out * upstream).sum().backward()
        assert all(leaf.grad is not None for leaf in leaves)
        return [attended.out, attended.weights, *(leaf.grad for leaf in leaves if leaf.grad is not None)]

    ours = outcome()
    monkeypatch.setattr(fast, "hide", lambda scores, hidden: scores.masked_fill(hidden, -math.inf))
    monkeypatch.setattr(fast, "softmax", lambda scores: torch.softmax(scores, dim=-1))
    for mine, plain in zip(ours, outcome(), strict=True):
        assert mine.isfinite().all()
        torch.testing.assert_close(mine, plain, atol=1e-14, rtol=1e-13)

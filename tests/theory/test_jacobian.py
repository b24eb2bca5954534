"""The closed forms of the softmax's Jacobian against autograd, float64."""

import math

import pytest
import torch

from attnlab.theory import jacobian


@pytest.fixture
def rows() -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(50, 7, generator=generator, dtype=torch.float64) * torch.logspace(-1, 1.2, 50)[:, None]


def test_jacobian_equals_autograd(rows):
    exact = torch.stack([torch.func.jacrev(lambda s: torch.softmax(s, -1))(row) for row in rows])
    p = torch.softmax(rows, -1)
    ours = jacobian.jacobian(p)
    torch.testing.assert_close(ours, exact, rtol=0, atol=1e-14)
    torch.testing.assert_close(ours.sum(-1), torch.zeros(50, 7, dtype=torch.float64), rtol=0, atol=1e-14)


def test_summaries_equal_those_of_the_full_matrix(rows):
    p = torch.softmax(rows, -1)
    full = jacobian.jacobian(p)
    torch.testing.assert_close(jacobian.largest_entry(p), full.abs().amax((-2, -1)), rtol=0, atol=1e-15)
    torch.testing.assert_close(jacobian.trace(p), full.diagonal(dim1=-2, dim2=-1).sum(-1), rtol=0, atol=1e-14)
    torch.testing.assert_close(jacobian.frobenius_squared(p), full.square().sum((-2, -1)), rtol=0, atol=1e-14)


def test_largest_eigenvalue_lies_within_its_bounds(rows):
    p = torch.softmax(rows, -1)
    largest = torch.linalg.eigvalsh(jacobian.jacobian(p))[:, -1]
    low, high = jacobian.spectral_bounds(p)
    assert bool((largest >= low - 1e-12).all())
    assert bool((largest <= high + 1e-12).all())
    pair = torch.tensor([0.5, 0.5], dtype=torch.float64)
    assert (
        jacobian.spectral_bounds(pair)[1].item()
        == torch.linalg.eigvalsh(jacobian.jacobian(pair))[-1].item()
        == 0.5
    )


@pytest.mark.parametrize("n", [2, 10, 64])
def test_uniform_weights(n):
    p = torch.full((n,), 1 / n, dtype=torch.float64)
    assert jacobian.entropy(p).item() == pytest.approx(math.log(n))
    assert jacobian.largest_entry(p).item() == pytest.approx((n - 1) / n**2)
    assert jacobian.frobenius_squared(p).item() == pytest.approx((n - 1) / n**2)
    assert jacobian.trace(p).item() == pytest.approx(1 - 1 / n)
    assert jacobian.effective_keys(p).item() == pytest.approx(n)


def test_R16_one_key_has_entropy_exactly_zero():
    p = torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64)
    assert jacobian.entropy(p).item() == 0
    assert (
        jacobian.frobenius_squared(p).item()
        == jacobian.trace(p).item()
        == jacobian.largest_entry(p).item()
        == 0
    )


def test_no_entry_exceeds_a_quarter_and_two_equal_keys_reach_it(rows):
    assert jacobian.largest_entry(torch.softmax(rows * 3, -1)).max().item() <= 0.25
    assert jacobian.largest_entry(torch.tensor([0.5, 0.5, 0.0])).item() == 0.25

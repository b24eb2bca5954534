"""The 1/sigma laws of a saturated softmax against Monte Carlo and numerical integrals."""

import math

import pytest
import torch

from attnlab.theory import jacobian, saturated_laws, softmax_laws


def test_top_gap_density_of_two_draws_is_that_of_their_difference():
    """|x - y| with x - y ~ N(0, 2) has density 2 / sqrt(4 pi) at 0."""
    assert saturated_laws.top_gap_density(2) == pytest.approx(1 / math.sqrt(math.pi), rel=1e-9)


@pytest.mark.parametrize("n", [3, 10, 64])
def test_top_gap_density_equals_the_frequency_of_small_gaps(n):
    x = torch.randn(400_000, n, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    top = x.topk(2, dim=-1).values
    frequency = ((top[:, 0] - top[:, 1]) < 0.02).double().mean().item() / 0.02
    assert saturated_laws.top_gap_density(n) == pytest.approx(frequency, rel=0.04)


def test_the_integrals_over_the_gap():
    u = torch.linspace(0, 60, 600_001, dtype=torch.float64)
    p = torch.stack([1 / (1 + torch.exp(-u)), torch.exp(-u) / (1 + torch.exp(-u))], dim=-1)
    gap = saturated_laws.top_gap_density(10)
    for law, statistic in (
        (saturated_laws.trace, jacobian.trace), (saturated_laws.largest_entry, jacobian.largest_entry),
        (saturated_laws.frobenius_squared, jacobian.frobenius_squared), (saturated_laws.entropy, jacobian.entropy),
    ):  # fmt: skip
        integral = torch.trapezoid(statistic(p), u).item()
        assert law(10, 5.0) == pytest.approx(integral * gap / 5.0, rel=1e-8)


@pytest.mark.parametrize("n", [10, 30])
def test_monte_carlo_at_the_page_s_unscaled_d_k_of_512(n):
    sigma = math.sqrt(512)
    sample = softmax_laws.sample(n, sigma, 100_000, torch.Generator().manual_seed(0))
    assert sample.trace.mean().item() == pytest.approx(saturated_laws.trace(n, sigma), rel=0.03)
    assert sample.largest_entry.mean().item() == pytest.approx(
        saturated_laws.largest_entry(n, sigma), rel=0.06
    )
    frobenius = sample.frobenius_squared.mean().item()
    assert frobenius == pytest.approx(saturated_laws.frobenius_squared(n, sigma), rel=0.09)
    assert sample.entropy.mean().item() == pytest.approx(saturated_laws.entropy(n, sigma), rel=0.08)


def test_the_density_tends_to_the_freezing_point():
    ratios = [saturated_laws.top_gap_density(n) / softmax_laws.freezing_point(n) for n in (10, 512, 10**6)]
    assert ratios == sorted(ratios)
    assert ratios[0] > 0.7
    assert 0.88 < ratios[2] < 1

"""Closed-form gradients against autograd; the reduced sampler against brute force and the notes' table."""

import math

import numpy as np
import pytest
import torch

from attnlab.config import Mask
from attnlab.model.attention import attend
from attnlab.theory import gradient_ratios as ratios
from attnlab.theory import softmax_laws
from attnlab.theory.gradient_ratios import Statistic


def test_gradients_equal_autograd_through_our_attention():
    generator = torch.Generator().manual_seed(0)
    q = torch.randn(2, 3, 5, 8, generator=generator, dtype=torch.float64, requires_grad=True)
    k = torch.randn(2, 3, 7, 8, generator=generator, dtype=torch.float64, requires_grad=True)
    v = torch.randn(2, 3, 7, 6, generator=generator, dtype=torch.float64)
    upstream = torch.randn(2, 3, 5, 6, generator=generator, dtype=torch.float64)
    for scale in (1.0, 1 / math.sqrt(8)):
        attended = attend(q, k, v, scale=scale, mask=Mask.none)
        dq, dk, ds = torch.autograd.grad((attended.out * upstream).sum(), (q, k, attended.scores))
        p, dp = attended.weights.detach(), upstream @ v.transpose(-2, -1)
        torch.testing.assert_close(ratios.logit_gradient(p, dp), ds, rtol=0, atol=1e-13)
        keys = k.detach().unsqueeze(2).expand(2, 3, 5, 7, 8)
        torch.testing.assert_close(ratios.query_gradient(p, dp, keys, scale), dq, rtol=0, atol=1e-13)
        torch.testing.assert_close(ratios.key_gradient(p, dp, q.detach(), scale), dk, rtol=0, atol=1e-13)


def brute_force(d_k: int, n: int, draws: int, scale: float) -> np.ndarray:
    """|dL/dq| through autograd with full vectors; dO = e_1, so dp_j = v_j1."""
    generator = torch.Generator().manual_seed(9)
    q = torch.randn(draws, 1, d_k, generator=generator, dtype=torch.float64, requires_grad=True)
    k = torch.randn(draws, n, d_k, generator=generator, dtype=torch.float64)
    v = torch.randn(draws, n, 1, generator=generator, dtype=torch.float64)
    (gradient,) = torch.autograd.grad(attend(q, k, v, scale=scale).out.sum(), q)
    return gradient.norm(dim=-1).flatten().numpy()


@pytest.mark.parametrize("d_k", [4, 64])
def test_the_reduced_sampler_has_the_law_of_brute_force(d_k):
    sample = ratios.sample_query_gradients(d_k, 14, 100_000, np.random.default_rng(1))
    for scale, ours in ((1 / math.sqrt(d_k), sample.scaled), (1.0, sample.unscaled)):
        exact = brute_force(d_k, 14, 20_000, scale)
        for level in (50, 90, 99):
            assert np.percentile(ours, level) == pytest.approx(np.percentile(exact, level), rel=0.05)
        assert ratios.reduce(ours, Statistic.rms) == pytest.approx(
            ratios.reduce(exact, Statistic.rms), rel=0.05
        )


@pytest.mark.parametrize(
    ("d_k", "rms", "mean", "median"),
    [(16, 3.86, 3.11, 2.57), (64, 6.13, 3.87, 1.56), (128, 7.45, 4.02, 0.637), (512, 11.7, 4.70, 0.020)],
)
def test_ratios_at_14_keys(d_k, rms, mean, median):
    """An independent autograd study with fewer draws (heavy tails: good to 10%). The rms grows, the median vanishes."""
    sample = ratios.sample_query_gradients(d_k, 14, 200_000, np.random.default_rng(2))
    assert sample.ratio(Statistic.rms) == pytest.approx(rms, rel=0.1)
    assert sample.ratio(Statistic.mean) == pytest.approx(mean, rel=0.1)
    assert sample.ratio(Statistic.median) == pytest.approx(median, rel=0.15)


def test_the_rms_formula_is_within_a_tenth_of_the_sample():
    generator = torch.Generator().manual_seed(3)
    for d_k in (16, 64, 512):
        sigmas = (math.sqrt(d_k), 1.0)
        frobenius = [
            softmax_laws.sample(14, s, 100_000, generator).frobenius_squared.mean().item() for s in sigmas
        ]
        measured = ratios.sample_query_gradients(d_k, 14, 200_000, np.random.default_rng(4)).ratio(
            Statistic.rms
        )
        assert ratios.rms_ratio(d_k, *frobenius) == pytest.approx(measured, rel=0.1)


def test_the_saturated_form_grows_like_the_fourth_root_of_d_k():
    generator = torch.Generator().manual_seed(5)
    frobenius = softmax_laws.sample(14, 1.0, 100_000, generator).frobenius_squared.mean().item()
    values = [ratios.saturated_rms_ratio(d_k, 14, frobenius) for d_k in (512, 16 * 512)]
    assert values[1] / values[0] == pytest.approx(2.0)
    measured = ratios.sample_query_gradients(512, 14, 200_000, np.random.default_rng(6)).ratio(Statistic.rms)
    assert values[0] == pytest.approx(measured, rel=0.06)

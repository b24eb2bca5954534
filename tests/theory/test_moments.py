"""Moments of q.k against exact enumeration and built layers."""

import itertools
import math

import pytest
import torch

from attnlab.config import Init, Scale
from attnlab.model.attention import scale_factor
from attnlab.model.initialise import query_key_std
from attnlab.theory.moments import (
    Entries,
    additive_logit_sd,
    dot_product,
    draw_dot_products,
    fourth_moment,
    logit_sd,
    qk_norm_logit_sd,
    standard_errors,
    within_row_sd,
)


@pytest.mark.parametrize("d_k", [1, 2, 4, 6])
def test_rademacher_moments_equal_the_enumeration_of_all_signs(d_k):
    sums = [sum(signs) for signs in itertools.product((-1, 1), repeat=d_k)]  # q_l k_l is again a fair sign
    variance = sum(s**2 for s in sums) / len(sums)
    kurtosis = sum(s**4 for s in sums) / len(sums) / variance**2 - 3
    moments = dot_product(d_k, Entries.rademacher)
    assert moments.variance == pytest.approx(variance)
    assert moments.excess_kurtosis == pytest.approx(kurtosis)


def test_fourth_moments_equal_the_integrals():
    x = torch.linspace(-12, 12, 200_001, dtype=torch.float64)
    gaussian = torch.trapezoid(x**4 * torch.exp(-(x**2) / 2) / math.sqrt(2 * math.pi), x)
    assert fourth_moment(Entries.gaussian) == pytest.approx(gaussian.item(), abs=1e-9)
    root = math.sqrt(3)
    assert fourth_moment(Entries.uniform) == pytest.approx(2 * root**5 / 5 / (2 * root))


@pytest.mark.parametrize("entries", Entries)
@pytest.mark.parametrize("d_k", [2, 4, 16])
def test_monte_carlo_lies_within_four_standard_errors(entries, d_k):
    draws = 100_000
    s = draw_dot_products(d_k, draws, entries, torch.Generator().manual_seed(11)).double()
    moments = dot_product(d_k, entries)
    of_mean, of_variance, of_sd = standard_errors(moments, draws)
    assert abs(s.mean()) < 4 * of_mean
    assert abs(s.var() - moments.variance) < 4 * of_variance
    assert abs(s.std() / math.sqrt(d_k) - 1) < 4 * of_sd
    kurtosis = ((s - s.mean()) / s.std()).pow(4).mean().item() - 3
    assert kurtosis == pytest.approx(moments.excess_kurtosis, rel=0.2, abs=0.05)


def test_standard_errors_equal_the_spread_over_repetitions():
    generator = torch.Generator().manual_seed(5)
    s = torch.stack([draw_dot_products(4, 2000, Entries.gaussian, generator) for _ in range(800)]).double()
    of_mean, of_variance, of_sd = standard_errors(dot_product(4, Entries.gaussian), 2000)
    assert s.mean(1).std().item() == pytest.approx(of_mean, rel=0.1)
    assert s.var(1).std().item() == pytest.approx(of_variance, rel=0.1)
    assert (s.std(1) / 2).std().item() == pytest.approx(of_sd, rel=0.1)


def measured_logit_sd(init: Init, scale: Scale, d_model: int, d_k: int) -> float:
    """sd of one head's logits over fresh weights, as `initialise` draws them, on inputs that leave a LayerNorm."""
    generator = torch.Generator().manual_seed(3)
    std, logits = query_key_std(init, d_model), []
    for _ in range(40):
        x = torch.nn.functional.layer_norm(torch.randn(30, d_model, generator=generator), (d_model,))
        if init is Init.normal_002:
            w_q, w_k = (torch.randn(d_k, d_model, generator=generator) * std for _ in range(2))
        else:
            bound = math.sqrt(3) * std
            w_q, w_k = (
                torch.empty(d_k, d_model).uniform_(-bound, bound, generator=generator) for _ in range(2)
            )
        if scale is Scale.folded:
            w_q = w_q / math.sqrt(d_k)
        logits.append(scale_factor(scale, d_k, d_model) * (x @ w_q.T) @ (x @ w_k.T).T)
    return torch.stack(logits).std().item()


@pytest.mark.parametrize("init", Init)
@pytest.mark.parametrize("scale", Scale)
def test_logit_sd_of_drawn_layers(init, scale):
    assert measured_logit_sd(init, scale, 128, 32) == pytest.approx(logit_sd(init, scale, 128, 32), rel=0.04)


def test_no_scale_moves_the_sd_by_exactly_sqrt_d_k_and_folded_not_at_all():
    for init in Init:
        right = logit_sd(init, Scale.sqrt_d_k, 128, 32)
        assert logit_sd(init, Scale.none, 128, 32) / right == pytest.approx(math.sqrt(32))
        assert logit_sd(init, Scale.folded, 128, 32) == pytest.approx(right)


def test_within_row_sd_of_correlated_tokens():
    generator, rho = torch.Generator().manual_seed(1), 0.6
    common = torch.randn(4000, 1, 64, generator=generator)
    x = math.sqrt(rho) * common + math.sqrt(1 - rho) * torch.randn(4000, 12, 64, generator=generator)
    q = torch.randn(4000, 64, 1, generator=generator)
    rows = (x @ q).squeeze(-1)  # sd 8
    assert rows.var(dim=1).mean().sqrt().item() == pytest.approx(within_row_sd(8.0, rho), rel=0.03)


@pytest.mark.parametrize("d_k", [8, 128])
def test_additive_logit_sd_does_not_depend_on_d_k(d_k):
    generator, variance = torch.Generator().manual_seed(2), 0.5
    q, k = (math.sqrt(variance) * torch.randn(40_000, d_k, generator=generator) for _ in range(2))
    v = torch.randn(40_000, d_k, generator=generator) / math.sqrt(d_k)
    measured = (v * torch.tanh(q + k)).sum(-1).std().item()
    assert measured == pytest.approx(additive_logit_sd(Init.xavier_packed, 128), rel=0.02)


def test_qk_norm_logit_sd():
    q, k = torch.nn.functional.normalize(
        torch.randn(2, 50_000, 16, generator=torch.Generator().manual_seed(4)), dim=-1
    )
    measured = math.log2(24**2 - 24) * (q * k).sum(-1).std().item()
    assert measured == pytest.approx(qk_norm_logit_sd(24, 16), rel=0.02)

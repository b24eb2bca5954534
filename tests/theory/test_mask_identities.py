"""Every mask identity against our own attention with that mistake, forward and backward, float64."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from attnlab.config import Mask
from attnlab.model.attention import attend
from attnlab.model.masks import causal
from attnlab.theory import jacobian, softmax_laws
from attnlab.theory import mask_identities as identities

B, H, N, DK, DV = 2, 3, 7, 4, 5


@pytest.fixture
def qkv() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [2 * torch.randn(B, H, N, size, generator=generator, dtype=torch.float64) for size in (DK, DK, DV)]


def test_after_softmax_output_is_the_kept_mass_times_the_causal_output(qkv):
    keep = causal(N)
    wrong, right = attend(*qkv, keep, mask=Mask.after_softmax), attend(*qkv, keep)
    lse_causal = identities.log_normaliser(right.scores, keep)
    mass = identities.kept_mass(lse_causal, identities.log_normaliser(right.scores))
    torch.testing.assert_close(mass, wrong.weights.sum(-1), rtol=0, atol=1e-14)
    torch.testing.assert_close(
        identities.after_softmax_output(mass, right.out), wrong.out, rtol=0, atol=1e-13
    )
    torch.testing.assert_close(mass[..., -1], torch.ones(B, H, dtype=torch.float64), rtol=0, atol=1e-14)
    assert bool((mass[..., :-1] < 1).all())
    entropy = identities.after_softmax_entropy(jacobian.entropy(right.weights), mass)
    torch.testing.assert_close(entropy, jacobian.entropy(wrong.weights), rtol=0, atol=1e-13)


def test_after_softmax_sends_gradient_to_the_future(qkv):
    q, k, v = (x.requires_grad_() for x in qkv)
    keep = causal(N)
    wrong = attend(q, k, v, keep, mask=Mask.after_softmax)
    upstream = torch.randn(B, H, N, DV, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    (exact,) = torch.autograd.grad((wrong.out * upstream).sum(), wrong.scores)
    p = torch.softmax(wrong.scores, -1).detach()
    ours = identities.after_softmax_logit_gradient(p, (upstream @ v.transpose(-2, -1)).detach(), keep)
    torch.testing.assert_close(ours, exact, rtol=0, atol=1e-13)
    assert bool((ours[..., ~keep].abs() > 1e-9).any())


@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0])
def test_mean_and_variance_of_the_kept_mass(sigma):
    n = 9
    s = sigma * torch.randn(100_000, n, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    p = torch.softmax(s, -1)
    mass = p.cumsum(-1)
    torch.testing.assert_close(mass.mean(0), identities.expected_kept_mass(n), rtol=0, atol=0.004)
    participation = p.square().sum(-1).mean().item()
    torch.testing.assert_close(
        mass.var(0), identities.kept_mass_variance(n, participation), rtol=0.02, atol=1e-5
    )


def test_zero_fill_output_from_causal_log_normaliser_and_suffix_sums(qkv):
    keep = causal(N)
    wrong, right = attend(*qkv, keep, mask_fill=0.0), attend(*qkv, keep)
    lse_causal = identities.log_normaliser(right.scores, keep)
    hidden = identities.hidden_keys(keep)
    lse = identities.log_normaliser(wrong.scores.masked_fill(~keep, 0.0))
    torch.testing.assert_close(
        identities.zero_fill_log_normaliser(lse_causal, hidden), lse, rtol=0, atol=1e-13
    )
    future = (wrong.weights * ~keep).sum(-1)
    torch.testing.assert_close(identities.future_share(lse_causal, hidden), future, rtol=0, atol=1e-14)
    ours = identities.zero_fill_output(lse_causal, right.out, qkv[2])
    torch.testing.assert_close(ours, wrong.out, rtol=0, atol=1e-13)


def test_zero_fill_value_gradient_has_prefix_sums(qkv):
    q, k, v = qkv[0], qkv[1], qkv[2].requires_grad_()
    keep = causal(N)
    wrong = attend(q, k, v, keep, mask_fill=0.0)
    upstream = torch.randn(B, H, N, DV, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    (exact,) = torch.autograd.grad((wrong.out * upstream).sum(), v)
    lse = identities.log_normaliser(wrong.scores.masked_fill(~keep, 0.0))
    ours = identities.zero_fill_value_gradient(wrong.weights, lse, upstream)
    torch.testing.assert_close(ours, exact, rtol=0, atol=1e-13)


@pytest.mark.parametrize("sigma", [0.0, 0.01, 0.04, 0.05, 1.0, 2.0])
def test_mean_future_share_is_the_integral(sigma):
    """Gauss-Legendre quadrature on (0, 1); the series takes over below sigma = 0.045."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    exact = sum(
        w / 2 * identities.expected_future_share((u + 1) / 2, sigma)
        for u, w in zip(nodes, weights, strict=True)
    )
    assert identities.mean_future_share(sigma) == pytest.approx(exact, abs=1e-9)


def test_mean_future_share_at_unit_logits():
    """0.417 in the notes; Monte Carlo at n = 400 for the law of large numbers behind it."""
    assert identities.mean_future_share(1.0) == pytest.approx(0.417, abs=5e-4)
    n, generator = 400, torch.Generator().manual_seed(4)
    scores, keep = torch.randn(8, n, n, generator=generator, dtype=torch.float64), causal(n)
    share = identities.future_share(identities.log_normaliser(scores, keep), identities.hidden_keys(keep))
    assert share.mean().item() == pytest.approx(identities.mean_future_share(1.0), abs=0.01)


def test_entropy_from_a_fused_kernel(qkv):
    """The kernel called with V := K, and the log-normaliser: the weights are never formed."""
    q, k, _ = qkv
    keep, scale = causal(N), 1 / math.sqrt(DK)
    averaged = F.scaled_dot_product_attention(q, k, k, is_causal=True)
    right = attend(q, k, k, keep)
    entropy = identities.fused_entropy(identities.log_normaliser(right.scores, keep), q, averaged, scale)
    torch.testing.assert_close(entropy, jacobian.entropy(right.weights), rtol=0, atol=1e-13)


def test_fused_entropy_loses_its_digits_in_bf16_at_large_logits(qkv):
    q, k, _ = (8 * x for x in qkv)
    right = attend(q, k, k)
    exact = jacobian.entropy(right.weights)
    arguments = (identities.log_normaliser(right.scores), q, right.out)
    coarse = identities.fused_entropy(*(x.bfloat16().double() for x in arguments), 1 / math.sqrt(DK))
    assert right.scores.abs().max() > 50
    assert (coarse - exact).abs().max() > 0.1


def test_causal_entropy_limit_is_the_mean_entropy_of_uniform_causal_weights():
    right = attend(
        torch.zeros(14, 2).double(), torch.zeros(14, 2).double(), torch.zeros(14, 2).double(), causal(14)
    )
    assert identities.causal_entropy_limit(14) == pytest.approx(jacobian.entropy(right.weights).mean().item())
    assert identities.causal_entropy_limit(14) == pytest.approx(1.80, abs=0.01)


def test_R07_the_three_masks_on_equal_scores():
    """All scores 0, 6 keys, 3 of them allowed."""
    zeros, keep = torch.zeros(6, 2, dtype=torch.float64), causal(6)
    rows = {
        name: attend(zeros, zeros, zeros, keep, mask=mask, mask_fill=fill).weights[2]
        for name, mask, fill in (
            ("right", Mask.before_softmax, -math.inf),
            ("after", Mask.after_softmax, -math.inf),
            ("zero", Mask.before_softmax, 0.0),
        )
    }
    assert rows["right"].tolist() == pytest.approx([1 / 3] * 3 + [0] * 3, abs=1e-12)
    assert rows["after"].sum().item() == pytest.approx(0.5)
    assert rows["after"][3:].sum().item() == 0
    assert rows["zero"].sum().item() == pytest.approx(1)
    assert rows["zero"][3:].sum().item() == pytest.approx(0.5)
    entropies = [jacobian.entropy(rows[name]).item() for name in ("right", "zero")]
    assert entropies == pytest.approx([math.log(3), math.log(6)])


def test_participation_feeds_the_variance_of_the_kept_mass_at_initialisation():
    sample = softmax_laws.sample(14, 1.0, 50_000, torch.Generator().manual_seed(6))
    variance = identities.kept_mass_variance(14, 1 - sample.trace.mean().item())
    assert variance[-1].item() == 0
    assert variance.argmax().item() == 6

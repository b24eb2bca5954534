"""What a misplaced mask computes, exactly: identities that need only a correct (fused) attention beside it.

Shapes: B batch, H heads, Q = K = n positions, dv size of a value. For a row i of scores s, keep marks j <= i;
lse = ln sum_j e^{s_j} over all keys (full) or over the kept ones (causal).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def log_normaliser(scores: Tensor, keep: Tensor | None = None) -> Tensor:
    """Log-normaliser lse [...,Q] of scores [...,Q,K] over the kept keys (all without `keep`)."""
    kept = scores if keep is None else scores.masked_fill(~keep, -math.inf)
    return torch.logsumexp(kept, dim=-1)


def kept_mass(lse_causal: Tensor, lse_full: Tensor) -> Tensor:
    """Kept mass m = e^{lse_causal - lse_full} in (0, 1], [...,Q]: the row sum of weights that were masked after the softmax.

    The masked weights are e^{s_j}/Z_full for j <= i, and they sum to Z_causal/Z_full.
    """
    return (lse_causal - lse_full).exp()


def after_softmax_output(mass: Tensor, out_causal: Tensor) -> Tensor:
    """out_after = m out_causal, [...,Q,dv]: e^{s_j}/Z_full = m e^{s_j}/Z_causal for each kept j.

    All that the future adds to one layer is a scalar for each head and position; it is 1 at the last position.
    """
    return mass.unsqueeze(-1) * out_causal


def after_softmax_logit_gradient(p: Tensor, dp: Tensor, keep: Tensor) -> Tensor:
    """dL/ds [...,Q,K] for weights w = p 1[keep], from the full softmax p and dp = dO.v_j, [...,Q,K].

    dw_j/ds_l = 1[j kept] p_j (1[j = l] - p_l) gives ds_l = p_l (1[l kept] dp_l - D), D = sum_kept p_j dp_j = dO.out.
    A future key l gets -p_l D, not 0: the gradient reaches the future through the normaliser.
    """
    kept = dp * keep
    return p * (kept - (p * kept).sum(-1, keepdim=True))


def expected_kept_mass(n: int) -> Tensor:
    """E m_i = i/n, [n], for exchangeable logits: the n weights have equal means and sum to 1."""
    return torch.arange(1, n + 1, dtype=torch.float64) / n


def kept_mass_variance(n: int, participation: float) -> Tensor:
    """Var m_i, [n], for exchangeable logits with participation P = E sum p^2.

    m is the sum of i of n exchangeable weights with fixed total 1: Var w = P/n - 1/n^2 each and covariance
    -Var w/(n - 1), so Var m_i = i (n - i)/(n - 1) Var w. 0 at i = n.
    """
    i = torch.arange(1, n + 1, dtype=torch.float64)
    return i * (n - i) / (n - 1) * (participation / n - 1 / n**2)


def hidden_keys(keep: Tensor) -> Tensor:
    """Number of future keys in each row, [...,Q]: n - i for the causal mask."""
    return (~keep).sum(-1)


def zero_fill_log_normaliser(lse_causal: Tensor, hidden: Tensor) -> Tensor:
    """Zero-fill's ln Z = ln(e^{lse_causal} + n - i), [...,Q]: each of the n - i forbidden keys adds e^0 = 1."""
    return torch.logaddexp(lse_causal, hidden.to(lse_causal.dtype).log())


def future_share(lse_causal: Tensor, hidden: Tensor) -> Tensor:
    """Share f = (n - i)/Z, [...,Q]: the weight that zero-fill gives to the future."""
    return (hidden.to(lse_causal.dtype).log() - zero_fill_log_normaliser(lse_causal, hidden)).exp()


def zero_fill_output(lse_causal: Tensor, out_causal: Tensor, v: Tensor) -> Tensor:
    """Zero-fill's out = (e^{lse_causal} out_causal + sum_{j > i} v_j)/Z, [...,n,dv], for the causal mask; v [...,n,dv].

    The kept keys contribute their causal average with weight Z_causal; the forbidden ones v_j with weight 1 each,
    a suffix sum of the values. With 1 - f = Z_causal/Z the exponentials never overflow.
    """
    n = v.shape[-2]
    hidden = torch.arange(n - 1, -1, -1, device=v.device)
    share = future_share(lse_causal, hidden).unsqueeze(-1)
    suffix = v.flip(-2).cumsum(-2).flip(-2) - v  # sum over j > i
    return (1 - share) * out_causal + share * suffix / hidden.clamp_min(1).unsqueeze(-1).to(v.dtype)


def zero_fill_value_gradient(p: Tensor, lse_zero: Tensor, d_out: Tensor) -> Tensor:
    """dL/dv [...,n,dv] = sum_{i >= j} p_ij dO_i + sum_{i < j} dO_i/Z_i, for the causal mask.

    p [...,n,n] are zero-fill's weights, lse_zero = ln Z [...,n], d_out [...,n,dv]. A value is read by later rows
    with its weight and by every earlier row with 1/Z_i: a prefix sum of dO/Z.
    """
    per_row = d_out * (-lse_zero).exp().unsqueeze(-1)
    earlier = per_row.cumsum(-2) - per_row
    return p.tril().transpose(-2, -1) @ d_out + earlier


def expected_future_share(u: float, sigma: float) -> float:
    """Share f at relative position u = i/n for N(0, sigma^2) logits, n large: (1 - u)/((1 - u) + u e^{sigma^2/2}).

    Z_causal/n -> u E e^s = u e^{sigma^2/2}, by the law of large numbers.
    """
    return (1 - u) / ((1 - u) + u * math.exp(sigma**2 / 2))


def mean_future_share(sigma: float) -> float:
    """The same averaged over positions: (1 + a) ln(1 + a)/a^2 - 1/a with a = e^{sigma^2/2} - 1; 1/2 at sigma = 0.

    Integral over u in (0, 1) of (1 - u)/(1 + a u). The three-term series below a = 1e-3 avoids the cancellation.
    """
    a = math.expm1(sigma**2 / 2)
    if a < 1e-3:
        return 1 / 2 - a / 6 + a**2 / 12
    return (1 + a) * math.log1p(a) / a**2 - 1 / a


def fused_entropy(lse: Tensor, q: Tensor, averaged_keys: Tensor, scale: float) -> Tensor:
    """H = lse - c q.(P K) in nats, [...,Q]: entropy from a kernel that never shows its weights.

    ln p_j = s_j - lse, so H = lse - sum_j p_j s_j, and sum_j p_j c q.k_j = c q.(P K). `averaged_keys` [...,Q,dk] is
    the kernel called with V := K. Both terms are of the size of |s|: keep it in fp32 or better.
    """
    return lse - scale * (q * averaged_keys).sum(-1)


def after_softmax_entropy(entropy_causal: Tensor, mass: Tensor) -> Tensor:
    """-sum w ln w = m (H_causal - ln m) for the sub-stochastic rows w = m p_causal, [...,Q], in nats."""
    return mass * (entropy_causal - mass.log())


def causal_entropy_limit(n: int) -> float:
    """Mean over rows of the largest possible causal entropy: (1/n) sum_i ln i = ln(n!)/n, in nats."""
    return math.lgamma(n + 1) / n

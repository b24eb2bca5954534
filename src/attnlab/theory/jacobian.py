"""The softmax's Jacobian J = diag(p) - p p^T (dp_i / ds_j), and what is read off one row of weights.

p [..., K] is a row of weights that sums to 1. Everything is exact; entropies are in nats.
"""

from __future__ import annotations

import torch
from torch import Tensor


def jacobian(p: Tensor) -> Tensor:
    """The Jacobian [..., K, K] of weights p [..., K]. From p_i = e^{s_i}/Z: dp_i/ds_j = p_i (1[i = j] - p_j). Every row sums to 0."""
    return torch.diag_embed(p) - p.unsqueeze(-1) * p.unsqueeze(-2)


def largest_entry(p: Tensor) -> Tensor:
    """Largest |entry| of J, [...]: max_i p_i (1 - p_i), at most 1/4.

    Off the diagonal |J_ij| = p_i p_j <= p_i (1 - p_i), since p_j <= 1 - p_i. x (1 - x) peaks at 1/4 for x = 1/2.
    Not monotone in saturation: (n-1)/n^2 for uniform weights, larger for two equal keys, 0 for one key.
    """
    return (p * (1 - p)).amax(-1)


def trace(p: Tensor) -> Tensor:
    """The trace, tr J = 1 - sum p^2, [...]: falls from 1 - 1/n (uniform) to 0 (one key), monotone in the participation."""
    return 1 - p.square().sum(-1)


def frobenius_squared(p: Tensor) -> Tensor:
    """||J||_F^2 = sum p^2 - 2 sum p^3 + (sum p^2)^2, [...].

    sum_i (p_i - p_i^2)^2 + sum_{i != j} p_i^2 p_j^2 = [S2 - 2 S3 + S4] + [S2^2 - S4]. Uniform weights: (n-1)/n^2.
    """
    s2 = p.square().sum(-1)
    return s2 - 2 * p.pow(3).sum(-1) + s2.square()


def spectral_bounds(p: Tensor) -> tuple[Tensor, Tensor]:
    """Lower and upper bound [...] of J's largest eigenvalue: max p(1-p) and min(1/2, 2 max p(1-p)).

    A diagonal entry bounds the largest eigenvalue of a symmetric matrix from below; Gershgorin from above, with
    the off-diagonal row sum p_i (1 - p_i) equal to the diagonal entry.
    """
    low = largest_entry(p)
    return low, (2 * low).clamp_max(0.5)


def entropy(p: Tensor) -> Tensor:
    """H = -sum p ln p in nats, [...]; 0 ln 0 = 0. From 0 (one key) to ln n (uniform)."""
    return torch.special.entr(p).sum(-1)


def effective_keys(p: Tensor) -> Tensor:
    """Participation 1 / sum p^2, [...]: n for uniform weights over n keys, 1 for one key."""
    return 1 / p.square().sum(-1)

"""What the missing scale does to the gradient that reaches a query: larger in the mean square, smaller in the median.

Footnote 4 says that unscaled logits push the softmax "into regions where it has extremely small gradients". That is
a statement about the Jacobian J. The gradient of the loss to q also carries the factor c of s = c q.k, which the
missing scale makes sqrt(d_k) times larger. Which of the two wins depends on the statistic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from torch import Tensor

from attnlab.theory import saturated_laws


def logit_gradient(p: Tensor, dp: Tensor) -> Tensor:
    """dL/ds [..., K] from weights p [..., K] and dp = dL/dp [..., K]: p_j (dp_j - D), D = sum_j p_j dp_j.

    It is J dp with J = diag(p) - p p^T. In attention dp_j = dO.v_j, so D = dO.o with o the output.
    """
    return p * (dp - (p * dp).sum(-1, keepdim=True))


def query_gradient(p: Tensor, dp: Tensor, keys: Tensor, scale: float) -> Tensor:
    """dL/dq [..., dk] = c sum_j ds_j k_j, keys [..., K, dk]: s_j = c q.k_j, so ds_j/dq = c k_j."""
    return scale * (logit_gradient(p, dp).unsqueeze(-2) @ keys).squeeze(-2)


def key_gradient(p: Tensor, dp: Tensor, queries: Tensor, scale: float) -> Tensor:
    """dL/dk [..., K, dk] = c sum_i ds_ij q_i, for p, dp [..., Q, K] and queries [..., Q, dk]."""
    return scale * logit_gradient(p, dp).transpose(-2, -1) @ queries


def rms_ratio(d_k: int, frobenius_unscaled: float, frobenius_scaled: float) -> float:
    """The rms of |dL/dq| without the scale over the same with it: sqrt(d_k E||J||^2(sqrt d_k) / E||J||^2(1)).

    For dp_j independent of variance tau^2, E|ds|^2 = tau^2 E||J||_F^2; for keys of unit variance independent of ds,
    E|dq|^2 = c^2 d_k tau^2 E||J||_F^2, with c = 1 or 1/sqrt(d_k). The arguments are E||J||_F^2 at logit sd sqrt(d_k)
    and at 1. Independence of keys and ds is an approximation (both know the logits), good to a few per cent.
    """
    return math.sqrt(d_k * frobenius_unscaled / frobenius_scaled)


def saturated_rms_ratio(d_k: int, n: int, frobenius_scaled: float) -> float:
    """The same for large d_k, with E||J||_F^2 = g/(3 sqrt(d_k)) (`saturated_laws`): grows like d_k^(1/4)."""
    return rms_ratio(d_k, saturated_laws.frobenius_squared(n, math.sqrt(d_k)), frobenius_scaled)


class Statistic(StrEnum):
    """How many gradient norms become one number."""

    rms = "rms"
    mean = "mean"
    median = "median"


def reduce(norms: np.ndarray, statistic: Statistic) -> float:
    """One number from norms [draws]."""
    match statistic:
        case Statistic.rms:
            return math.sqrt(np.square(norms).mean())
        case Statistic.mean:
            return float(norms.mean())
        case Statistic.median:
            return float(np.median(norms))


@dataclass(frozen=True)
class QueryGradients:
    """|dL/dq| of each draw, [draws], with and without the scale, from the same draws."""

    scaled: np.ndarray
    unscaled: np.ndarray

    def ratio(self, statistic: Statistic) -> float:
        """Unscaled over scaled."""
        return reduce(self.unscaled, statistic) / reduce(self.scaled, statistic)


def sample_query_gradients(d_k: int, n: int, draws: int, rng: np.random.Generator) -> QueryGradients:
    """|dL/dq| for q, k, v ~ N(0, I) and an upstream gradient dO of length 1, n keys.

    Exact in law, without drawing d_k-dimensional vectors: turn the axes so that q = |q| e_1, |q|^2 ~ chi^2(d_k).
    Then s_j = c |q| k_j1 depends on the first coordinate of the keys alone, and given ds the other d_k - 1
    coordinates of sum_j ds_j k_j are N(0, |ds|^2): |dq|^2 = c^2 [(sum_j ds_j k_j1)^2 + |ds|^2 chi^2(d_k - 1)].
    dp_j = dO.v_j ~ N(0, 1).
    """
    length = np.sqrt(rng.chisquare(d_k, draws))
    along = rng.standard_normal((draws, n))
    dp = rng.standard_normal((draws, n))
    across = rng.chisquare(d_k - 1, draws)

    def norms(c: float) -> np.ndarray:
        s = c * length[:, None] * along
        p = np.exp(s - s.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        ds = p * (dp - (p * dp).sum(-1, keepdims=True))
        return c * np.sqrt((ds * along).sum(-1) ** 2 + np.square(ds).sum(-1) * across)

    return QueryGradients(norms(1 / math.sqrt(d_k)), norms(1.0))

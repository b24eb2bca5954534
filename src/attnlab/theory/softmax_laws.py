"""The softmax of n independent N(0, sigma^2) logits: small-sigma and large-n laws, and the Monte Carlo beside them.

sigma is the sd of the logits within a row (nats): 1 with the scale at initialisation, sqrt(d_k) without it.
Large-n laws are those of the random energy model (Derrida 1981), of which this softmax is an instance: logits are
energies, sigma / sqrt(ln n) the inverse temperature. See also Giorlandino and Goldt, "Two failure modes", 2026.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from attnlab.theory import jacobian


def freezing_point(n: int) -> float:
    """sigma_c = sqrt(2 ln n): above it the weights condense on a few keys however many keys there are.

    The largest of n draws sits near sigma sigma_c, and the sum of e^s is dominated by s near sigma^2 (the saddle
    of e^{s - s^2 / 2 sigma^2}). Such logits exist only while sigma^2 < sigma sigma_c.
    """
    return math.sqrt(2 * math.log(n))


def small_sigma_entropy(n: int, sigma: float) -> float:
    """E H = ln n - (sigma^2 / 2)(1 - 1/n) + O(sigma^4), any n.

    For weights near uniform, H = ln n - Var_row(s)/2 to second order (the KL divergence of an exponential tilt), and
    the row variance with divisor n has mean sigma^2 (1 - 1/n).
    """
    return math.log(n) - sigma**2 / 2 * (1 - 1 / n)


def large_n_log_normaliser(n: int, sigma: float) -> float:
    """The log-normaliser ln sum_j e^{s_j} to leading order: ln n + sigma^2/2 below the freezing point, sigma sigma_c above it.

    Below, the law of large numbers holds for e^s, with E e^s = e^{sigma^2/2}; above, the largest term wins. The two
    meet with equal slope at sigma_c. Errors are O(ln ln n) above.
    """
    critical = freezing_point(n)
    return math.log(n) + sigma**2 / 2 if sigma < critical else sigma * critical


def large_n_entropy(n: int, sigma: float) -> float:
    """Entropy in nats to leading order in ln n: ln n - sigma^2/2 below freezing, 0 (that is, O(1)) above it.

    H = lse - E_p[s], and E_p[s] = sigma d lse / d sigma = sigma^2 below.
    """
    return max(0.0, math.log(n) - sigma**2 / 2)


def dilute_participation(n: int, sigma: float) -> float:
    """E sum p^2 = e^{sigma^2}/n for sigma well below sigma_c / 2, n large.

    n E e^{2s} / (n E e^s)^2 = n e^{2 sigma^2} / (n^2 e^{sigma^2}), by the law of large numbers for both sums; the
    numerator's saddle 2 sigma^2 must lie below sigma sigma_c.
    """
    return math.exp(sigma**2) / n


def frozen_trace(n: int, sigma: float) -> float:
    """E tr J = x with x = sigma_c / sigma, above freezing.

    There the ranked weights follow the Poisson-Dirichlet law PD(x, 0), with E sum p^2 = 1 - x (Derrida 1981).
    """
    return freezing_point(n) / sigma


def frozen_frobenius_squared(n: int, sigma: float) -> float:
    """E ||J||_F^2 = x (1 - x) / 3 with x = sigma_c / sigma, above freezing.

    ||J||_F^2 = S2 - 2 S3 + S2^2, S_r = sum p^r. The partition probabilities of PD(x, 0) (Pitman 1995) give
    E S2 = 1 - x, E S3 = (1 - x)(2 - x)/2, and E S2^2 = P(all four equal) + P(two pairs) =
    (1 - x)(2 - x)(3 - x)/6 + x (1 - x)^2/6. The sum is (1 - x)/6 [6 - 6(2 - x) + (2 - x)(3 - x) + x(1 - x)] =
    (1 - x) 2x/6. It vanishes like sigma_c / (3 sigma): the Jacobian of a saturated softmax is small, but only as 1/sigma.
    """
    x = freezing_point(n) / sigma
    return x * (1 - x) / 3


@dataclass(frozen=True)
class SoftmaxSample:
    """Statistics of each of `draws` random rows, [draws] each."""

    entropy: Tensor  # nats
    largest_weight: Tensor
    largest_entry: Tensor  # of the Jacobian
    trace: Tensor
    frobenius_squared: Tensor
    log_normaliser: Tensor  # nats


def sample(n: int, sigma: float, draws: int, generator: torch.Generator) -> SoftmaxSample:
    """Monte Carlo over `draws` rows of n logits N(0, sigma^2), in float64."""
    s = sigma * torch.randn(draws, n, generator=generator, dtype=torch.float64)
    p = torch.softmax(s, dim=-1)
    return SoftmaxSample(
        jacobian.entropy(p), p.amax(-1), jacobian.largest_entry(p), jacobian.trace(p),
        jacobian.frobenius_squared(p), torch.logsumexp(s, dim=-1),
    )  # fmt: skip

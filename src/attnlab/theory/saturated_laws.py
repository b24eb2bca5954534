"""A softmax over n logits N(0, sigma^2) with sigma large: exact leading terms in 1/sigma for every n, ten keys included.

Only the gap between the two largest logits matters. In units of sigma that gap has a density g at 0, so the two
tie to within u nats with probability about g u / sigma; a row is unsaturated only in such ties. With weights
e^{-u} to 1, each statistic f has E f = (g / sigma) integral_0^inf f(u) du + O(1/sigma^2). The frozen laws of
`softmax_laws` have the same form with sigma_c in place of g, to which g tends as n grows; at n = 10, g = 1.54
while sigma_c = 2.15.
"""

from __future__ import annotations

import math

import torch


def top_gap_density(n: int, points: int = 20_001) -> float:
    """Density g at 0 of the gap between the top two of n N(0,1) draws.

    g = n (n - 1) integral phi(x)^2 Phi(x)^(n - 2) dx: n (n - 1) ways to name the top two, both near x, and all others below. 1/sqrt(pi) for n = 2.
    """
    x = torch.linspace(-10, 10, points, dtype=torch.float64)
    density = torch.exp(-x.square() / 2) / math.sqrt(2 * math.pi)
    return n * (n - 1) * torch.trapezoid(density.square() * torch.special.ndtr(x) ** (n - 2), x).item()


def trace(n: int, sigma: float) -> float:
    """E tr J -> g/sigma: tr J = 2 p (1 - p) with p = 1/(1 + e^-u), and the integral of p (1 - p) is 1/2."""
    return top_gap_density(n) / sigma


def largest_entry(n: int, sigma: float) -> float:
    """E max_i p_i (1 - p_i) -> g/(2 sigma): the integral of p (1 - p)."""
    return top_gap_density(n) / (2 * sigma)


def frobenius_squared(n: int, sigma: float) -> float:
    """E ||J||_F^2 -> g/(3 sigma): 4 p^2 (1 - p)^2, whose integral is 4 (1/2 - 2/4 + 1/3 - 1/4) = 1/3."""
    return top_gap_density(n) / (3 * sigma)


def entropy(n: int, sigma: float) -> float:
    """E H -> pi^2 g/(6 sigma) nats: the integral of ln(1 + e^-u) and that of u (1 - p) are pi^2/12 each."""
    return math.pi**2 * top_gap_density(n) / (6 * sigma)

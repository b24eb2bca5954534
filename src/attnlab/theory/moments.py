"""How large a dot product is: footnote 4 for any entries, and the logit of a freshly built layer by initialiser.

Units: a logit is a natural-log odds, so its standard deviation (sd) is in nats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import torch
from torch import Tensor

from attnlab.config import Init, Scale
from attnlab.model.attention import dot_scores, scale_factor
from attnlab.model.initialise import query_key_std


class Entries(StrEnum):
    """Distributions of the entries of q and k, all with mean 0 and variance 1."""

    gaussian = "gaussian"
    rademacher = "rademacher"
    uniform = "uniform"


def fourth_moment(entries: Entries) -> float:
    """E x^4 of one entry: 3 for N(0,1), 1 for +-1, and 9/5 for the uniform law on +-sqrt(3)."""
    match entries:
        case Entries.gaussian:
            return 3.0
        case Entries.rademacher:
            return 1.0
        case Entries.uniform:
            return 9 / 5


@dataclass(frozen=True)
class Moments:
    """Mean, variance and excess kurtosis (0 for a Gaussian) of q.k."""

    mean: float
    variance: float
    excess_kurtosis: float


def dot_product(d_k: int, entries: Entries) -> Moments:
    """Moments of s = sum_l q_l k_l, with 2 d_k independent entries of mean 0 and variance 1.

    The d_k terms t = q_l k_l are independent, E t = 0 and E t^2 = 1, so E s = 0 and Var s = d_k (footnote 4 of
    Vaswani et al. 2017). Cumulants of independent terms add: kappa_4(s) = d_k (E t^4 - 3) with E t^4 = (E x^4)^2,
    hence excess kurtosis kappa_4 / Var^2 = ((E x^4)^2 - 3) / d_k: 6/d_k, -2/d_k and 0.24/d_k.
    """
    return Moments(0.0, float(d_k), (fourth_moment(entries) ** 2 - 3) / d_k)


def standard_errors(moments: Moments, draws: int) -> tuple[float, float, float]:
    """Standard errors of the sample mean, the sample variance and the sample sd / sqrt(Var) over `draws` draws.

    Var(mean) = Var/N; Var(sample variance) = (mu_4 - Var^2)/N = Var^2 (2 + excess kurtosis)/N to first order in
    1/N; the scaled sd is sqrt(sample variance / Var), whose derivative at 1 is 1/2.
    """
    of_mean = math.sqrt(moments.variance / draws)
    relative = math.sqrt((2 + moments.excess_kurtosis) / draws)
    return of_mean, moments.variance * relative, relative / 2


def draw_entries(entries: Entries, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Independent entries of mean 0 and variance 1."""
    match entries:
        case Entries.gaussian:
            return torch.randn(shape, generator=generator)
        case Entries.rademacher:
            return torch.randint(0, 2, shape, generator=generator).float().mul_(2).sub_(1)
        case Entries.uniform:
            return torch.rand(shape, generator=generator).sub_(0.5).mul_(math.sqrt(12))


def draw_dot_products(d_k: int, draws: int, entries: Entries, generator: torch.Generator) -> Tensor:
    """[draws] products q.k of fresh vectors, through the attention's own scores; q is drawn before k."""
    q = draw_entries(entries, (draws, 1, d_k), generator)
    k = draw_entries(entries, (draws, 1, d_k), generator)
    return dot_scores(q, k).flatten()


def gain(init: Init, d_model: int) -> float:
    """gamma^2 = Var(q_l) = d_model Var(w), the variance of one entry of q = W_Q x.

    x leaves a LayerNorm, so |x|^2 = d_model exactly, and q_l = sum_m w_lm x_m has variance Var(w) |x|^2 over the
    draw of W_Q. 1 (xavier), 1/2 (xavier_packed), 1/3 (torch_linear), 4e-4 d_model (normal_002); k is alike.
    """
    return d_model * query_key_std(init, d_model) ** 2


def logit_sd(init: Init, scale: Scale, d_model: int, d_k: int) -> float:
    """Standard deviation of one logit c q.k of a layer at step 0, over the draw of W_Q and W_K.

    q and k have d_k independent entries each of variance gamma^2: sd(q.k) = gamma^2 sqrt(d_k). `scale` multiplies by
    c. `folded` has c = 1 but its W_Q, hence q, is smaller by sqrt(d_k): the sd of the scaled layer.
    """
    folded = 1 / math.sqrt(d_k) if scale is Scale.folded else 1.0
    return gain(init, d_model) * math.sqrt(d_k) * scale_factor(scale, d_k, d_model) * folded


def within_row_sd(sd: float, rho: float) -> float:
    """Spread of a row of logits, which is all that a softmax sees: sd sqrt(1 - rho).

    rho is the mean cosine between the tokens' vectors. Given q, logits q.(W_K x_j) of two tokens are Gaussian with
    variance sd^2 and correlation rho; their common part shifts the whole row, which a softmax ignores, and leaves
    the variance (1 - rho) sd^2 within the row.
    """
    return sd * math.sqrt(1 - rho)


def additive_logit_sd(init: Init, d_model: int, points: int = 64) -> float:
    """The sd of v.tanh(q + k) at step 0, the same for every d_k.

    q_l + k_l ~ N(0, 2 gamma^2); tanh is odd, so its mean is 0; v has d_k entries of variance 1/d_k:
    Var = sum_l E v_l^2 E tanh^2 = E tanh^2(sqrt(2) gamma Z). Gauss-Hermite quadrature with `points` nodes.
    """
    import numpy as np

    nodes, weights = np.polynomial.hermite_e.hermegauss(points)
    tanh = np.tanh(math.sqrt(2 * gain(init, d_model)) * nodes)
    return math.sqrt(float((weights * tanh**2).sum() / weights.sum()))


def qk_norm_logit_sd(length: int, d_k: int) -> float:
    """The sd of g cos(q, k) at step 0, g = log2(L^2 - L) (Henry et al. 2020), L = `length` tokens.

    The cosine of two independent directions in d_k dimensions has variance 1/d_k: sum_l u_l^2 = 1 over d_k
    exchangeable squares, and v_l is independent of u.
    """
    return math.log2(length**2 - length) / math.sqrt(d_k)

"""Entropy and Jacobian of random logits: closed forms against Monte Carlo, and both against exact integrals."""

import math

import numpy as np
import pytest
import torch

from attnlab.theory import softmax_laws as laws


def draw(n: int, sigma: float, draws: int = 20_000) -> laws.SoftmaxSample:
    return laws.sample(n, sigma, draws, torch.Generator().manual_seed(n))


@pytest.mark.parametrize("sigma", [0.5, 2.0, 8.0])
def test_monte_carlo_equals_the_integral_for_two_keys(sigma):
    """n = 2: the weights are p and 1 - p, p = 1/(1 + e^-z), z ~ N(0, 2 sigma^2): one integral for each statistic."""
    z = torch.linspace(-12, 12, 40_001, dtype=torch.float64)
    density = torch.exp(-z.square() / 2) / math.sqrt(2 * math.pi)
    p = torch.sigmoid(math.sqrt(2) * sigma * z)
    sample = draw(2, sigma, 100_000)
    for measured, exact in (
        (sample.entropy, torch.special.entr(p) + torch.special.entr(1 - p)), (sample.largest_entry, p * (1 - p)),
        (sample.trace, 2 * p * (1 - p)), (sample.frobenius_squared, 4 * (p * (1 - p)) ** 2),
    ):  # fmt: skip
        assert measured.mean().item() == pytest.approx(torch.trapezoid(density * exact, z).item(), rel=0.02)


@pytest.mark.parametrize("n", [10, 14, 64])
def test_small_sigma_entropy(n):
    for sigma, tolerance in ((0.1, 2e-4), (0.3, 5e-3)):
        assert draw(n, sigma).entropy.mean().item() == pytest.approx(
            laws.small_sigma_entropy(n, sigma), abs=tolerance
        )


def test_the_error_of_the_small_sigma_form_is_of_fourth_order():
    gaps = [draw(14, s, 200_000).entropy.mean().item() - laws.small_sigma_entropy(14, s) for s in (0.4, 0.8)]
    assert 8 < gaps[1] / gaps[0] < 24  # 2^4 = 16


@pytest.mark.parametrize(
    ("n", "sigma"), [(10, 2.1460), (14, 2.2974), (30, 2.6081), (64, 2.8841), (512, 3.5322)]
)
def test_freezing_points(n, sigma):
    assert laws.freezing_point(n) == pytest.approx(sigma, abs=1e-4)


def test_large_n_forms_below_freezing():
    sample = draw(4096, 1.0, 1000)
    assert sample.log_normaliser.mean().item() == pytest.approx(
        laws.large_n_log_normaliser(4096, 1.0), abs=0.01
    )
    assert sample.entropy.mean().item() == pytest.approx(laws.large_n_entropy(4096, 1.0), abs=0.01)
    assert (1 - sample.trace).mean().item() == pytest.approx(laws.dilute_participation(4096, 1.0), rel=0.02)


def test_the_two_phases_meet_with_equal_slope():
    n, step = 512, 1e-6
    critical = laws.freezing_point(n)
    below = laws.large_n_log_normaliser(n, critical - step)
    above = laws.large_n_log_normaliser(n, critical + step)
    assert above == pytest.approx(below, abs=1e-4)
    slope = (below - laws.large_n_log_normaliser(n, critical - 2 * step)) / step
    assert slope == pytest.approx(critical, rel=1e-3)


@pytest.mark.parametrize("sigma", [8.0, 16.0, 22.6])
def test_frozen_forms_at_512_keys(sigma):
    """The Frobenius law is good to 10% at n = 512; the trace law, whose n-dependence is slower, to 20%."""
    sample = draw(512, sigma, 5000)
    frobenius = sample.frobenius_squared.mean().item()
    assert frobenius == pytest.approx(laws.frozen_frobenius_squared(512, sigma), rel=0.1)
    assert sample.trace.mean().item() == pytest.approx(laws.frozen_trace(512, sigma), rel=0.2)


def test_frozen_forms_equal_a_direct_draw_of_the_poisson_dirichlet_law():
    """PD(x, 0): the points of a Poisson process with intensity x t^{-x-1}, normalised: t_k = (E_1 + .. + E_k)^{-1/x}."""
    n, sigma = 512, 12.0
    x = laws.freezing_point(n) / sigma
    rng = np.random.default_rng(0)
    points = np.cumsum(rng.exponential(size=(20_000, 400)), axis=1) ** (-1 / x)
    p = torch.from_numpy(points / points.sum(1, keepdims=True))
    s2 = p.square().sum(1)
    frobenius = (s2 - 2 * p.pow(3).sum(1) + s2.square()).mean().item()
    assert (1 - s2).mean().item() == pytest.approx(laws.frozen_trace(n, sigma), rel=0.02)
    assert frobenius == pytest.approx(laws.frozen_frobenius_squared(n, sigma), rel=0.02)


def test_the_table_of_the_notes_for_ten_keys_at_d_k_64_and_512():
    """Probabilities behind the page's single draws: E H, E max entry, P(largest entry < 1e-3)."""
    for sigma, entropy, entry, vanished in ((8.0, 0.343, 0.087, 0.192), (22.6, 0.116, 0.033, 0.602)):
        sample = draw(10, sigma, 50_000)
        assert sample.entropy.mean().item() == pytest.approx(entropy, abs=0.006)
        assert sample.largest_entry.mean().item() == pytest.approx(entry, abs=0.002)
        assert (sample.largest_entry < 1e-3).double().mean().item() == pytest.approx(vanished, abs=0.01)


def test_R15_entropy_of_the_sample_never_exceeds_log_n():
    assert draw(14, 1.0).entropy.max().item() <= math.log(14)

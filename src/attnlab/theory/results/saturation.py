"""What large logits do: entropy and Jacobian of the softmax, and the gradient that reaches a query."""

from __future__ import annotations

import math

import numpy as np
import torch

from attnlab.theory import gradient_ratios, saturated_laws, softmax_laws
from attnlab.theory.gradient_ratios import Statistic
from attnlab.theory.results.table import Table, Value

NUMBERS_OF_KEYS = (10, 14, 30, 64, 512)  # 10 as on the page, 14 a mean sentence, 512 a long text
LOGIT_SDS = (
    0.25,
    0.5,
    0.71,
    1.0,
    1.41,
    2.0,
    2.83,
    4.0,
    5.66,
    8.0,
    11.31,
    16.0,
    22.63,
    32.0,
    45.25,
)  # sqrt(2) apart
ROWS = 20_000  # of n logits a point; a fifth of them for more than 100 keys, whose statistics spread less
SMALL_SIGMA = 0.75  # up to here the small-sigma form is shown
GRADIENT_DRAWS = 100_000
KEY_SIZES = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
VANISHED = 1e-3  # an entry of the Jacobian below this counts as none


def softmax_table() -> Table:
    """Entropy and Jacobian of n logits N(0, sigma^2) (claim C03), the laws beside them where they hold."""
    rows: list[dict[str, Value]] = []
    for n in NUMBERS_OF_KEYS:
        critical = softmax_laws.freezing_point(n)
        for sigma in LOGIT_SDS:
            generator = torch.Generator().manual_seed(n)
            sample = softmax_laws.sample(n, sigma, ROWS // 5 if n > 100 else ROWS, generator)
            low, median, high = (sample.entropy.quantile(q).item() for q in (0.1, 0.5, 0.9))
            saturated = sigma > 2 * critical
            rows.append({
                "n": n, "sigma": sigma, "freezing_point": critical,
                "entropy": sample.entropy.mean().item(), "entropy_p10": low, "entropy_p50": median, "entropy_p90": high,
                "entropy_small_sigma":
                    softmax_laws.small_sigma_entropy(n, sigma) if sigma <= SMALL_SIGMA else None,
                "entropy_saturated": saturated_laws.entropy(n, sigma) if saturated else None,
                "largest_weight": sample.largest_weight.mean().item(),
                "trace": sample.trace.mean().item(),
                "trace_saturated": saturated_laws.trace(n, sigma) if saturated else None,
                "frobenius_squared": sample.frobenius_squared.mean().item(),
                "frobenius_squared_p10": sample.frobenius_squared.quantile(0.1).item(),
                "frobenius_squared_p50": sample.frobenius_squared.quantile(0.5).item(),
                "frobenius_squared_p90": sample.frobenius_squared.quantile(0.9).item(),
                "frobenius_squared_saturated": saturated_laws.frobenius_squared(n, sigma) if saturated else None,
                "largest_entry": sample.largest_entry.mean().item(),
                "largest_entry_p50": sample.largest_entry.median().item(),
                "share_vanished": (sample.largest_entry < VANISHED).double().mean().item(),
            })  # fmt: skip
    note = (
        "Softmax over n independent logits N(0, sigma^2), Monte Carlo; sigma is 1 with the scale and sqrt(d_k) without "
        f"it. Entropies in nats. trace, frobenius_squared, largest_entry: of the Jacobian; share_vanished: rows whose "
        f"largest entry is below {VANISHED}. Columns with _small_sigma and _saturated are the laws, where they hold."
    )
    return Table("softmax", note, rows)


def gradient_table() -> Table:
    """|dL/dq| without the scale over the same with it (claim C04): quantiles against d_k."""
    rows: list[dict[str, Value]] = []
    for n in (14, 30):
        generator = torch.Generator().manual_seed(0)
        frobenius = softmax_laws.sample(n, 1.0, GRADIENT_DRAWS, generator).frobenius_squared.mean().item()
        for d_k in KEY_SIZES:
            sample = gradient_ratios.sample_query_gradients(
                d_k, n, GRADIENT_DRAWS, np.random.default_rng(d_k)
            )
            law = gradient_ratios.saturated_rms_ratio(d_k, n, frobenius)
            scaled, unscaled = sample.scaled, sample.unscaled
            rows.append({
                "n": n, "d_k": d_k, **{f"{name.value}_ratio": sample.ratio(name) for name in Statistic},
                "rms_ratio_saturated": law if math.sqrt(d_k) > 2 * softmax_laws.freezing_point(n) else None,
                "p10_ratio": float(np.percentile(unscaled, 10) / np.percentile(scaled, 10)),
                "p90_ratio": float(np.percentile(unscaled, 90) / np.percentile(scaled, 90)),
                "p99_ratio": float(np.percentile(unscaled, 99) / np.percentile(scaled, 99)),
                "share_smaller_than_scaled_p1": float((unscaled < np.percentile(scaled, 1)).mean()),
            })  # fmt: skip
    note = (
        "Length of the gradient of the loss to a query, unscaled over scaled attention: q, k, v ~ N(0, I), n keys, an "
        f"upstream gradient of length 1, {GRADIENT_DRAWS:,} draws. The root mean square grows, the median vanishes: "
        "without the scale the gradient is not small but heavy-tailed."
    )
    return Table("gradients", note, rows)

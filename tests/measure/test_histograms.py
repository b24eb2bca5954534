"""Gradient histograms against NumPy's, over groups that are put together here by hand."""

from __future__ import annotations

import math

import numpy as np
import torch
from small_model import random_batch, small_model
from test_gradients import backward
from torch import Tensor

from attnlab.measure import probe
from attnlab.measure.histograms import BINS, HIGHEST, LOWEST, _counts, gradient_histograms

EDGES = np.linspace(LOWEST, HIGHEST, BINS + 1)


def numpy_counts(*gradients: Tensor) -> list[int]:
    entries = np.concatenate([gradient.abs().flatten().numpy() for gradient in gradients])
    with np.errstate(divide="ignore"):
        exponents = np.clip(np.log10(entries), LOWEST, HIGHEST)
    return np.histogram(exponents, EDGES)[0].tolist()


def test_groups_hold_what_they_say() -> None:
    model = backward(small_model())
    found = gradient_histograms(model)
    blocks = {
        "encoder": [layer.self_attention for layer in model.encoder],
        "decoder": [layer.self_attention for layer in model.decoder],
        "cross": [layer.cross_attention for layer in model.decoder],
    }
    wanted = {
        f"train/grad_log10/{part}/{site}": numpy_counts(*(getattr(b, part).weight.grad for b in attention))
        for site, attention in blocks.items()
        for part in ("w_q", "w_k", "w_v", "w_o")
    }
    for stack in ("encoder", "decoder"):
        inner = [layer.feed_forward for layer in getattr(model, stack)]
        matrices = [matrix.weight.grad for one in inner for matrix in (one.w_1, one.w_2)]
        wanted[f"train/grad_log10/feed_forward/{stack}"] = numpy_counts(*matrices)
    wanted["train/grad_log10/embedding"] = numpy_counts(model.projection.grad)
    flat = [p.grad for name, p in model.named_parameters() if p.ndim == 1]
    wanted["train/grad_log10/rest"] = numpy_counts(*flat)
    assert found == wanted
    # every entry of every gradient once, the tied matrix too
    assert sum(map(sum, found.values())) == sum(p.numel() for p in model.parameters())


def test_each_decade_zeros_and_what_lies_beyond() -> None:
    gradient = torch.tensor([0.0, 1e-30, -1.5e-3, 1.5e-3, 20.0, math.inf, 1e30, math.nan])
    counts = dict(enumerate(_counts(gradient)))
    assert {i: n for i, n in counts.items() if n} == {
        0: 2,  # 0 and 1e-30
        4 * 9: 2,  # 10^-3 to 10^-2.75
        4 * 13 + 1: 1,  # 10^1.25 to 10^1.5
        BINS - 1: 3,  # inf, 1e30 and NaN
    }


def test_counting_changes_no_gradient_and_needs_one() -> None:
    assert gradient_histograms(small_model()) == {}
    model = backward(small_model())
    before = [parameter.grad.clone() for parameter in model.parameters()]
    gradient_histograms(model)
    assert all(torch.equal(p.grad, kept) for p, kept in zip(model.parameters(), before, strict=True))


def test_a_probe_leaves_the_gradients_that_are_counted() -> None:
    model = backward(small_model())
    before = gradient_histograms(model)
    probe(model, random_batch([(5, 7)]), leakage=True)
    assert gradient_histograms(model) == before

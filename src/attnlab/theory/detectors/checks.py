"""Seven checks of an attention, six of which need nothing to compare with. Each returns evidence and an alarm.

n tokens, D width, H heads. A check that cannot run on a subject says why, and raises no alarm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

import torch
from torch import Tensor

from attnlab.model.masks import causal
from attnlab.theory.detectors.probing import (
    SENTENCES,
    STRESS,
    TOKENS,
    dependence,
    difference,
    draw,
    keep_for,
    kernel_weights,
    leaking,
    masked_weights,
    ready_heads,
)
from attnlab.theory.detectors.subject import Subject, library_attention


class Check(StrEnum):
    """The checks, in the order in which they run."""

    causality = "causality"
    prefix = "prefix consistency"
    permutation = "permutation"
    padding = "padding"
    row_sums = "row sums"
    scale = "scale"
    library = "library"


@dataclass(frozen=True)
class Finding:
    """What one check found. `alarm` is None where it does not apply; `says` is a phrase with the numbers."""

    check: Check
    alarm: bool | None
    says: str
    evidence: dict[str, float] = field(default_factory=dict)


def run_check(check: Check, subject: Subject, seed: int = 0) -> Finding:
    """Run one check on a subject with random inputs from `seed`."""
    generator = torch.Generator().manual_seed(seed)
    match check:
        case Check.causality:
            return causality(subject, generator)
        case Check.prefix:
            return prefix(subject, generator)
        case Check.permutation:
            return permutation(subject, generator)
        case Check.padding:
            return padding(subject, generator)
        case Check.row_sums:
            return row_sums(subject, generator)
        case Check.scale:
            return scale(subject, generator)
        case Check.library:
            return library(subject, generator)


def causality(subject: Subject, generator: torch.Generator) -> Finding:
    """No output may move with a later token, on ordinary inputs and on inputs so large that finite masks give way."""
    if not subject.causal:
        return Finding(Check.causality, None, "takes no mask of the future")
    keep = keep_for(subject, TOKENS)

    def leaks(x: Tensor) -> Tensor:
        moves = dependence(lambda x: subject.forward(x, keep, None).out, x)
        return leaking(moves, subject.tolerance)

    ordinary = leaks(draw(subject, 1, TOKENS, generator))
    stressed = leaks(STRESS * draw(subject, SENTENCES, TOKENS, generator))
    cells, total = int(ordinary.sum()), TOKENS * (TOKENS - 1) // 2
    evidence = {"cells": float(cells), "of": float(total), "cells at large scores": float(stressed.sum())}
    if cells:
        return Finding(
            Check.causality, True, f"{cells} of {total} future cells move an earlier output", evidence
        )
    if bool(stressed.any()):
        says = f"{int(stressed.sum())} of {total} future cells, only once scores are very large"
        return Finding(Check.causality, True, says, evidence)
    return Finding(
        Check.causality,
        False,
        f"0 of {total} future cells, also with inputs {STRESS:.0f} times larger",
        evidence,
    )


@torch.no_grad()
def prefix(subject: Subject, generator: torch.Generator) -> Finding:
    """The outputs of a sentence's beginning must not change when it goes on."""
    if not subject.causal:
        return Finding(Check.prefix, None, "takes no mask of the future")
    x = draw(subject, 1, TOKENS, generator)
    whole = subject.forward(x, keep_for(subject, TOKENS), None).out
    changes = [
        difference(subject.forward(x[:, :n], keep_for(subject, n), None).out, whole[:, :n])
        for n in range(1, TOKENS)
    ]
    alarm = max(changes) > subject.tolerance
    counted = sum(change > subject.tolerance for change in changes)
    says = f"{counted} of {len(changes)} beginnings change, by up to {max(changes):.1e}"
    return Finding(Check.prefix, alarm, says, {"largest change": max(changes), "changed": float(counted)})


@torch.no_grad()
def permutation(subject: Subject, generator: torch.Generator) -> Finding:
    """Without a mask and positions, permuting the tokens must permute the outputs and change nothing else."""
    if subject.hides_future or subject.positions:
        says = "knows where tokens stand" if subject.positions else "always hides the future"
        return Finding(Check.permutation, None, says)
    x = draw(subject, 1, TOKENS, generator)
    order = torch.randperm(TOKENS, generator=generator)
    change = difference(
        subject.forward(x[:, order], None, None).out, subject.forward(x, None, None).out[:, order]
    )
    says = f"outputs of permuted tokens differ by {change:.1e}"
    return Finding(Check.permutation, change > subject.tolerance, says, {"change": change})


@torch.no_grad()
def padding(subject: Subject, generator: torch.Generator) -> Finding:
    """A sentence alone, and in a longer batch whose padding holds large numbers, must have the same outputs."""
    if not subject.takes_real:
        return Finding(Check.padding, None, "takes no padding mask")
    length = TOKENS - 3
    x = draw(subject, 2, TOKENS, generator)
    real = torch.ones(2, TOKENS, dtype=torch.bool)
    real[1, length:] = False
    x[1, length:] *= 1e4  # so that a finite fill shows, and an added constant gives way
    keeps = [(None, None)] + ([(causal(TOKENS), causal(length))] if subject.takes_keep else [])
    changes = []
    for keep, short_keep in keeps:
        alone = subject.forward(x[1:, :length], short_keep, None).out
        changes.append(difference(subject.forward(x, keep, real).out[1:, :length], alone))
    change = max(changes)
    says = f"outputs of real tokens change by {change:.1e} with padding"
    return Finding(Check.padding, change > subject.tolerance, says, {"change": change})


@torch.no_grad()
def row_sums(subject: Subject, generator: torch.Generator) -> Finding:
    """The weights of each query must sum to 1, with the causal mask and without."""
    found = [masked_weights(subject, keep, generator) for keep in (True, False)]
    shown = [weights for weights in found if weights is not None]
    if not shown:
        return Finding(Check.row_sums, None, "shows no weights")
    sums = torch.cat([weights.sum(-1).flatten() for weights in shown])
    low, high = sums.min().item(), sums.max().item()  # NaN if any is
    alarm = not (abs(low - 1) <= 10 * subject.tolerance and abs(high - 1) <= 10 * subject.tolerance)
    return Finding(
        Check.row_sums, alarm, f"rows sum to {low:.4g} ... {high:.4g}", {"smallest": low, "largest": high}
    )


@torch.no_grad()
def scale(subject: Subject, generator: torch.Generator) -> Finding:
    """The log-odds of two keys must be q.(k_1 - k_2)/sqrt(d_k): the slope against q.k is read off the weights.

    Within a row, ln w_j = c q.k_j + const, so c is the least-squares slope of ln w on q.k, both less their row means;
    the share R^2 of the variance of ln w that it explains is 1 for any scaled dot product and below 1 for other scores.
    """
    if subject.kernel is None or subject.d_k is None:
        return Finding(Check.scale, None, "q and k cannot be given to it")
    q, k, _ = ready_heads(subject, generator)
    q = q / math.sqrt(subject.d_k)  # scores of size 1 even without the scale: no weight underflows
    weights, products = kernel_weights(subject, q, k, None), q @ k.transpose(-2, -1)
    if subject.hides_future:  # the last query alone sees every key
        weights, products = weights[:, :, -1:], products[:, :, -1:]
    y, x = (z - z.mean(-1, keepdim=True) for z in (weights.log(), products))
    slope = ((x * y).sum() / (x * x).sum()).item()
    fit = 1 - ((y - slope * x).square().sum() / y.square().sum()).item()
    right = 1 / math.sqrt(subject.d_k)
    alarm = not (abs(slope / right - 1) <= 100 * subject.tolerance and fit >= 1 - 100 * subject.tolerance)
    evidence = {
        "slope": slope,
        "1/sqrt(d_k)": right,
        "R^2": fit,
        "d_k": float(subject.d_k),
        "width": float(subject.width),
    }
    return Finding(
        Check.scale, alarm, f"log-odds are {slope:.4g} q.k (right: {right:.4g}), R^2 {fit:.4f}", evidence
    )


@torch.no_grad()
def library(subject: Subject, generator: torch.Generator) -> Finding:
    """The output must equal PyTorch's scaled_dot_product_attention on the same weights, under each mask it takes."""
    if subject.reference is None:
        return Finding(Check.library, None, "its projections are not known")
    x = draw(subject, 2, TOKENS, generator)
    real = torch.ones(2, TOKENS, dtype=torch.bool)
    real[1, TOKENS - 3 :] = False
    cases: list[tuple[str, Tensor | None, Tensor | None]] = (
        [] if subject.hides_future else [("no mask", None, None)]
    )
    if subject.causal:
        cases.append(("causal", causal(TOKENS), None))
    if subject.takes_real:
        cases.append(("padding", None, real))
    evidence = {}
    for name, keep, padded in cases:
        ours = subject.forward(x, keep if subject.takes_keep else None, padded).out
        exact = subject.reference(x, keep, padded)
        if padded is not None:  # what stands at padding does not matter
            ours, exact = ours[real], exact[real]
        evidence[name] = difference(ours, exact)
    if subject.kernel is not None and subject.d_k is not None:
        evidence["kernel"] = _kernel_difference(subject, generator)
    worst = max(evidence, key=lambda name: evidence[name])
    says = f"differs by up to {evidence[worst]:.1e} ({worst})"
    return Finding(Check.library, evidence[worst] > subject.tolerance, says, evidence)


def _kernel_difference(subject: Subject, generator: torch.Generator) -> float:
    assert subject.kernel is not None
    q, k, keys = ready_heads(subject, generator)
    v = torch.randn(q.shape, generator=generator, dtype=torch.float64).to(subject.dtype)
    allowed = causal(keys) if subject.hides_future else None
    return difference(subject.kernel(q, k, v, None).out, library_attention(q, k, v, allowed))

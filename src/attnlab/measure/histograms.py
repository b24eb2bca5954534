"""How the entries of the gradients are spread over the orders of magnitude, by group of parameters.

A norm hides what footnote 4 of the paper is about: a gradient that is tiny almost everywhere and large in a few
places. Hence counts of log10|g|, a quarter of a decade each.
"""

from __future__ import annotations

from torch import Tensor, bincount, cat

from attnlab.measure.gradients import PROJECTIONS
from attnlab.model.attention import MultiHeadAttention
from attnlab.model.transformer import Transformer

LOWEST, HIGHEST = -12, 4  # decades
BINS = 4 * (HIGHEST - LOWEST)


def gradient_histograms(model: Transformer) -> dict[str, list[int]]:
    """Counts [BINS] of log10|g| over the entries of the parameters' .grad as they stand; empty before a backward pass.

    `train/grad_log10/<w_q|w_k|w_v|w_o>/<site>`: the matrix (no bias) in all layers of the site;
    `.../feed_forward/<encoder|decoder>`: both matrices of all layers; `.../embedding`: the embeddings and the
    projection to the vocabulary, a shared one counted once; `.../rest`: biases, norms and all else. Bin i is
    [LOWEST + i/4, LOWEST + (i+1)/4); the first and the last also hold what lies beyond: zeros in the first, infinities
    and NaN in the last, so that every entry is in the picture.
    """
    attention = {
        f"{name}.{part}.weight": f"{part}/{block.site}"
        for name, block in model.named_modules() if isinstance(block, MultiHeadAttention)
        for part in PROJECTIONS
    }  # fmt: skip
    groups: dict[str, list[Tensor]] = {}
    for name, parameter in model.named_parameters():  # a shared parameter has one name here
        if parameter.grad is not None:
            groups.setdefault(attention.get(name) or _group(name), []).append(parameter.grad.flatten())
    return {f"train/grad_log10/{group}": _counts(cat(parts)) for group, parts in groups.items()}


def _group(name: str) -> str:
    match name.split("."):
        case [stack, _, "feed_forward", _, "weight"]:
            return f"feed_forward/{stack}"
        case _ if name.endswith(("embedding.weight", "projection")):
            return "embedding"
        case _:
            return "rest"


def _counts(gradient: Tensor) -> list[int]:
    exponents = gradient.abs().float().log10().nan_to_num(nan=HIGHEST).clamp(LOWEST, HIGHEST)
    bins = ((exponents - LOWEST) * (BINS / (HIGHEST - LOWEST))).long().clamp(max=BINS - 1)
    counts: list[int] = bincount(bins, minlength=BINS).tolist()
    return counts

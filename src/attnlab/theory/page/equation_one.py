"""Results S01-S12: Equation 1 on three tokens, and against the library."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F

from attnlab.model.attention import attend
from attnlab.theory.page.rules import Ours


def results() -> Iterator[tuple[str, Ours]]:
    """(id, our value) of every result of the section."""
    q = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    k = torch.tensor([[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    v = torch.tensor([[10.0, 0.0], [0.0, 10.0], [5.0, 5.0]])
    raw = attend(q, k, v, scale=1.0).scores
    out, weights, scores = attend(q, k, v)

    yield "S01", [math.sqrt(q.shape[-1]), raw[0], scores[0]]
    yield "S02", weights[0]
    yield "S03", out[0]
    yield "S04", [scores, weights[0], out[0]]
    yield "S05", [scores[2], weights[2]]
    yield "S06", raw
    yield "S07", scores
    yield "S08", [weights, weights.sum(-1)]
    yield "S09", out
    library = F.scaled_dot_product_attention(q[None], k[None], v[None])[0]
    yield "S10", [out, library]
    yield "S11", (out - library).abs().max()

    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 8, 10, 64, generator=generator) for _ in range(3))
    out = attend(q, k, v).out
    yield "S12.shape", [out.shape]
    yield "S12.difference", (out - F.scaled_dot_product_attention(q, k, v)).abs().max()

"""Results S13-S23: how large dot products are, and what that does to one softmax."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import torch

from attnlab.config import Scale
from attnlab.model.attention import attend, scale_factor
from attnlab.theory import jacobian
from attnlab.theory.moments import Entries, draw_dot_products
from attnlab.theory.page.rules import Ours


def results() -> Iterator[tuple[str, Ours]]:
    """(id, our value) of every result of the section; one random stream, in the page's order."""
    signs = [sum(signs) for signs in itertools.product((-1, 1), repeat=4)]
    yield "S13", math.sqrt(sum(s**2 for s in signs) / len(signs))

    generator = torch.Generator().manual_seed(0)
    shapes = []
    for id, d_k in (("S15", 4), ("S16", 16), ("S17", 64), ("S18", 512)):
        s = draw_dot_products(d_k, 100_000, Entries.gaussian, generator)
        shapes.append(s.shape)
        scaled = s * scale_factor(Scale.sqrt_d_k, d_k, d_k)
        yield id, [s.mean(), s.var(), s.std(), scaled.std()]
    yield "S14", shapes

    pair = attend(
        torch.zeros(1, 2), torch.zeros(2, 2), torch.eye(2)
    ).weights  # two equal keys reach the maximum
    yield "S19", jacobian.largest_entry(pair)

    for d_k, ids in ((64, ("S20", "S21")), (512, ("S22", "S23"))):
        q, keys = torch.randn(d_k, generator=generator), torch.randn(10, d_k, generator=generator)
        for id, scale in zip(ids, (Scale.none, Scale.sqrt_d_k), strict=True):
            one = attend(q[None], keys, keys, scale=scale_factor(scale, d_k, d_k))
            entry = jacobian.largest_entry(one.weights)
            yield id, [one.scores.min(), one.scores.max(), one.weights.max(), entry]

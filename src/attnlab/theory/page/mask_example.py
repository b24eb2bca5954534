"""Results S48-S53 and S61-S64: the mask on five tokens, right and misplaced."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F

from attnlab.config import Mask
from attnlab.model.attention import attend, attention_weights
from attnlab.model.masks import causal
from attnlab.theory.page.rules import Ours


def results() -> Iterator[tuple[str, Ours]]:
    """(id, our value) of every result of the section."""
    by_hand = attention_weights(torch.tensor([2.0, 1.0, 5.0]), causal(3)[1], None, Mask.before_softmax)
    yield "S48", [math.exp(2), math.exp(2) + math.exp(1), by_hand]

    n = 5
    keep = causal(n)
    rule = torch.tensor([[j <= i for j in range(n)] for i in range(n)])
    yield "S49", [keep.int(), torch.equal(keep, rule) and torch.equal(keep, torch.ones(n, n).tril().bool())]

    generator = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(n, 4, generator=generator) for _ in range(3))
    right = attend(q, k, v, keep)
    yield "S50", right.scores
    # The scores that the softmax saw, read back from its weights: ln w up to a constant a row, fixed on the diagonal.
    log_weights = right.weights.log()
    yield "S51", log_weights + (right.scores - log_weights).diagonal()[:, None]
    yield "S52", right.weights
    library = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
    yield "S53.is_causal", (right.out - library).abs().max()
    library = F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=keep)[0]
    yield "S53.attn_mask", (right.out - library).abs().max()

    after = attend(q, k, v, keep, mask=Mask.after_softmax)
    yield "S61", after.weights
    yield "S62", after.weights.sum(-1)
    zero_fill = attend(q, k, v, keep, mask_fill=0.0)
    yield "S63", (zero_fill.weights * ~keep).sum(-1)
    equal = torch.isclose(after.out, right.out, rtol=0, atol=1e-6).all(-1)
    yield "S64.rows", (equal.nonzero() + 1).flatten()

"""Which input tokens an output depends on, in one decoder block of each kind of mistake."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from attnlab.config import AttentionConfig, Axes, Mask
from attnlab.model.attention import MultiHeadAttention
from attnlab.model.masks import causal
from attnlab.theory import axes_maps
from attnlab.theory.detectors.matrix import decoder_block
from attnlab.theory.detectors.probing import dependence, moving
from attnlab.theory.factors import CORRECT
from attnlab.theory.results.table import Table, Value

TOKENS = 14  # a mean sentence
WRONG = Axes.no_transpose

ARMS: dict[str, AttentionConfig] = {
    "correct": CORRECT,
    "mask_after_softmax": replace(CORRECT, mask=Mask.after_softmax),
    "zero_fill": replace(CORRECT, mask_fill=0.0),
    "wrong_split": replace(CORRECT, split=WRONG, merge=WRONG),
    "wrong_merge": replace(CORRECT, merge=WRONG),
    "wrong_split_only": replace(CORRECT, split=WRONG),
}


def leak_maps() -> dict[str, Tensor]:
    """[n,n] bool for each arm: does output i move with input j? Measured by autograd on a random decoder block."""
    x = torch.randn(1, TOKENS, 24, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    maps = {}
    for arm, factors in ARMS.items():
        maps[arm] = moving(dependence(partial(attend_causally, decoder_block(factors).double()), x), 1e-9)
    return maps


def attend_causally(block: MultiHeadAttention, x: Tensor) -> Tensor:
    """Self-attention [1,n,D] with the causal mask."""
    return block(x, x, causal(x.shape[1]))


def leak_table(maps: dict[str, Tensor]) -> Table:
    """How much of past and future each arm sees."""
    rows: list[dict[str, Value]] = [
        {
            "arm": arm,
            "past_cells": axes_maps.past_cells(seen),
            "of_past": TOKENS * (TOKENS + 1) // 2,
            "future_cells": axes_maps.future_cells(seen),
            "of_future": TOKENS * (TOKENS - 1) // 2,
            "next_token_visible": axes_maps.next_tokens_visible(seen),
            "of_next": TOKENS - 1,
        }
        for arm, seen in maps.items()
    ]
    note = f"Input tokens on which the outputs of one decoder block depend; {TOKENS} tokens, 4 heads."
    return Table("leaks", note, rows)

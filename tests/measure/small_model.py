"""A small model, batches of random sentences and records made by hand, for the tests of what is measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from attnlab.config import AttentionConfig, Axes, Init, Mask, ModelConfig, Norm, Scale, Score, Site, WhereConfig
from attnlab.data.batching import Batch, Encoded, collate
from attnlab.model.initialise import build
from attnlab.model.recorder import AttentionRecord
from attnlab.model.transformer import Transformer

VOCABULARY = 50

CORRECT = AttentionConfig(
    name="correct", scale=Scale.sqrt_d_k, mask=Mask.before_softmax, mask_fill=float("-inf"),
    split=Axes.heads_first, merge=Axes.heads_first, score=Score.dot, qk_norm=False, qk_norm_length=24,
    init=Init.xavier, where=WhereConfig(sites=[*Site], layers=None, heads=None),
)  # fmt: skip

CAUSAL_ARMS = {
    "correct": CORRECT,
    "no_scale": replace(CORRECT, scale=Scale.none),
    "additive": replace(CORRECT, score=Score.additive, scale=Scale.none),
    "qk_norm": replace(CORRECT, qk_norm=True, scale=Scale.none),
    "renormalized": replace(CORRECT, mask=Mask.after_softmax_renormalized),
    "wrong_split": replace(CORRECT, split=Axes.no_transpose, merge=Axes.no_transpose),
}
LEAKING_ARMS = {
    "after_softmax": replace(CORRECT, mask=Mask.after_softmax),
    "zero_fill": replace(CORRECT, mask_fill=0.0),
    "no_mask": replace(CORRECT, mask=Mask.none),
    "inverted": replace(CORRECT, mask=Mask.inverted),
    "wrong_merge": replace(CORRECT, merge=Axes.no_transpose),
}
ARMS = CAUSAL_ARMS | LEAKING_ARMS


def small_model(
    arm: AttentionConfig = CORRECT, *, d_model: int = 32, heads: int = 4, d_k: int | None = None, layers: int = 2,
    dropout: float = 0.3, seed: int = 1,
) -> Transformer:  # fmt: skip
    """Untrained, in training mode, dropout on."""
    config = ModelConfig(
        name="small", d_model=d_model, heads=heads, d_k=d_k, d_v=None, d_ff=64, encoder_layers=layers,
        decoder_layers=layers, dropout=dropout, attention_dropout=dropout, norm=Norm.pre, tie_embeddings=True,
    )  # fmt: skip
    return build(config, arm, VOCABULARY, seed).train()


def random_batch(lengths: list[tuple[int, int]], seed: int = 0) -> Batch:
    """One pair of random sentences for each (source, target) length, without the special tokens."""
    random = np.random.default_rng(seed)
    pairs = [[random.integers(4, VOCABULARY, n) for n in pair] for pair in lengths]
    return collate(Encoded([src for src, _ in pairs], [tgt for _, tgt in pairs]), range(len(pairs)))


def padded(batch: Batch, width: int) -> Batch:
    """The same sentences with padding up to `width` positions on every side."""
    src, tgt_in, tgt_out = (
        torch.nn.functional.pad(ids, (0, width - ids.shape[1])) for ids in (batch.src, batch.tgt_in, batch.tgt_out)
    )
    return replace(batch, src=src, tgt_in=tgt_in, tgt_out=tgt_out)


def record_of(
    scores: Tensor, weights: Tensor, keep: Tensor | None = None, real: Tensor | None = None,
    site: Site = Site.decoder, layer: int = 1,
) -> AttentionRecord:  # fmt: skip
    """scores and weights [B,H,Q,K]; q, k and v are empty, for what looks at the softmax alone."""
    none = scores.new_zeros(*scores.shape[:3], 0)
    return AttentionRecord(site, layer, none, none, none, scores, weights, keep, real)

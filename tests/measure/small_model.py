"""A small model, batches of random sentences and records made by hand, for the tests of what is measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from arms import CORRECT, NO_LEAK, WRONG_AXES, WRONG_MASK
from torch import Tensor
from torch.nn.functional import pad

from attnlab.config import AttentionConfig, ModelConfig, Norm, Site
from attnlab.data.batching import Batch, Encoded, collate
from attnlab.model.initialise import build
from attnlab.model.recorder import AttentionRecord
from attnlab.model.transformer import Transformer

VOCABULARY = 50

# the wrong split mixes tokens, but never with later ones
CAUSAL_ARMS = NO_LEAK | {"wrong_split": WRONG_AXES["wrong_split"]}
LEAKING_ARMS = WRONG_MASK | {"wrong_merge": WRONG_AXES["wrong_merge"]}


def small_model(
    arm: AttentionConfig = CORRECT, *, heads: int = 4, layers: int = 2, dropout: float = 0.3
) -> Transformer:
    """Untrained, in training mode, dropout on, d_model 32."""
    config = ModelConfig(
        name="small", d_model=32, heads=heads, d_k=None, d_v=None, d_ff=64, encoder_layers=layers,
        decoder_layers=layers, dropout=dropout, attention_dropout=dropout, norm=Norm.pre, tie_embeddings=True,
    )  # fmt: skip
    return build(config, arm, VOCABULARY, seed=1).train()


def random_batch(lengths: list[tuple[int, int]], seed: int = 0) -> Batch:
    """One pair of random sentences for each (source, target) length, without the special tokens."""
    random = np.random.default_rng(seed)
    pairs = [[random.integers(4, VOCABULARY, n) for n in pair] for pair in lengths]
    return collate(Encoded([src for src, _ in pairs], [tgt for _, tgt in pairs]), range(len(pairs)))


def padded(batch: Batch, width: int) -> Batch:
    """The same sentences with padding up to `width` positions on every side."""
    sides = {name: getattr(batch, name) for name in ("src", "tgt_in", "tgt_out")}
    return replace(batch, **{name: pad(ids, (0, width - ids.shape[1])) for name, ids in sides.items()})


def record_of(
    scores: Tensor, weights: Tensor, keep: Tensor | None = None, real: Tensor | None = None,
    site: Site = Site.decoder, layer: int = 1,
) -> AttentionRecord:  # fmt: skip
    """scores and weights [B,H,Q,K]; q, k and v are empty, for what looks at the softmax alone."""
    none = scores.new_zeros(*scores.shape[:3], 0)
    return AttentionRecord(site, layer, none, none, none, scores, weights, keep, real)

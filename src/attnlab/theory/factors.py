"""The right setting of every attention factor, to compare others with: `replace(CORRECT, scale=Scale.none)`."""

from __future__ import annotations

import math

from attnlab.config import AttentionConfig, Axes, Init, Mask, Scale, Score, Site, WhereConfig

CORRECT = AttentionConfig(
    name="correct", scale=Scale.sqrt_d_k, mask=Mask.before_softmax, mask_fill=-math.inf, split=Axes.heads_first,
    merge=Axes.heads_first, score=Score.dot, qk_norm=False, qk_norm_length=24, init=Init.xavier,
    where=WhereConfig(sites=list(Site), layers=None, heads=None),
)  # fmt: skip

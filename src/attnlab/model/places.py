"""Which factors hold at which place: the arm's where `attention.where` says so, the correct ones elsewhere."""

from __future__ import annotations

from dataclasses import replace

from attnlab.config import AttentionConfig, Axes, Mask, Scale, Score, Site


def correct(factors: AttentionConfig) -> AttentionConfig:
    """The same setting with every factor of the function right; the initialiser is not a mistake and stays."""
    return replace(
        factors, scale=Scale.sqrt_d_k, mask=Mask.before_softmax, mask_fill=float("-inf"),
        split=Axes.heads_first, merge=Axes.heads_first, score=Score.dot, qk_norm=False,
        where=replace(factors.where, heads=None),
    )  # fmt: skip


def factors_at(factors: AttentionConfig, site: Site, layer: int) -> AttentionConfig:
    """The factors of one attention block; `layer` counts from 1 in the encoder and in the decoder."""
    where = factors.where
    here = site in where.sites and (where.layers is None or layer in where.layers)
    return factors if here else correct(factors)

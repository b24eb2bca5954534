"""Attention, with every setting under study beside the right line.

Shapes: B batch, H heads, Q queries, K keys, D d_model, dk size of a query or key, dv size of a value.
Equations: "Attention Is All You Need", Vaswani et al. 2017, section 3.2. Masks are boolean, True = may attend.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from attnlab.config import AttentionConfig, Axes, Mask, Scale, Score, Site
from attnlab.model import fast
from attnlab.model.recorder import AttentionRecord, Recorder


def scale_factor(scale: Scale, d_k: int, d_model: int) -> float:
    """The number that multiplies q.k. Footnote 4: 1/sqrt(d_k) gives unit variance for unit-variance q and k."""
    match scale:
        case Scale.sqrt_d_k:
            return 1 / math.sqrt(d_k)
        case Scale.none | Scale.folded:  # folded: the factor sits in the initial W_Q alone
            return 1.0
        case Scale.sqrt_d_model:
            return 1 / math.sqrt(d_model)
        case Scale.d_k:  # muP, Yang et al. 2022: right once training has correlated q with k
            return 1 / d_k


def dot_scores(q: Tensor, k: Tensor) -> Tensor:
    """q [B,H,Q,dk], k [B,H,K,dk] -> every query against every key [B,H,Q,K]."""
    return q @ k.transpose(-2, -1)


def softmax(scores: Tensor, visible: Tensor | None) -> Tensor:
    """Softmax over the keys; a query that `visible` leaves without any key gets zeros, not NaN.

    Such a row is filled before the softmax as well as after it: 0 * NaN would poison the gradient.
    """
    if visible is None:
        return fast.softmax(scores)
    empty = ~visible.any(dim=-1, keepdim=True)
    if empty.device.type == "cpu" and not empty.any():  # a GPU would have to be waited for
        return fast.softmax(scores)
    return fast.softmax(scores.masked_fill(empty, 0.0)).masked_fill(empty, 0.0)


def attention_weights(
    scores: Tensor, keep: Tensor | None, real: Tensor | None, mask: Mask, mask_fill: float = -math.inf
) -> Tensor:
    """Scores [B,H,Q,K] -> weights [B,H,Q,K], in fp32 at least; `keep` and `real` as in `attend`."""
    if scores.dtype in (torch.float16, torch.bfloat16):
        scores = scores.float()
    if real is not None:  # padding is excluded in every arm, so that an arm differs in its one factor alone
        scores = fast.hide(scores, ~real)
    if keep is None:
        return softmax(scores, real)
    past, future = (keep, ~keep) if real is None else (keep & real, ~keep & real)
    match mask:
        case Mask.before_softmax if mask_fill == -math.inf:
            return softmax(fast.hide(scores, future), past)
        case Mask.before_softmax:  # a mask_fill of 0 is the page's zero-fill: e^0 = 1 is not "no weight"
            return softmax(scores.masked_fill(future, mask_fill), real)
        case Mask.after_softmax:  # the normaliser has already seen the future
            return softmax(scores, real) * keep
        case Mask.after_softmax_renormalized:  # equal to the right mask: a control
            weights = softmax(scores, real) * keep
            return weights / weights.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)
        case Mask.none:
            return softmax(scores, real)
        case Mask.inverted:  # True read as "may not look": the last query is left without a key
            return softmax(fast.hide(scores, keep), future)


class Attended(NamedTuple):
    out: Tensor  # [B,H,Q,dv]
    weights: Tensor  # [B,H,Q,K], before dropout
    scores: Tensor  # [B,H,Q,K], scaled, before any mask


def attend(
    q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None = None, *, real: Tensor | None = None,
    scale: float | Tensor | None = None, mask: Mask = Mask.before_softmax, mask_fill: float = -math.inf,
    score: Callable[[Tensor, Tensor], Tensor] = dot_scores,
    dropout: Callable[[Tensor], Tensor] | None = None, marked: Tensor | None = None,
) -> Attended:  # fmt: skip
    """Equation 1: softmax(scale q k^T) v, in the order scores, scale, mask, softmax, (mask,) dropout, values.

    q [B,H,Q,dk], k [B,H,K,dk], v [B,H,K,dv]. `keep` (broadcast to [B,H,Q,K]) is the mask of the future, on which
    `mask` acts; `real` (broadcast to [B,H,1,K]) marks keys that are tokens and not padding, always excluded by
    -inf. `scale` multiplies the scores; None is 1/sqrt(dk). `marked` (broadcast to [B,H,1,1]) are the heads to which
    `mask` applies, None all; the others are masked rightly. A query without any key gets an output of zeros.
    """
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = scale * score(q, k)
    weights = attention_weights(scores, keep, real, mask, mask_fill)
    if marked is not None:
        weights = torch.where(marked, weights, attention_weights(scores, keep, real, Mask.before_softmax))
    dropped = weights if dropout is None else dropout(weights)
    return Attended(dropped.to(v.dtype) @ v, weights, scores)


def split_heads(x: Tensor, heads: int, axes: Axes) -> Tensor:
    """[B,N,H*dk] -> [B,H,N,dk]."""
    batch, n, width = x.shape
    match axes:
        case Axes.heads_first:
            return x.reshape(batch, n, heads, width // heads).transpose(1, 2)
        case Axes.no_transpose:  # the page's mistake 3: the right shape, filled with pieces of other tokens
            return x.reshape(batch, heads, n, width // heads)


def merge_heads(x: Tensor, axes: Axes) -> Tensor:
    """[B,H,N,dv] -> [B,N,H*dv]: the paper's Concat."""
    batch, heads, n, size = x.shape
    match axes:
        case Axes.heads_first:
            return x.transpose(1, 2).reshape(batch, n, heads * size)
        case Axes.no_transpose:
            return x.reshape(batch, n, heads * size)


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O (section 3.2.2), d_k and d_v free of d_model / heads.

    `factors` are the settings at this place (see `places.factors_at`). Of them, only the heads in
    `factors.where.heads` get the scale and the mask of the arm; None means all heads.
    """

    marked: Tensor | None
    scales: Tensor | None

    def __init__(
        self, d_model: int, heads: int, d_k: int, d_v: int, factors: AttentionConfig,
        site: Site = Site.encoder, layer: int = 1, dropout: Callable[[Tensor], Tensor] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.heads, self.factors, self.site, self.layer, self.dropout = heads, factors, site, layer, dropout
        self.scale: float | Tensor = scale_factor(factors.scale, d_k, d_model)
        self.w_q = nn.Linear(d_model, heads * d_k)
        self.w_k = nn.Linear(d_model, heads * d_k)
        self.w_v = nn.Linear(d_model, heads * d_v)
        self.w_o = nn.Linear(heads * d_v, d_model)
        match factors.score:
            case Score.additive:  # Bahdanau et al. 2015, one vector a head
                self.v_score = nn.Parameter(torch.empty(heads, d_k))
            case Score.dot if factors.qk_norm:  # Henry et al. 2020: cosine scores times a learned gain
                self.gain = nn.Parameter(torch.empty(()))
        marked = scales = None
        if factors.where.heads is not None:
            chosen = [head in factors.where.heads for head in range(1, heads + 1)]
            marked = torch.tensor(chosen).view(1, heads, 1, 1)
            scales = torch.where(marked, self.scale, scale_factor(Scale.sqrt_d_k, d_k, d_model))
        self.register_buffer("marked", marked, persistent=False)
        self.register_buffer("scales", scales, persistent=False)

    def additive_scores(self, q: Tensor, k: Tensor) -> Tensor:
        """v . tanh(q + k) for every pair: [B,H,Q,dk], [B,H,K,dk] -> [B,H,Q,K]; holds Q*K*dk numbers a head."""
        return (torch.tanh(q.unsqueeze(3) + k.unsqueeze(2)) * self.v_score[:, None, None]).sum(-1)

    def project(self, x: Tensor, *layers: nn.Linear) -> list[Tensor]:
        """x [B,N,D] through some of W_Q, W_K, W_V in one product -> [B,H,N,.] each; what a decoder caches."""
        weight, bias = torch.cat([one.weight for one in layers]), torch.cat([one.bias for one in layers])
        parts = nn.functional.linear(x, weight, bias).split([one.out_features for one in layers], dim=-1)
        return [split_heads(part, self.heads, self.factors.split) for part in parts]

    def attend(self, q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None, real: Tensor | None) -> Attended:
        """The arm's attention on ready heads; correct on the heads that `where.heads` leaves out."""
        factors, scale = self.factors, self.scale if self.scales is None else self.scales
        if factors.qk_norm:
            q, k, scale = nn.functional.normalize(q, dim=-1), nn.functional.normalize(k, dim=-1), self.gain
        return attend(
            q, k, v, keep, real=real, scale=scale, mask=factors.mask, mask_fill=factors.mask_fill,
            dropout=self.dropout, marked=self.marked,
            score=self.additive_scores if factors.score is Score.additive else dot_scores,
        )  # fmt: skip

    def output(self, out: Tensor) -> Tensor:
        """[B,H,Q,dv] -> [B,Q,D]."""
        return self.w_o(merge_heads(out, self.factors.merge))

    def forward(
        self, x_q: Tensor, x_kv: Tensor, keep: Tensor | None = None, real: Tensor | None = None,
        recorder: Recorder | None = None,
    ) -> Tensor:  # fmt: skip
        """x_q [B,Q,D] asks, x_kv [B,K,D] answers -> [B,Q,D]; `keep` [Q,K] and `real` [B,1,1,K] as in `attend`."""
        if x_kv is x_q:
            q, k, v = self.project(x_q, self.w_q, self.w_k, self.w_v)
        else:
            (q,), (k, v) = self.project(x_q, self.w_q), self.project(x_kv, self.w_k, self.w_v)
        out, weights, scores = self.attend(q, k, v, keep, real)
        if recorder is not None:
            recorder.add(AttentionRecord(self.site, self.layer, q, k, v, scores, weights, keep, real))
        return self.output(out)

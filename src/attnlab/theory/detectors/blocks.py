"""Attention blocks as subjects: ours, nn.MultiheadAttention, and those of Hugging Face's models.

Modules are copied to float64 and put into eval mode; the caller's own is never touched.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.config import Axes
from attnlab.errors import UserError
from attnlab.model.attention import MultiHeadAttention, merge_heads, split_heads
from attnlab.model.recorder import Recorder
from attnlab.theory.detectors.functions import MaskStyle, as_seen
from attnlab.theory.detectors.subject import Projections, Seen, Subject, both, name_of


def our_block(block: MultiHeadAttention) -> Subject:
    """A block of this project, with whatever factors it has."""
    copied: MultiHeadAttention = _float64(block)
    heads, d_k = copied.heads, copied.w_k.out_features // copied.heads

    def forward(x: Tensor, keep: Tensor | None, real: Tensor | None) -> Seen:
        recorder = Recorder()
        out = copied(x, x, keep, None if real is None else real[:, None, None], recorder)
        return Seen(out, recorder.records[0].weights)

    def kernel(q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None) -> Seen:
        if copied.factors.qk_norm:  # in the block this happens before the heads are ready
            q, k = (nn.functional.normalize(x, dim=-1) for x in (q, k))
        attended = copied.attend(q, k, v, keep, None)
        return Seen(attended.out, attended.weights)

    projections = Projections.of(copied.w_q, copied.w_k, copied.w_v, copied.w_o)
    return Subject(
        copied.factors.name, copied.w_q.in_features, forward, takes_keep=True, takes_real=True, heads=heads,
        kernel=kernel, d_k=d_k, reference=projections.library(heads),
    )  # fmt: skip


def torch_block(block: nn.MultiheadAttention) -> Subject:
    """nn.MultiheadAttention or a subclass; its masks are True = may NOT attend."""
    copied = _float64(block)
    copied.batch_first = True
    if copied.in_proj_weight is None:
        raise UserError("check: got nn.MultiheadAttention with kdim or vdim, allowed: one with equal sizes")
    plain = copy.deepcopy(copied)
    _identity(plain.in_proj_weight, plain.in_proj_bias, copies=3)
    _identity(plain.out_proj.weight, plain.out_proj.bias)

    def forward(x: Tensor, keep: Tensor | None, real: Tensor | None) -> Seen:
        masks = {
            "attn_mask": None if keep is None else ~keep,
            "key_padding_mask": None if real is None else ~real,
        }
        return Seen(*copied(x, x, x, average_attn_weights=False, **masks))

    def kernel(q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None) -> Seen:
        q, k, v = (merge_heads(x, Axes.heads_first) for x in (q, k, v))
        out, weights = plain(q, k, v, attn_mask=None if keep is None else ~keep, average_attn_weights=False)
        return Seen(split_heads(out, plain.num_heads, Axes.heads_first), weights)

    biases = (None,) * 3 if copied.in_proj_bias is None else copied.in_proj_bias.chunk(3)
    q, k, v = zip(copied.in_proj_weight.chunk(3), biases, strict=True)
    projections = Projections(q, k, v, (copied.out_proj.weight, copied.out_proj.bias))
    return Subject(
        name_of(block), copied.embed_dim, forward, takes_keep=True, takes_real=True, heads=copied.num_heads,
        kernel=kernel, d_k=copied.head_dim, reference=projections.library(copied.num_heads),
    )  # fmt: skip


def hugging_face_block(block: nn.Module) -> Subject:
    """A Marian, BART or like block: q_proj, k_proj, v_proj, out_proj, num_heads, and an additive attention_mask."""
    copied = _float64(block)
    plain = copy.deepcopy(copied)
    width, heads = copied.q_proj.out_features, copied.num_heads
    for at, part in enumerate((plain.q_proj, plain.k_proj, plain.v_proj)):
        # Self-attention has one input: q, k and v stand side by side in it, and each projection reads its third.
        part.weight = nn.Parameter(torch.zeros(width, 3 * width, dtype=torch.float64), requires_grad=False)
        _identity(part.weight[:, at * width : (at + 1) * width], part.bias)
    _identity(plain.out_proj.weight, plain.out_proj.bias)

    def call(module: nn.Module, x: Tensor, allowed: Tensor | None) -> Seen:
        if allowed is not None:
            allowed = MaskStyle.additive.of(allowed.expand(len(x), 1, x.shape[1], x.shape[1]), x.dtype)
        return as_seen(module(x, attention_mask=allowed))

    def kernel(q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None) -> Seen:
        side_by_side = torch.cat([merge_heads(x, Axes.heads_first) for x in (q, k, v)], dim=-1)
        seen = call(plain, side_by_side, keep)
        return Seen(split_heads(seen.out, heads, Axes.heads_first), seen.weights)

    projections = Projections.of(copied.q_proj, copied.k_proj, copied.v_proj, copied.out_proj)
    return Subject(
        name_of(block), width, lambda x, keep, real: call(copied, x, both(keep, real)), takes_keep=True, takes_real=True,
        heads=heads, kernel=kernel, d_k=width // heads, reference=projections.library(heads),
    )  # fmt: skip


def _float64(module: nn.Module) -> Any:
    """A copy; Any, since the attributes of other people's modules are read from it."""
    return copy.deepcopy(module).double().eval().requires_grad_(False)


@torch.no_grad()
def _identity(weight: Tensor, bias: Tensor | None, copies: int = 1) -> None:
    """Make a projection the identity, in place; `copies` of it below each other for a packed one."""
    weight.copy_(torch.eye(weight.shape[1], dtype=weight.dtype).repeat(copies, 1))
    if bias is not None:
        bias.zero_()

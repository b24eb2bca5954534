"""A user's function of ready heads as a subject, whatever its layout and its kind of mask."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from typing import Any

import torch
from torch import Tensor

from attnlab.config import Axes
from attnlab.errors import UserError
from attnlab.model.attention import merge_heads, split_heads
from attnlab.theory.detectors.subject import Kernel, Seen, Subject, both, library_attention

HEADS, D_K = (
    4,
    8,
)  # a function is probed at these sizes; dk is above the number of tokens, see `probing.ready_heads`
MASK_NAMES = ("mask", "attn_mask", "attention_mask", "keep")


class MaskStyle(StrEnum):
    """What a callable's mask argument means."""

    keep = "keep"  # boolean, True = may attend
    drop = "drop"  # boolean, True = may not attend
    additive = "additive"  # 0 or -inf, added to the scores
    none = "none"  # it takes no mask

    def of(self, allowed: Tensor, dtype: torch.dtype) -> Tensor:
        """`allowed` (True = may attend) in this style."""
        match self:
            case MaskStyle.keep | MaskStyle.none:
                return allowed
            case MaskStyle.drop:
                return ~allowed
            case MaskStyle.additive:
                return torch.zeros(allowed.shape, dtype=dtype).masked_fill(~allowed, -math.inf)


Masked = Callable[
    [tuple[Tensor, ...], Tensor | None], Any
]  # inputs and what is allowed -> what the user's code returns


def function(name: str, masked: Masked, takes_mask: bool, dtype: torch.dtype) -> Subject:
    """A function of ready heads q, k, v and a mask. It may take [B,H,N,d], [B*H,N,d] or one head [N,d] at a time.

    Tokens get to it through fixed random projections and right axes, so that every check can run.
    """
    width = HEADS * D_K
    generator = torch.Generator().manual_seed(0)
    matrices = torch.randn(4, width, width, generator=generator, dtype=torch.float64) / math.sqrt(width)
    w_q, w_k, w_v, w_o = matrices.to(dtype)
    on_heads = _layout(name, masked, dtype)

    def heads(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = (split_heads(x @ w.T, HEADS, Axes.heads_first) for w in (w_q, w_k, w_v))
        return q, k, v

    def forward(x: Tensor, keep: Tensor | None, real: Tensor | None) -> Seen:
        seen = on_heads(*heads(x), both(keep, real))
        return Seen(merge_heads(seen.out, Axes.heads_first) @ w_o.T, seen.weights)

    def reference(x: Tensor, keep: Tensor | None, real: Tensor | None) -> Tensor:
        return merge_heads(library_attention(*heads(x), both(keep, real)), Axes.heads_first) @ w_o.T

    return Subject(
        name, width, forward, takes_keep=takes_mask, takes_real=takes_mask, heads=HEADS, kernel=on_heads, d_k=D_K,
        reference=reference, dtype=dtype,
    )  # fmt: skip


def _layout(name: str, masked: Masked, dtype: torch.dtype) -> Kernel:
    """`masked` as a function of [B,H,N,d], in the first layout that it accepts."""
    example = torch.ones(2, HEADS, 3, D_K, dtype=dtype)
    problems = []
    for layout in (_all_heads, _flat_heads, _head_by_head):
        try:
            with warnings.catch_warnings(action="ignore"):  # .T of four axes warns before it fails
                out = layout(masked, example, example, example, None).out
        except Exception as error:  # the user's code may raise anything, and may take the next layout
            problems.append(f"{type(error).__name__}: {' '.join(str(error).split())[:120]}")
            continue
        if out.shape == example.shape:
            return partial(layout, masked)
        problems.append(f"an output of shape {tuple(out.shape)}")
    raise UserError(
        f"check: got {name}, which fails on q, k, v of shape {tuple(example.shape)} ({problems[0]}), allowed: a "
        "function of [B,H,N,d], [B,N,d] or [N,d] that returns the output, or the output and the weights"
    )


def _all_heads(masked: Masked, q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None) -> Seen:
    return as_seen(masked((q, k, v), allowed))


def _flat_heads(masked: Masked, q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None) -> Seen:
    batch, heads, n = q.shape[:3]
    if allowed is not None:
        allowed = allowed.expand(batch, heads, n, k.shape[2]).flatten(0, 1)
    seen = as_seen(masked((q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1)), allowed))
    weights = None if seen.weights is None else seen.weights.unflatten(0, (batch, heads))
    return Seen(seen.out.unflatten(0, (batch, heads)), weights)


def _head_by_head(masked: Masked, q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None) -> Seen:
    batch, heads, n = q.shape[:3]
    if allowed is not None:
        allowed = allowed.expand(batch, heads, n, k.shape[2])
    seen = [
        as_seen(masked((q[b, h], k[b, h], v[b, h]), None if allowed is None else allowed[b, h]))
        for b in range(batch)
        for h in range(heads)
    ]
    out = torch.stack([one.out for one in seen]).unflatten(0, (batch, heads))
    weights = [one.weights for one in seen if one.weights is not None]
    return Seen(out, torch.stack(weights).unflatten(0, (batch, heads)) if weights else None)


def with_mask(
    call: Callable[..., Any],
    parameters: Mapping[str, inspect.Parameter],
    style: MaskStyle,
    dtype: torch.dtype,
) -> Masked:
    """`call` with its mask argument filled in by name; one that must be given is all-allowed where there is none."""
    name = next((name for name in MASK_NAMES if name in parameters), None)

    def masked(inputs: tuple[Tensor, ...], allowed: Tensor | None) -> Any:
        if name is None or style is MaskStyle.none:
            return call(*inputs)
        if allowed is None:
            if not required(parameters[name]):
                return call(*inputs)
            allowed = torch.ones(inputs[0].shape[-2], inputs[0].shape[-2], dtype=torch.bool)
        return call(*inputs, **{name: style.of(allowed, dtype)})

    return masked


def as_seen(result: Any) -> Seen:
    """Output and weights from what a user's code returns: a tensor, or a tuple whose second part may be weights."""
    parts = result if isinstance(result, (tuple, list)) else (result,)
    out = torch.as_tensor(parts[0])
    weights = parts[1] if len(parts) > 1 else None
    square = (
        isinstance(weights, Tensor) and weights.ndim == out.ndim and weights.shape[-1] == weights.shape[-2]
    )
    return Seen(out, weights if square else None)


def required(parameter: inspect.Parameter) -> bool:
    return parameter.default is inspect.Parameter.empty and parameter.kind not in (
        inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    )  # fmt: skip

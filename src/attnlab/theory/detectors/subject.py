"""What a check needs to know of an attention: a subject, seen from outside.

Shapes: B sentences, H heads, N tokens, D width of x, dk and dv sizes of a key and a value.
Masks are boolean, True = may attend: `keep` [N,N] hides the future, `real` [B,N] marks tokens that are not padding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.config import Axes
from attnlab.model.attention import merge_heads, split_heads


class Seen(NamedTuple):
    """What came out: the output, and the weights [B,H,N,N] where the subject shows them."""

    out: Tensor
    weights: Tensor | None


Forward = Callable[[Tensor, Tensor | None, Tensor | None], Seen]  # x [B,N,D], keep, real -> out [B,N,D]
Kernel = Callable[[Tensor, Tensor, Tensor, Tensor | None], Seen]  # q, k, v [B,H,N,.], keep -> out [B,H,N,dv]
Reference = Callable[
    [Tensor, Tensor | None, Tensor | None], Tensor
]  # what the library computes instead of `forward`


@dataclass(frozen=True)
class Subject:
    """A self-attention under test. Only `forward` is needed; each further field lets more checks run."""

    name: str
    width: int  # D
    forward: Forward
    takes_keep: bool  # `forward` listens to keep
    takes_real: bool = False  # `forward` listens to real
    hides_future: bool = False  # hides the future by itself, without being told
    positions: bool = False  # knows where a token stands, so that a permutation may change its output
    heads: int | None = None
    kernel: Kernel | None = None
    d_k: int | None = None  # of the kernel
    reference: Reference | None = None
    dtype: torch.dtype = torch.float64

    @property
    def causal(self) -> bool:
        """Whether it can be asked to hide the future."""
        return self.takes_keep or self.hides_future

    @property
    def tolerance(self) -> float:
        """Relative difference that counts as rounding."""
        return 1e-6 if self.dtype is torch.float64 else 1e-3


@dataclass(frozen=True)
class Projections:
    """The four matrices of a block, each (weight (out, in), bias or None) as nn.Linear keeps them."""

    q: tuple[Tensor, Tensor | None]
    k: tuple[Tensor, Tensor | None]
    v: tuple[Tensor, Tensor | None]
    out: tuple[Tensor, Tensor | None]

    @classmethod
    def of(cls, q: nn.Linear, k: nn.Linear, v: nn.Linear, out: nn.Linear) -> Projections:
        """Those of four layers."""
        return cls((q.weight, q.bias), (k.weight, k.bias), (v.weight, v.bias), (out.weight, out.bias))

    def library(self, heads: int) -> Reference:
        """`scaled_dot_product_attention` on these matrices: right axes, scale and masks."""

        def reference(x: Tensor, keep: Tensor | None, real: Tensor | None) -> Tensor:
            q, k, v = (
                split_heads(F.linear(x, *part), heads, Axes.heads_first) for part in (self.q, self.k, self.v)
            )
            return F.linear(
                merge_heads(library_attention(q, k, v, both(keep, real)), Axes.heads_first), *self.out
            )

        return reference


def library_attention(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None) -> Tensor:
    """q, k, v [B,H,N,.] -> [B,H,N,dv] by PyTorch's own attention."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)


def both(keep: Tensor | None, real: Tensor | None) -> Tensor | None:
    """One mask of keep [N,N] and real [B,N]: [N,N], [B,1,1,N] or [B,1,N,N], broadcast to [B,H,N,N]."""
    if real is None:
        return keep
    return real[:, None, None] if keep is None else keep & real[:, None, None]


def name_of(thing: Any) -> str:
    """What to call a module or function in a report."""
    return thing.__name__ if hasattr(thing, "__name__") else type(thing).__name__

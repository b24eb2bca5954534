"""The one mask type of the program: boolean, True = may attend."""

from __future__ import annotations

import torch
from torch import Tensor


def causal(n: int, device: torch.device | str | None = None) -> Tensor:
    """[n,n]: query i may look at key j only if j <= i (section 3.1 of the paper)."""
    return torch.ones(n, n, dtype=torch.bool, device=device).tril()


def real_keys(keep: Tensor) -> Tensor | None:
    """[B,K] marks of real tokens -> [B,1,1,K] for `attend`, or None where nothing is padded.

    Raises ValueError if a sentence has no real token: a softmax over nothing is no measurement. On a GPU neither is
    looked at, since each look waits for all that was launched: the marks are used as they are.
    """
    if keep.device.type == "cpu":
        if bool(keep.all()):
            return None
        if not bool(keep.any(dim=-1).all()):
            raise ValueError("a sentence of only padding has no key to attend to")
    return keep[:, None, None, :]

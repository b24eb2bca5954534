"""Where a run computes and in which precision."""

from __future__ import annotations

import os

import torch

from attnlab.config import Precision
from attnlab.errors import UserError

# By default both caches keep 1,024, which takes over 2 GB on text of many lengths and is slower (docs/performance.md).
KERNELS = 64


def bound_kernels() -> None:
    """Keep the last KERNELS of the kernels that oneDNN compiles on a CPU for each shape of a half-precision product.

    oneDNN and the layer between it and torch have a cache each, and read its size once, at the first such product of
    the process. What the user's environment says stands.
    """
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, str(KERNELS))


def pick_device(name: str) -> torch.device:
    """`auto` is the GPU where there is one; raises UserError for a device that is not here."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UserError(
            f"device: got '{name}' with {torch.cuda.device_count()} GPUs here, allowed: auto or cpu"
        )
    return device


def autocast(precision: Precision, device: torch.device) -> torch.autocast:
    """The forward pass in half precision where asked; weights, softmax and loss stay in fp32."""
    dtype = torch.float16 if precision is Precision.fp16 else torch.bfloat16
    return torch.autocast(device.type, dtype, enabled=precision is not Precision.fp32)

"""Where a run computes and in which precision."""

from __future__ import annotations

import os

import torch

from attnlab.config import Precision
from attnlab.errors import UserError

# By default both caches keep 1,024, which takes over 2 GB on text of many lengths and is slower (docs/performance.md).
KERNELS = 64


def bound_kernels(precision: Precision, device: torch.device) -> None:
    """Keep the last KERNELS of the kernels that oneDNN compiles for each shape of a product in half precision on a CPU.

    oneDNN and the layer between it and torch have a cache each and read its size once, at the first product that
    goes through them: a size set later is not seen. It holds for the whole process, in which such a training bounds it;
    what the user's environment says stands.
    """
    if device.type != "cpu" or precision is Precision.fp32:
        return
    # The older name of the first of the two, which the newer one would hide.
    if "DNNL_PRIMITIVE_CACHE_CAPACITY" not in os.environ:
        os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(KERNELS))
    os.environ.setdefault("LRU_CACHE_CAPACITY", str(KERNELS))


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

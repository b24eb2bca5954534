"""Where a run computes and in which precision."""

from __future__ import annotations

import torch

from attnlab.config import Precision
from attnlab.errors import UserError


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

"""Dropout from a stream of its own, so that neither probes nor initialisation can shift it.

On the CPU `bernoulli_` takes 18% of a training step; 16 random bits an element from a small fast generator take an
eighth of that. The rate is a multiple of 1/65536, and the kept values are scaled by that exact rate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


class DropoutStream:
    """Random keep-masks. SFC64 on the CPU; torch's generator of the device elsewhere. Its state can be saved."""

    def __init__(self, seed: int) -> None:
        self._bits = np.random.SFC64(seed)
        self._seed = seed
        self._device_generator: torch.Generator | None = None

    def mask(self, like: Tensor, p: float) -> Tensor:
        """A tensor like `like`: 0 with probability p, else 1 / (1 - p), with p rounded to 1/65536."""
        dropped = round(p * 65536)
        if like.device.type != "cpu":
            kept = torch.rand(like.shape, device=like.device, generator=self._generator_on(like.device)) >= p
            return kept.to(like.dtype).mul_(1 / (1 - p))
        words = self._bits.random_raw((like.numel() + 3) // 4)
        mask = torch.from_numpy(words.view(np.int16))[: like.numel()].view(like.shape)
        threshold = (
            dropped - 32768
        )  # a value below it is dropped; clamp to {threshold - 1, threshold} makes 0 or 1
        mask = mask.clamp_(threshold - 1, threshold).sub_(threshold - 1)
        return mask.to(like.dtype).mul_(65536 / (65536 - dropped))

    def _generator_on(self, device: torch.device) -> torch.Generator:
        if self._device_generator is None:
            self._device_generator = torch.Generator(device).manual_seed(self._seed)
        return self._device_generator

    def state(self) -> dict[str, Any]:
        """Plain integers and at most one tensor: a safe loader reads it."""
        state: dict[str, Any] = {"words": [int(word) for word in self._bits.state["state"]["state"]]}
        if self._device_generator is not None:
            return {**state, "device": self._device_generator.get_state()}
        return state

    def load_state(self, state: dict[str, Any], device: torch.device) -> None:
        """Continue exactly where `state()` was taken."""
        inner = self._bits.state
        inner["state"]["state"] = np.array(state["words"], dtype=np.uint64)
        self._bits.state = inner
        if "device" in state:
            self._generator_on(device).set_state(state["device"])


class Dropout(nn.Module):
    """Inverted dropout with rate `p` drawn from `stream`; the identity in eval mode and at p = 0."""

    def __init__(self, p: float, stream: DropoutStream) -> None:
        super().__init__()
        self.p, self.stream = p, stream

    def forward(self, x: Tensor) -> Tensor:
        """X of any shape -> the same shape."""
        if not self.training or round(self.p * 65536) == 0:
            return x
        return x * self.stream.mask(x, self.p)

    def extra_repr(self) -> str:
        return f"p={self.p}"

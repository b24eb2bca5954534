"""Everything that a run needs to go on as if it had never stopped: tensors and plain types in one atomic file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attnlab.errors import UserError

Weights = dict[str, Tensor]


def save(path: Path, content: dict[str, Any]) -> None:
    """Write beside `path` and rename: a kill leaves the old checkpoint or the new one, never a half."""
    beside = path.with_suffix(".partial")
    with open(beside, "wb") as file:
        torch.save(content, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)


def load(path: Path) -> dict[str, Any]:
    """Read onto the CPU with the safe loader: a file that holds anything but tensors and plain types is refused.

    Models and optimisers move what they load to their own device; the state of a generator must stay on the CPU.
    """
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises pickle, zip, runtime and EOF errors for one broken file
        reason = str(error).split("\n")[0][:120]
        raise UserError(
            f"{path}: got a file that is no attnlab checkpoint ({reason}), allowed: a checkpoint.pt written by a run; "
            "force=true trains afresh"
        ) from None


def clone(weights: Weights) -> Weights:
    """A copy that later steps do not change."""
    return {name: tensor.detach().clone() for name, tensor in weights.items()}


def average(snapshots: list[Weights]) -> Weights:
    """Mean of the weights of several checkpoints, summed in float64."""
    if not snapshots:
        raise ValueError("the mean of no checkpoints is not defined")
    return {
        name: torch.stack([snapshot[name].double() for snapshot in snapshots]).mean(0).to(tensor.dtype)
        for name, tensor in snapshots[0].items()
    }

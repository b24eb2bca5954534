"""Everything that a run needs to go on as if it had never stopped: tensors and plain types in one atomic file.

The file is a zip archive as torch writes it, which `torch.load` reads anywhere, sealed with the SHA-256 of its bytes as
the archive's comment. `load` looks at the seal before anything is taken from the file.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attnlab.errors import UserError
from attnlab.tracking.files import write_atomic

Weights = dict[str, Tensor]

_MARK = b"attnlab sha256:"
_DIGEST = hashlib.sha256().digest_size


def save(path: Path, content: dict[str, Any]) -> None:
    """Replace `path` in one step: a kill leaves the old checkpoint or the new one, never a half. Raises CannotWrite."""
    archive = io.BytesIO()
    torch.save(content, archive)
    write_atomic(path, _sealed(archive.getbuffer()))


def load(path: Path) -> dict[str, Any]:
    """Read onto the CPU with the safe loader: a file that holds anything but tensors and plain types is refused.

    Raises UserError, before anything of it is used, for a file whose bytes are not those that were saved. Models and
    optimisers move what they load to their own device; the state of a generator must stay on the CPU.
    """
    try:
        data = path.read_bytes()
        _refuse_damaged(data)
        state: dict[str, Any] = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        if not isinstance(state, dict):
            raise ValueError(f"it holds a {type(state).__name__}")
        return state
    except Exception as error:  # torch raises pickle, zip, runtime and EOF errors for one broken file
        reason = str(error).split("\n")[0][:120]
        raise UserError(
            f"{path}: got a file that is no attnlab checkpoint ({reason}), allowed: a checkpoint.pt written by a run; "
            "force=true trains afresh"
        ) from None


def _sealed(archive: memoryview) -> bytes:
    """With the digest of all before it as the comment, whose length is the last field of a zip archive (2 bytes)."""
    length = (len(_MARK) + _DIGEST).to_bytes(2, "little")
    content = b"".join((archive[:-2], length, _MARK))
    return content + hashlib.sha256(content).digest()


def _refuse_damaged(data: bytes) -> None:
    """Raises ValueError, or an error of zipfile's, for bytes that are not those that were saved."""
    content, digest = data[:-_DIGEST], data[-_DIGEST:]
    if content.endswith(_MARK):
        if hashlib.sha256(content).digest() != digest:
            raise ValueError("damaged: its checksum does not fit")
    else:  # from before there was a seal: the archive's own CRC-32 of each part
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if (part := archive.testzip()) is not None:
                raise ValueError(f"damaged: the checksum of {part} does not fit")


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

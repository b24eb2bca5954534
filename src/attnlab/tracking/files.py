"""Writing files so that a reader, or the next run after a kill, never sees half of one."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attnlab.errors import UserError

# JSON has no NaN and no infinity, and Python's bare `NaN` breaks jq, JavaScript and pandas.
_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class CannotWrite(UserError):
    """The disk is full or may not be written to. Nothing is wrong with the run: once there is room, it goes on."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raises CannotWrite in place of the operating system's OSError, naming `path`."""
    try:
        yield
    except OSError as error:
        raise CannotWrite(
            f"output: cannot write {path} ({error.strerror or error}), allowed: a place with room that you may write "
            "to; then the same command goes on"
        ) from error


def dump_json(value: Any, indent: int | None = None) -> str:
    """Strict JSON: a float that JSON cannot hold becomes the string "NaN", "Infinity" or "-Infinity"."""
    return json.dumps(_without_non_finite(value), indent=indent, ensure_ascii=False, allow_nan=False)


def number(value: float | str) -> float:
    """A number as `dump_json` wrote it. Raises ValueError for any string but its three."""
    if not isinstance(value, str):
        return value
    if value not in _NON_FINITE:
        raise ValueError(f"not a number: {value!r}")
    return _NON_FINITE[value]


def write_atomic(path: Path, data: str | bytes | memoryview) -> None:
    """Replace `path` by `data` in one step: whoever opens it finds the old content or the new, even after a crash.

    Raises CannotWrite, with the old content in place. A kill may leave the temporary file: see `remove_unfinished`.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with writing(path):
            with open(temporary, "wb") as file:
                file.write(data.encode("utf-8") if isinstance(data, str) else data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def remove_unfinished(folder: Path) -> None:
    """Remove what a kill in the midst of `write_atomic` left below `folder`, in which nobody else may be writing."""
    for temporary in folder.rglob(".*.tmp"):
        temporary.unlink(missing_ok=True)


def require_writable(folder: Path) -> None:
    """Create `folder` and try a write in it. Raises CannotWrite naming the path.

    Tried, not asked: `os.access` says yes for root on a read-only file system, and for a full disk. The file that is
    tried has no name where the system can do that, so that a kill leaves none.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"attnlab")
            probe.flush()
    except OSError as error:
        reason = error.strerror or str(error)
        raise CannotWrite(
            f"output: cannot write into {folder} ({reason}); give a folder that you may write to, "
            "such as output=~/attnlab-outputs"
        ) from error


def _without_non_finite(value: Any) -> Any:
    match value:
        case float() if math.isnan(value):
            return "NaN"
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        case dict():
            return {key: _without_non_finite(item) for key, item in value.items()}
        case list() | tuple():
            return [_without_non_finite(item) for item in value]
        case _:
            return value

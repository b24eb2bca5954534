"""Pictures, tables and histograms of a run: PNG files plus one line each in media.jsonl, from which a mirror is made.

Attention maps are shown so that they can be *seen*. A head that spreads over 30 keys has weights near 0.03, which is
black on a scale from 0 to 1, so each picture is scaled to its own largest value and says that value in its caption;
and a 12 by 12 map is enlarged until it can be looked at.
"""

from __future__ import annotations

import math
import re
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.tracking.files import write_atomic, writing

MAX_IMAGES = 108  # wandb.Image.MAX_ITEMS: of a longer list W&B drops the rest with a warning in a log
_SHOWN_SIDE = 240  # pixels: smaller pictures are enlarged by a whole factor up to about this
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*")

Cell = str | int | float


@dataclass(frozen=True)
class Images:
    """Pictures logged together: `items` are (caption, PNG file)."""

    step: int
    name: str
    items: list[tuple[str, Path]]


@dataclass(frozen=True)
class Table:
    step: int
    name: str
    columns: list[str]
    rows: list[list[Cell]]


@dataclass(frozen=True)
class Histogram:
    """`counts` of values in equal bins from `low` to `high`."""

    step: int
    name: str
    low: float
    high: float
    counts: list[int]


Media = Images | Table | Histogram


def save_images(folder: Path, step: int, name: str, items: list[tuple[str, np.ndarray]]) -> Images:
    """Write one PNG per (caption, array [h,w] of values in [0,1]) below `folder`/images/<name>/.

    All get the size of the largest, with black below and right of a smaller one, for W&B lays them out on a grid.
    Raises ValueError for an array that is not 2-D or leaves [0,1], and for more pictures than W&B keeps. A pixel that
    is not finite (the weights of a diverged run) becomes black and is counted in the caption.
    """
    _check_name(name)
    if not 1 <= len(items) <= MAX_IMAGES:
        raise ValueError(f"{name}: {len(items)} pictures, allowed are 1 to {MAX_IMAGES}")
    directory = folder / "images" / name
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
    arrays = [_checked(name, array) for _, array in items]
    height = max(array.shape[0] for array in arrays)
    width = max(array.shape[1] for array in arrays)
    factor = max(1, math.ceil(_SHOWN_SIDE / max(height, width)))
    saved = []
    for index, ((caption, _), array) in enumerate(zip(items, arrays, strict=True)):
        shown, note = _scaled(array)
        padded = np.pad(shown, ((0, height - shown.shape[0]), (0, width - shown.shape[1])))
        pixels = padded.repeat(factor, axis=0).repeat(factor, axis=1)
        path = directory / f"{step:07d}-{index:03d}.png"
        write_atomic(path, encode_png(pixels))
        saved.append((f"{caption} ({note})", path))
    return Images(step, name, saved)


def make_table(step: int, name: str, columns: list[str], rows: list[list[Cell]]) -> Table:
    """Raises ValueError for a row that is not as long as the header."""
    _check_name(name)
    for row in rows:
        if len(row) != len(columns):
            raise ValueError(f"{name}: a row has {len(row)} cells, the header {len(columns)}")
    return Table(step, name, list(columns), [list(row) for row in rows])


def make_histogram(step: int, name: str, low: float, high: float, counts: list[int]) -> Histogram:
    """Raises ValueError for no counts or a negative one, and for bounds that are not numbers in order."""
    _check_name(name)
    if not counts or min(counts) < 0 or not -math.inf < low < high < math.inf:
        raise ValueError(f"{name}: got {len(counts)} bins from {low} to {high}, allowed: counts in order")
    return Histogram(step, name, low, high, list(counts))


def to_record(item: Media, folder: Path) -> dict[str, Any]:
    """The line of media.jsonl; files are named relative to the run folder, which may be moved."""
    match item:
        case Images(step, name, items):
            files = [[caption, path.relative_to(folder).as_posix()] for caption, path in items]
            return {"step": step, "name": name, "images": files}
        case Table(step, name, columns, rows):
            return {"step": step, "name": name, "columns": columns, "rows": rows}
        case Histogram(step, name, low, high, counts):
            return {"step": step, "name": name, "low": low, "high": high, "counts": counts}


def from_record(record: dict[str, Any], folder: Path) -> Media:
    """Inverse of `to_record`. A number that JSON cannot hold comes back as its name, which is how a table shows it."""
    if "images" in record:
        items = [(caption, folder / file) for caption, file in record["images"]]
        return Images(record["step"], record["name"], items)
    if "counts" in record:
        return Histogram(record["step"], record["name"], record["low"], record["high"], record["counts"])
    return Table(record["step"], record["name"], record["columns"], record["rows"])


def encode_png(pixels: np.ndarray) -> bytes:
    """An 8-bit grey PNG (RFC 2083) of uint8 [h,w]; here so that pictures need no imaging library."""
    height, width = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(pixels))  # \0: rows are unfiltered

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)  # 8 bits, grey, no interlacing
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def _checked(name: str, array: np.ndarray) -> np.ndarray:
    values = np.asarray(array, dtype=np.float64)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"{name}: a picture is an array [height, width], got shape {values.shape}")
    finite = values[np.isfinite(values)]
    # 1e-6: a float32 softmax row may pass 1 by rounding.
    if finite.size and (finite.min() < -1e-6 or finite.max() > 1 + 1e-6):
        raise ValueError(f"{name}: values must lie in [0, 1], got {finite.min():g} to {finite.max():g}")
    return values


def _scaled(values: np.ndarray) -> tuple[np.ndarray, str]:
    """[h,w] uint8 whose largest finite value is white, and the note that says which value that is."""
    finite = np.isfinite(values)
    known = np.where(finite, values, 0.0)
    peak = float(known.max()) or 1.0
    note = f"white = {peak:.3g}" + ("" if finite.all() else f", {(~finite).sum()} not finite")
    return np.rint(np.clip(known / peak, 0.0, 1.0) * 255).astype(np.uint8), note


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ValueError(f"name {name!r}: allowed are letters, digits and _ - . in parts joined by /")

"""attention.json.gz: every head's attention map of one dev sentence, for reports that lay arms side by side.

Weights are rounded to thousandths and written as whole numbers, so that the file of a run stays under 100 kB
(48 heads, a sentence of 15 pieces: about 20 kB). The pictures in images/ are made for the eye and lack the tokens.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.measure.maps import AttentionMap
from attnlab.tracking.files import write_atomic

FILE = "attention.json.gz"
_UNIT = 1000


@dataclass(frozen=True)
class StoredMaps:
    """src: the source's tokens. tgt: the decoder's input, from BOS on. weights: by `<site>/layer<l>/head<h>`.

    The encoder's maps are [src, src], the decoder's [tgt, tgt], cross-attention's [tgt, src]; NaN where a weight was
    not finite.
    """

    step: int
    src: list[str]
    tgt: list[str]
    weights: dict[str, np.ndarray]


def save_attention(folder: Path, step: int, maps: Sequence[AttentionMap]) -> Path:
    """Write the maps of one sentence into a run folder. Raises ValueError for none."""
    if not maps:
        raise ValueError("attention maps: got none")
    sides = {name.partition("/")[0]: (queries, keys) for name, _, queries, keys in maps}
    record = {
        "step": step,
        "src": next((keys for site, (_, keys) in sides.items() if site != "decoder"), []),
        "tgt": next((queries for site, (queries, _) in sides.items() if site != "encoder"), []),
        "thousandths": {one.name: _whole(one.weights) for one in maps},
    }
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    path = folder / FILE
    write_atomic(path, gzip.compress(text.encode("utf-8"), mtime=0))  # no date in it: equal runs, equal bytes
    return path


def read_attention(folder: Path) -> StoredMaps | None:
    """What `save_attention` wrote, or None for a run that has none: not yet scored, or made before there were any."""
    path = folder / FILE
    if not path.exists():
        return None
    record: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    weights = {
        name: np.array(rows, dtype=np.float64) / _UNIT  # None becomes NaN
        for name, rows in record["thousandths"].items()
    }
    return StoredMaps(record["step"], record["src"], record["tgt"], weights)


def _whole(weights: np.ndarray) -> list[list[int | None]]:
    return [
        [round(value * _UNIT) if math.isfinite(value) else None for value in row] for row in weights.tolist()
    ]

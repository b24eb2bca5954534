"""The attention maps of one sentence for every arm, one byte a weight."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from attnlab.study.cells import Cell
from attnlab.tracking.attention import read_attention
from attnlab.tracking.status import State

LEVELS = 254  # a weight w is the byte round(254 w); 255 is no number
BUDGET = 1_500_000  # characters of the page


@dataclass(frozen=True)
class ShownMaps:
    """src, tgt: tokens. weights: by `<site>/layer<l>/head<h>`, base64 of the bytes, row by row (queries by keys)."""

    run: str
    seed: int
    src: list[str]
    tgt: list[str]
    weights: dict[str, str]


@dataclass(frozen=True)
class CellMaps:
    """By cell, of its first finished seed; `missing` says of every other cell why it has none."""

    cells: dict[int, ShownMaps] = field(default_factory=dict)
    missing: dict[int, str] = field(default_factory=dict)


def cell_maps(cells: Sequence[Cell]) -> CellMaps:
    """The maps of each cell, in order, as long as there is room for them."""
    found, used = CellMaps(), 0
    for place, cell in enumerate(cells):
        done = cell.with_state(State.done)
        if not done:
            found.missing[place] = "no seed is done"
            continue
        stored = read_attention(done[0].folder.path)
        if stored is None:
            found.missing[place] = (
                f"run {done[0].run_id} has no attention.json.gz; it was made before runs kept one"
            )
            continue
        shown = ShownMaps(
            done[0].run_id, done[0].seed, stored.src, stored.tgt,
            {name: packed(weights) for name, weights in stored.weights.items()},
        )  # fmt: skip
        size = sum(map(len, shown.weights.values()))
        if used + size > BUDGET:
            found.missing[place] = (
                "left out to keep the page small: leave other cells out of the command to see it"
            )
            continue
        used += size
        found.cells[place] = shown
    return found


def packed(weights: np.ndarray) -> str:
    """Base64 of one byte a weight."""
    whole = np.where(np.isfinite(weights), np.rint(np.clip(weights, 0, 1) * LEVELS), LEVELS + 1)
    return base64.b64encode(whole.astype(np.uint8).tobytes()).decode("ascii")

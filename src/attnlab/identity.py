"""Which runs are the same: a hash of everything in the config that can change the result."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from attnlab.config import Axes, Config, Mask, Scale, Score, Site


def plain(value: Any) -> Any:
    """A dataclass as nested dicts of plain types (enums as their text), for files, hashes and trackers."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if is_dataclass(value):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    return value


def identity(config: Config) -> dict[str, Any]:
    """What decides the result of a run: everything less paths, tracker, launcher, threads, cadence and names.

    The name of the data stays: it stands for the text, whose hash is checked when a folder is used again.
    """
    known = plain(config)
    for key in ("output", "track", "launch", "study", "threads", "device", "force", "retry", "fail_fast"):
        del known[key]
    for group in ("attention", "model"):
        del known[group]["name"]
    del known["data"]["dir"]
    for key in ("every", "log_every", "images"):
        del known["measure"][key]
    if config.train.patience is None:  # only early stopping makes the evaluation's cadence matter
        del known["measure"]["evaluate_every"]
    known["model"] |= {"d_k": config.model.key_size, "d_v": config.model.value_size}
    known["attention"]["where"] = _places(config)
    known["decode"]["protocols"] = sorted(known["decode"]["protocols"])
    return known


def _places(config: Config) -> dict[str, list[Any] | None] | None:
    """`attention.where` in one spelling: None where nothing is wrong, null where all are meant, sorted lists else."""
    attention, where = config.attention, config.attention.where
    mistakes = (
        attention.scale is not Scale.sqrt_d_k, attention.mask is not Mask.before_softmax,
        attention.mask_fill != float("-inf"), attention.split is not Axes.heads_first,
        attention.merge is not Axes.heads_first, attention.score is not Score.dot, attention.qk_norm,
    )  # fmt: skip
    if not any(mistakes):
        return None
    everywhere: dict[str, list[Any]] = {
        "sites": list(Site),
        "layers": list(range(1, max(config.model.encoder_layers, config.model.decoder_layers) + 1)),
        "heads": list(range(1, config.model.heads + 1)),
    }
    chosen = {key: sorted(set(getattr(where, key) or all_of)) for key, all_of in everywhere.items()}
    return {key: None if set(places) == set(everywhere[key]) else places for key, places in chosen.items()}


def run_id(config: Config) -> str:
    """Ten hexadecimal digits of the identity's hash: one cell and seed has one id in every study."""
    text = json.dumps(identity(config), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:10]

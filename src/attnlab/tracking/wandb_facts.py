"""What W&B is told about a run beside its numbers: name, configuration, which metrics are shown and summed up how."""

from __future__ import annotations

import math
from typing import Any

from attnlab.config import Config
from attnlab.identity import plain

# Of these W&B's table of runs shows the lowest value beside the last one; of all others the last, which is right for
# probes and for what is measured once. Scores of the test set have no best: choosing by them would be a selection.
LOWEST = ("dev/nll", "dev/prefix_nll", "dev/ppl")


def is_detail(metric: str) -> bool:
    """Whether W&B makes no panel of its own for it: 750 of a small run's 900 names are of single layers and heads.

    They are recorded all the same and can be put into any panel. `final/probe` repeats the last probe.
    """
    return "/layer" in metric or metric.startswith("final/probe/")


def run_name(config: Config) -> str:
    """The arm, what else the study changes, and the seed: `no_scale d_k=64 s1`. Text as it stands, not escaped."""
    study = config.study
    keys = dict.fromkeys([*study.grid, *(str(key) for cell in study.cells for key in cell)])
    shown = [_setting(config, key) for key in keys if key not in ("attention", "seed")]
    return " ".join([config.attention.name, *filter(None, shown), f"s{config.seed}"])


def run_config(config: Config, run_id: str, provenance: dict[str, Any] | None) -> dict[str, Any]:
    """Typed leaves, so that runs can be filtered by `model.d_k`, with the run's id here and its provenance."""
    known = plain(config)
    # The grid is the study's, not the run's, and its keys ("model.d_k") would be taken for paths.
    del known["study"]["grid"], known["study"]["cells"]
    known["run_id"] = run_id
    if provenance is not None:
        known["provenance"] = {key: value for key, value in provenance.items() if key != "earlier"}
    safe: dict[str, Any] = _json_safe(known)
    return safe


def _setting(config: Config, key: str) -> str | None:
    """`d_k=64` for the key model.d_k, `tiny` for the group model; None for a key that names no value."""
    value = plain(config)
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            return None
        value = value[part]
    match value:
        case dict():
            return str(value["name"]) if "name" in value else None
        case list():
            value = ",".join(map(str, value))
    return f"{key.rpartition('.')[2]}={value}"


def _json_safe(value: Any) -> Any:
    """Infinities as the words that the command line takes ("-inf"): W&B's server speaks strict JSON.

    Without empty groups, which have no leaf: W&B leaves them out when it uploads.
    """
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {key: _json_safe(item) for key, item in value.items() if item != {}}
        case list():
            return [_json_safe(item) for item in value]
        case _:
            return value

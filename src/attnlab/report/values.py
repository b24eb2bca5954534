"""Numbers and settings as a page shows them."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from attnlab.study.render import fixed
from attnlab.study.statistics import Estimate

Value = str | float | bool | None


@dataclass(frozen=True)
class Number:
    """An estimate as text, in the digits of the table, and in full for sorting and drawing."""

    n: int
    value: float | None
    mean: str
    sd: str
    interval: str
    low: float | None
    high: float | None


def text(value: float, digits: int | None, sign: str = "") -> str:
    """As a table prints it."""
    return fixed(value, digits, sign)


def number(one: Estimate, digits: int | None, sign: str = "") -> Number:
    """In as many digits as the table prints."""
    low, high = (one.interval.low, one.interval.high) if one.interval is not None else (math.nan, math.nan)
    if one.interval is None:
        interval = ""
    elif low == high:  # [0.00, 0.00] would claim a certainty that nothing gives
        interval = "all equal"
    else:
        interval = f"[{text(low, digits)}, {text(high, digits)}]"
    sd = "" if one.sd is None else text(one.sd, digits)
    return Number(
        one.n, finite(one.mean), text(one.mean, digits, sign), sd, interval, finite(low), finite(high)
    )


def finite(value: float) -> float | None:
    """None for what JSON cannot hold."""
    return value if math.isfinite(value) else None


def flat(config: Any, prefix: str = "") -> dict[str, Value]:
    """A nested configuration as `group.key: value`; lists and infinities as text."""
    found: dict[str, Value] = {}
    for key, value in config.items():
        match value:
            case dict():
                found |= flat(value, f"{prefix}{key}.")
            case list():
                found[prefix + key] = json.dumps(value, ensure_ascii=False)
            case float() if not math.isfinite(value):
                found[prefix + key] = str(value)
            case _:
                found[prefix + key] = value
    return found

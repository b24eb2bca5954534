"""What no value of a configuration may hold: control characters, which act on terminals, secrets of the environment, and
whole numbers that fit nowhere.

Settings are written to files, tables, pages and W&B. So both are refused before anything is written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from attnlab.terminal import one_line, short

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # and halves of characters: no file holds them
_SECRET_NAME = re.compile("(KEY|TOKEN|SECRET|PASSWORD|PASSWD)$", re.IGNORECASE)
LARGEST = 2**63  # a whole number beyond it has no place in files and tensors
_SHORTEST = 8  # characters: a shorter value stands in ordinary words


def refused_values(value: Any, key: str = "") -> Iterator[str]:
    """A sentence for each of nested plain values that may not stand in a file; secrets are named, not shown."""
    match value:
        case str() if (name := secret_in(value)) is not None:
            yield f"{key}: got the value of the environment variable {name}, allowed: no secrets, settings are written to files"
        case str() if _CONTROL.search(value):
            yield f"{key}: got '{short(value)}', allowed: text without control characters"
        case int() if abs(value) >= LARGEST:
            yield f"{key}: got a whole number of more than 18 digits, allowed: smaller ones"
        case dict():
            for name, item in value.items():
                yield from refused_values(item, f"{key}.{one_line(str(name))}" if key else str(name))
        case list():
            for item in value:
                yield from refused_values(item, key)


def secret_in(text: str) -> str | None:
    """The environment variable, named like a key, token, secret or password, whose value stands in `text`."""
    if len(text) < _SHORTEST:  # most settings of a config: a study has hundreds of configs
        return None
    return next((name for name, value in _secrets() if value in text), None)


def without_secrets(text: str) -> str:
    """`text` with each secret of the environment replaced by the name of its variable: $WANDB_API_KEY."""
    for name, value in _secrets():
        text = text.replace(value, f"${name}")
    return text


def _secrets() -> Iterator[tuple[str, str]]:
    """Longest first, so that no secret leaves the rest of one that begins with it."""
    found = [
        (name, value)
        for name, value in os.environ.items()
        if _SECRET_NAME.search(name) and len(value) >= _SHORTEST
    ]
    return iter(sorted(found, key=lambda pair: -len(pair[1])))

"""One seed, many independent streams: the same seed never makes initial weights and dropout move together."""

from __future__ import annotations

import hashlib


def stream_seed(seed: int, name: str) -> int:
    """A 63-bit seed of the stream `name` ("init/...", "order", "dropout"), the same on every machine."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:8], "big") >> 1

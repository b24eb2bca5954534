"""The sentences of the grammar, drawn by the first run and read by all that follow: drawing 20,000 takes seconds."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from attnlab.data.cache import SEAL, make_once, sealed, whole

WAIT = 600.0  # seconds for another process that draws the same
Kept = tuple[str, str, tuple[tuple[int, int], ...]]  # English, German, (English word, German word) from 0


def _read_code() -> str:
    """Digest of the grammar's sources."""
    here = Path(__file__).parent
    state = hashlib.sha256()
    for path in (here / "grammar.py", *sorted((here / "synthetic").glob("*.py"))):
        state.update(path.read_bytes())
    return state.hexdigest()


# An edited grammar draws anew. Read at import, as the code itself is: what is edited while a process lives is not its.
CODE = _read_code()


def kept_grammar(seed: int, sizes: dict[str, int], cache: Path | None) -> Mapping[str, Sequence[Kept]]:
    """`grammar.generate` without antecedents, kept under `cache` by what decides it: seed, sizes and the grammar's code."""

    def make() -> bytes:
        from attnlab.data.grammar import generate  # builds its lexicon on import

        splits = generate(seed, sizes)
        plain = {
            name: [(pair.src, pair.tgt, pair.alignment) for pair in pairs] for name, pairs in splits.items()
        }
        return sealed(json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode())

    if cache is None:
        content = make()
    else:
        key = hashlib.sha256(f"{CODE} {seed} {list(sizes.items())}".encode()).hexdigest()
        content = make_once(cache / "grammar" / key[:16], make, whole, WAIT)
    return _parsed(content)


@functools.lru_cache(maxsize=1)  # a worker makes many runs of one text, and each of them holds it anyway
def _parsed(content: bytes) -> Mapping[str, Sequence[Kept]]:
    """By its bytes, so that a file made anew is read anew; nothing in it can be changed."""
    return MappingProxyType(
        {
            name: tuple((src, tgt, tuple((i, j) for i, j in alignment)) for src, tgt, alignment in pairs)
            for name, pairs in json.loads(content[SEAL:]).items()
        }
    )

"""The ids of a corpus, encoded by the first run and mapped into memory by all that follow."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import sentencepiece

from attnlab.data.batching import Encoded, encode
from attnlab.data.cache import SEAL, make_once, sealed, whole
from attnlab.data.corpus import Corpus
from attnlab.data.tokenizer import Tokenizer

WAIT = 600.0  # seconds for another process that encodes the same text


def _read_code() -> str:
    """Digest of what turns text into ids and of how they are kept."""
    here = Path(__file__).parent
    state = hashlib.sha256(sentencepiece.__version__.encode())
    for name in ("batching.py", "cache.py", "kept_ids.py", "tokenizer.py"):
        state.update((here / name).read_bytes())
    return state.hexdigest()


CODE = _read_code()  # at import, as the code itself: an edit makes other ids and does not find the old ones


def kept_ids(corpus: Corpus, tokenizer: Tokenizer, cache: Path) -> dict[str, Encoded]:
    """Encoded train, dev and test by name: views into one file under `cache`.

    The file holds, after its seal, int32: the length of each sentence, then all ids, both in the order of the
    splits, each with its source side before its target side.
    """
    splits = (corpus.train, corpus.dev, corpus.test)
    key = hashlib.sha256(f"{corpus.digest} {tokenizer.digest} {CODE}".encode()).hexdigest()
    path = cache / "ids" / key[:16]

    def make() -> bytes:
        encoded = [encode(split, tokenizer) for split in splits]
        sentences = [ids for pairs in encoded for side in (pairs.src, pairs.tgt) for ids in side]
        lengths = np.array([len(ids) for ids in sentences], np.int32)
        return sealed(np.concatenate([lengths, *sentences]).tobytes())

    content = make_once(path, make, whole, WAIT)
    try:
        numbers: np.ndarray = np.memmap(path, np.int32, "r", offset=SEAL)
    except OSError:  # the cache cannot be written: this process has its own
        numbers = np.frombuffer(content, np.int32, offset=SEAL)
    count = 2 * sum(map(len, splits))
    ends = np.cumsum(numbers[:count])
    sentences = iter(np.split(np.asarray(numbers[count:]), ends[:-1]))
    encoded = {}
    for split in splits:
        src, tgt = ([next(sentences) for _ in range(len(split))] for _ in range(2))
        encoded[split.name] = Encoded(src, tgt)
    return encoded

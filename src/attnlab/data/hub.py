"""Parallel text from the Hugging Face Hub, through `datasets`, at a fixed commit.

What can be read: data sets of plain files (parquet, JSON lines, ...) with a `translation` column, as wmt14 and the
OPUS sets have, or with one column per language code, as Multi30k has. No code from the Hub is run.

Rows are streamed, so a subset of a large set (data.train_pairs) is read without the rest; it is the first rows of the
split either way. What was read is kept under $HF_HOME/attnlab, by commit, and read from there next time: no network,
no lock, no check with the Hub, and the pinned commit is honoured offline (the cache of `datasets` itself then takes
the latest that it has). A revision that is a branch is looked up once and the commit kept beside it; remove
$HF_HOME/attnlab to follow the branch. Data that changed under an unchanged config shows in `Corpus.digest`.

A split named for two purposes (train-only sets: opus_books) is dealt out: the pairs with the smallest sha256 are the
test set, the next the dev set, the rest the training set, in file order. Neither order nor machine has a part in it.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import itertools
import json
import os
import re
import socket
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from attnlab.config import DataConfig
from attnlab.data.cache import make_once
from attnlab.data.files import CONTROL, MENDED, Pairs, one_line
from attnlab.errors import UserError

Rows = list[tuple[str, str]]  # source, target
COMMIT = re.compile(r"[0-9a-f]{40}")
REACH_SECONDS = 1.5  # to open a connection; an unreachable Hub is told within 2 seconds
ANSWER_SECONDS = 10.0  # from a Hub that was reached
LOCK_SECONDS = 1800.0
KEPT_ROWS = 50_000  # a smaller subset reads so many all the same, so that other sizes work offline later


def read_hub(config: DataConfig) -> tuple[dict[str, Pairs], str]:
    """The pairs of train, dev and test, and the commit they are from. Raises UserError where that cannot be done."""
    if config.repository is None:
        raise UserError("data.repository is not set; name a data set of the Hub, e.g. Helsinki-NLP/opus-100.")
    if config.revision is None:
        raise UserError(
            "data.revision is not set; give a commit of the data set, 40 hex digits, or a branch: main."
        )
    hub = _Hub(config)
    commit = hub.commit(config.revision)
    roles = {"train": config.train, "dev": config.dev, "test": config.test}
    sizes = {"test": config.test_pairs, "dev": config.dev_pairs}
    rows: dict[str, Rows] = {}
    for split in sorted(set(roles.values())):
        sharing = [role for role in roles if roles[role] == split]
        if len(sharing) > 1:
            taken = {role: sizes[role] for role in sizes if role in sharing}
            dealt = _deal(hub.rows(split, None, commit), taken)
            rows |= {role: dealt[role] for role in sharing}
        else:
            limit = config.train_pairs if sharing == ["train"] else None
            rows[sharing[0]] = hub.rows(split, limit, commit)
    return {role: _pairs(rows[role]) for role in roles}, commit


class _Hub:
    """One data set of the Hub and the copy of it that is kept here. `datasets` is imported on the first miss."""

    def __init__(self, config: DataConfig) -> None:
        assert config.repository is not None
        self.repository, self.subset = config.repository, config.subset
        self.src, self.tgt = config.src, config.tgt
        user_cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        home = os.environ.get("HF_HOME") or f"{user_cache}/huggingface"
        self.cache = Path(home).expanduser() / "attnlab" / self.repository.replace("/", "--")

    def commit(self, revision: str) -> str:
        if COMMIT.fullmatch(revision):
            return revision
        kept = self.cache / "refs" / revision.replace("/", "--")
        found = make_once(kept, lambda: self._resolve(revision).encode(), _is_commit, LOCK_SECONDS)
        return found.decode()

    def rows(self, split: str, limit: int | None, commit: str) -> Rows:
        """The first `limit` pairs of the split (None: all of them), in its order."""
        first, second = sorted((self.src, self.tgt))
        name = f"{split}.{first}-{second}.jsonl.gz"
        path = self.cache / commit / (self.subset or "default") / name
        content = make_once(
            path, lambda: self._fetch(split, limit, commit), lambda kept: _holds(kept, limit), LOCK_SECONDS
        )
        _, *lines = gzip.decompress(content).decode("utf-8").split("\n")[:-1]
        rows = [json.loads(line) for line in lines[:limit]]
        return [(a, b) if self.src == first else (b, a) for a, b in rows]

    def _fetch(self, split: str, limit: int | None, commit: str) -> bytes:
        """The split as gzipped JSON lines: first {"complete": ...}, then a pair a line, languages in sorted order."""
        self._resolve(commit)
        most = None if limit is None else max(limit, KEPT_ROWS)
        first, second = sorted((self.src, self.tgt))
        with self._one_sentence():
            import datasets

            stream = datasets.load_dataset(
                self.repository, self.subset, split=split, revision=commit, streaming=True
            )
            rows = list(itertools.islice(self._texts(stream, first, second), most))
        header = {"complete": most is None or len(rows) < most}
        lines = [json.dumps(line, ensure_ascii=False) for line in (header, *rows)]
        return gzip.compress("".join(line + "\n" for line in lines).encode("utf-8"), mtime=0)

    def _texts(self, stream: Any, first: str, second: str) -> Iterator[tuple[str, str]]:
        for row in stream:
            texts = row.get("translation", row)
            if first not in texts or second not in texts:
                raise UserError(
                    f"data.repository={self.repository} has no texts in {first} and {second}; its languages or "
                    f"columns are {', '.join(texts)}."
                )
            pair = texts[first] or "", texts[second] or ""  # a null is a blank side, counted as such later
            if not all(isinstance(text, str) for text in pair):
                raise UserError(
                    f"data.repository={self.repository}: {first} or {second} holds no text in each row."
                )
            yield pair

    def _resolve(self, revision: str) -> str:
        """The commit behind a revision, after making sure, fast, that there is a Hub to ask."""
        if any(os.environ.get(name, "").upper() in ("1", "ON", "YES", "TRUE") for name in _OFFLINE):
            raise self._unreachable("HF_HUB_OFFLINE is set")
        endpoint = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
        if not reaches(endpoint, REACH_SECONDS):
            raise self._unreachable(f"{endpoint} does not answer")
        with self._one_sentence():
            from huggingface_hub import HfApi

            return str(HfApi().dataset_info(self.repository, revision=revision, timeout=ANSWER_SECONDS).sha)

    @contextlib.contextmanager
    def _one_sentence(self) -> Iterator[None]:
        """Whatever a client that works over a network raises, the user gets one sentence."""
        try:
            yield
        except UserError:
            raise
        except Exception as error:
            raise self._sentence(error) from error

    def _unreachable(self, reason: str) -> UserError:
        return UserError(
            f"data.repository={self.repository} cannot be fetched ({reason}) and {self.cache} holds no copy of this "
            "part of it; run the same command once with the Hub in reach, which keeps one there, or use files that "
            "you have: data=files data.dir=<folder>."
        )

    def _sentence(self, error: Exception) -> UserError:
        name, said = type(error).__name__, " ".join(str(error).split())
        if isinstance(error, ImportError):
            return UserError(
                "data.source=hub needs `datasets`: pip install 'attnlab[hub]', or use data=files."
            )
        if "scripts are no longer supported" in said:
            return UserError(
                f"data.repository={self.repository} is a loading script, and scripts are not run; take a set of plain "
                "files, or try its converted copy with data.revision=refs/convert/parquet."
            )
        if name in ("RepositoryNotFoundError", "GatedRepoError"):
            return UserError(f"data.repository={self.repository} is not on the Hub, or not open to you.")
        if name == "RevisionNotFoundError":
            return UserError(f"data.revision is no revision of data.repository={self.repository}.")
        if name == "ValueError" and "Bad split" in said:
            return UserError(f"data.train, data.dev, data.test name splits of {self.repository}: {said}")
        if name == "ValueError" and ("Config name is missing" in said or "BuilderConfig" in said):
            return UserError(f"data.subset={self.subset} is no subset of {self.repository}: {said}")
        if isinstance(error, OSError) and error.errno in _NOT_OURS:
            return UserError(f"HF_HOME cannot be written ({said}); point HF_HOME to a folder of yours.")
        return self._unreachable(f"{name}: {said[:200]}")


_OFFLINE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")
_NOT_OURS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR)


def reaches(url: str, seconds: float) -> bool:
    """Whether a connection to the host of `url`, or to the proxy in its way, opens within `seconds`.

    In a thread of its own, since looking up a name has no time limit that could be set. The client of the Hub would
    find out by itself, after 23 seconds of trying again.
    """
    parts = urlsplit(url)
    proxies = urllib.request.getproxies()
    if parts.scheme in proxies and not urllib.request.proxy_bypass(parts.hostname or ""):
        proxy = proxies[parts.scheme]
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    address = (parts.hostname, parts.port or (443 if parts.scheme == "https" else 80))
    opened = threading.Event()

    def open_and_close() -> None:
        try:
            socket.create_connection(address, timeout=seconds).close()
        except OSError:
            return
        opened.set()

    thread = threading.Thread(target=open_and_close, daemon=True)
    thread.start()
    thread.join(seconds)
    return opened.is_set()


def _is_commit(content: bytes) -> bool:
    return COMMIT.fullmatch(content.decode("ascii", "replace")) is not None


def _holds(content: bytes, limit: int | None) -> bool:
    """Whether a kept copy has the first `limit` rows; False for a damaged one, which is then fetched again."""
    try:
        header, *lines = gzip.decompress(content).decode("utf-8").split("\n")[:-1]
    except (OSError, EOFError, ValueError):
        return False
    return json.loads(header)["complete"] or (limit is not None and limit <= len(lines))


def _deal(rows: Rows, taken: dict[str, int | None]) -> dict[str, Rows]:
    """Deals one split out to test and dev (`taken`: how many pairs each), the rest to train, by sha256 of the pair.

    A pair with a blank side is never dealt to test or dev, nor the same pair twice.
    """
    for role, count in taken.items():
        if count is None:
            raise UserError(
                f"data.{role} shares its split with another, so data.{role}_pairs must be a number."
            )
    first_seen = {row: i for i, row in reversed(list(enumerate(rows))) if row[0].strip() and row[1].strip()}
    drawn = iter(sorted(first_seen, key=lambda row: hashlib.sha256(json.dumps(row).encode()).digest()))
    dealt: dict[str, Rows] = {}
    held_out: set[int] = set()
    for role, count in taken.items():
        indices = sorted(first_seen[row] for row in itertools.islice(drawn, count))
        held_out.update(indices)
        dealt[role] = [rows[i] for i in indices]
    dealt["train"] = [row for i, row in enumerate(rows) if i not in held_out]
    return dealt


def _pairs(rows: Rows) -> Pairs:
    counts = dict.fromkeys(MENDED, 0)
    src = [one_line(row[0], counts) for row in rows]
    tgt = [one_line(row[1], counts) for row in rows]
    counts["control_characters"] = sum(1 for line in (*src, *tgt) if CONTROL.search(line))
    return Pairs(src, tgt, counts)

"""One file made once by whichever of several processes comes first, and read by all."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock

log = logging.getLogger(__name__)
SEAL = hashlib.sha256().digest_size  # bytes before a sealed content


def make_once(
    path: Path, make: Callable[[], bytes], accept: Callable[[bytes], bool], timeout: float
) -> bytes:
    """The bytes at `path`, made by `make()` and kept there if no acceptable file is there yet.

    A file that is there is read without a lock, so a shared read-only cache works. Otherwise one process makes it
    while the others wait, `timeout` seconds at most; past that, or where the folder cannot be written, a process
    makes its own copy and goes on, with one warning. Readers never see half a file: it appears by a rename.
    """
    content = _read(path, accept)
    if content is not None:
        return content
    with _locked(path, timeout):
        content = _read(path, accept)  # somebody made it while we waited
        if content is not None:
            return content
        content = make()
        try:
            _remove_unfinished(path)
            _replace(path, content)
        except OSError as error:
            log.warning("%s cannot be kept (%s); this run goes on without the cache", path, error)
        return content


def _read(path: Path, accept: Callable[[bytes], bool]) -> bytes | None:
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return content if accept(content) else None


@contextlib.contextmanager
def _locked(path: Path, timeout: float) -> Iterator[None]:
    lock = FileLock(f"{path}.lock", timeout=timeout)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except OSError as error:  # filelock's Timeout is one too
        log.warning("%s cannot be locked (%s); this run does not wait for it", path, error)
        yield
        return
    try:
        yield
    finally:
        lock.release()


def _remove_unfinished(path: Path) -> None:
    """What a kill in the midst of `_replace` left; this process makes the file now, so nobody else does."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*"):
        left.unlink(missing_ok=True)


def _replace(path: Path, content: bytes) -> None:
    """Writes `path` in one step: a reader sees the old file or the new one."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    new = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.chmod(0o644)  # mkstemp's 0600 would lock the others of a shared cache out
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def sealed(content: bytes) -> bytes:
    """`content` behind its own sha256, so that a damaged file is made again and never read."""
    return hashlib.sha256(content).digest() + content


def whole(kept: bytes) -> bool:
    """Whether `kept` is as it was sealed."""
    return kept[:SEAL] == hashlib.sha256(memoryview(kept)[SEAL:]).digest()

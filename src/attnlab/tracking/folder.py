"""The run folder: the truth about a run. Tables and reports read it and nothing else.

In <output>/runs/<run id>/ lie:
- config.yaml: the resolved configuration
- status.json: state, alarms, final numbers (status.py)
- provenance.json: commit, versions, digests, device, command (provenance.py)
- metrics.jsonl: one object a record, each with its step (records.py)
- media.jsonl: pictures (PNG files below images/), tables and histograms, one object each (media.py)
- tokenizer.model: the SentencePiece vocabulary
- attention.json.gz: every head's attention map of one dev sentence (attention.py)
- translations/: one text file a test set and protocol, one line a sentence
- checkpoint.pt: written by training/checkpoint.py

Beside it, <output>/runs/.<run id>.lock is held while a process works on the run.
"""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from omegaconf import OmegaConf

from attnlab.config import Config
from attnlab.errors import UserError
from attnlab.identity import plain, run_id
from attnlab.terminal import one_line
from attnlab.tracking.files import dump_json, remove_unfinished, require_writable, write_atomic, writing
from attnlab.tracking.media import (
    Cell,
    Histogram,
    Images,
    Media,
    Table,
    from_record,
    make_histogram,
    make_table,
    save_images,
    to_record,
)
from attnlab.tracking.records import RecordFile, read_metrics, read_records
from attnlab.tracking.status import State, Status

_ASIDE = ".aside-"
_LOCK_WAIT = 0.1  # seconds: outlasts `state`, which takes the lock for a moment to see whether it is free


def folder_of(config: Config) -> RunFolder:
    """Where the run of this config lies, whether it exists or not."""
    return RunFolder(Path(config.output) / "runs" / run_id(config))


class RunBusy(UserError):
    """Another process works on this run."""


class RunFolder:
    """One run's files. Creating the object touches nothing; `locked` and `create` come before the first write."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path).absolute()
        self.metrics = RecordFile(self.path / "metrics.jsonl")
        self.media = RecordFile(self.path / "media.jsonl")
        self._lock = FileLock(self.path.with_name(f".{self.path.name}.lock"))

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint.pt"

    @contextmanager
    def locked(self) -> Iterator[RunFolder]:
        """Hold the run for this process. Raises RunBusy, naming the holder, at once instead of waiting.

        The lock is the kernel's, so that of a dead process is free; and it lies beside the folder, not in it, so that
        it stays ours while `set_aside` moves the folder away.
        """
        require_writable(self.path.parent)
        lock_file = Path(self._lock.lock_file)
        holder = lock_file.read_text(encoding="utf-8") if lock_file.exists() else ""
        try:
            self._lock.acquire(timeout=_LOCK_WAIT, poll_interval=0.01)
        except Timeout:
            raise RunBusy(
                f"run {self.path.name} is being worked on by {holder or 'another process'}; wait for it or stop it"
            ) from None
        try:
            with writing(lock_file):
                lock_file.write_text(f"process {os.getpid()} on {platform.node()}", encoding="utf-8")
            yield self
        finally:
            self.metrics.close()
            self.media.close()
            self._lock.release()

    def create(self) -> None:
        """Make the folder, without what a kill left half-written in it. Raises CannotWrite naming the path."""
        require_writable(self.path)
        remove_unfinished(self.path)

    def remove_if_empty(self) -> None:
        """A run that could not start leaves no folder behind."""
        with suppress(OSError):
            self.path.rmdir()

    def sync(self) -> None:
        """Return once all that was logged is on the disk; comes before a checkpoint, which stands for all of it."""
        self.metrics.sync()
        self.media.sync()

    def set_aside(self) -> Path:
        """Move the folder out of the way, keeping all of it, as `<run id>.aside-<n>`. Only under the lock."""
        if not self._lock.is_locked:
            raise ValueError("set_aside needs the lock: another process may be writing into the folder")
        self.metrics.close()
        self.media.close()
        target = self.path.with_name(f"{self.path.name}{_ASIDE}{self.attempt + 1}")
        self.path.rename(target)
        return target

    @property
    def attempt(self) -> int:
        """How many earlier folders of this run were set aside."""
        pattern = re.compile(re.escape(self.path.name + _ASIDE) + r"(\d+)")
        beside = self.path.parent.iterdir() if self.path.parent.is_dir() else []
        return max((int(found[1]) for path in beside if (found := pattern.fullmatch(path.name))), default=0)

    def save_config(self, config: Config) -> None:
        write_atomic(self.path / "config.yaml", OmegaConf.to_yaml(OmegaConf.create(plain(config))))

    def save_tokenizer(self, model: bytes) -> None:
        """Keep the vocabulary beside the weights: a run folder copied elsewhere can still translate."""
        write_atomic(self.path / "tokenizer.model", model)

    def save_provenance(self, provenance: dict[str, Any]) -> None:
        """Write provenance.json; those of earlier sessions of a resumed run stay in it under `earlier`."""
        path = self.path / "provenance.json"
        earlier: list[dict[str, Any]] = []
        if path.exists():
            previous = json.loads(path.read_text(encoding="utf-8"))
            earlier = [*previous.pop("earlier"), previous]
        write_atomic(path, dump_json({**provenance, "earlier": earlier}, indent=2) + "\n")

    def note_provenance(self, **facts: Any) -> None:
        """Add what is known only later, such as the signatures of the scores, to the present session's provenance."""
        provenance = self.read_provenance()
        if provenance is None:
            raise ValueError("note_provenance comes after save_provenance")
        write_atomic(self.path / "provenance.json", dump_json(provenance | facts, indent=2) + "\n")

    def read_provenance(self) -> dict[str, Any] | None:
        path = self.path / "provenance.json"
        if not path.exists():
            return None
        with _whole(path):
            return dict(json.loads(path.read_text(encoding="utf-8")))

    def save_status(self, status: Status) -> None:
        write_atomic(self.path / "status.json", status.to_json())

    def read_status(self) -> Status | None:
        """What was last written, or None for a run that never started. See `state` for a run that was killed."""
        path = self.path / "status.json"
        if not path.exists():
            return None
        with _whole(path):
            return Status.from_json(path.read_text(encoding="utf-8"))

    def state(self) -> State | None:
        """The state as it is now: a run that says `running` while nobody holds its lock was killed."""
        status = self.read_status()
        if status is None:
            return None
        if status.state is State.running and not self._held_by_someone():
            return State.interrupted
        return status.state

    def read_metrics(self) -> list[dict[str, float]]:
        return read_metrics(self.metrics.path)

    def add_images(self, step: int, name: str, items: list[tuple[str, np.ndarray]]) -> Images:
        """Store (caption, [h,w] in [0,1]) pictures; see media.save_images for what is refused."""
        images = save_images(self.path, step, name, items)
        self.media.append(to_record(images, self.path))
        return images

    def add_table(self, step: int, name: str, columns: list[str], rows: list[list[Cell]]) -> Table:
        table = make_table(step, name, columns, rows)
        self.media.append(to_record(table, self.path))
        return table

    def add_histogram(self, step: int, name: str, low: float, high: float, counts: list[int]) -> Histogram:
        histogram = make_histogram(step, name, low, high, counts)
        self.media.append(to_record(histogram, self.path))
        return histogram

    def read_media(self) -> list[Media]:
        return [from_record(record, self.path) for record in read_records(self.media.path)]

    def rewind(self, step: int) -> None:
        """Drop all that was logged after `step`, the checkpoint's; a negative step drops everything."""
        self.metrics.rewind(step)
        later = [item for item in self.read_media() if item.step > step]
        self.media.rewind(step)
        for item in later:
            if isinstance(item, Images):
                for _, path in item.items:
                    path.unlink(missing_ok=True)

    def forget(self, prefix: str) -> None:
        """Drop all records of metrics and media whose names start with `prefix`: a scoring that was cut off."""
        self.metrics.drop(lambda record: any(name.startswith(prefix) for name in record))
        self.media.drop(lambda record: record["name"].startswith(prefix))

    def save_translations(self, name: str, lines: list[str]) -> Path:
        """Write translations/<name>.txt, line i for sentence i. Raises ValueError for a text with a line break."""
        for index, line in enumerate(lines):
            if "\n" in line or "\r" in line:
                raise ValueError(f"{name}: translation {index} has a line break: {line!r}")
        path = self.path / "translations" / f"{name}.txt"
        with writing(path):
            path.parent.mkdir(exist_ok=True)
        write_atomic(path, "".join(line + "\n" for line in lines))
        return path

    def read_translations(self, name: str) -> list[str]:
        text = (self.path / "translations" / f"{name}.txt").read_bytes().decode("utf-8")
        return text.split("\n")[:-1]  # not splitlines(), which also breaks at U+2028 and others

    def _held_by_someone(self) -> bool:
        if self._lock.is_locked:
            return True
        lock_file = Path(self._lock.lock_file)
        if not lock_file.exists():
            return False
        try:
            with FileLock(lock_file).acquire(timeout=0):
                return False
        except OSError:  # filelock's Timeout is one; where the lock may not be opened the status is believed
            return True


@contextmanager
def _whole(path: Path) -> Iterator[None]:
    """Raises UserError naming `path` for a file that was cut, edited or damaged."""
    try:
        yield
    except (ValueError, TypeError, RecursionError) as error:
        raise UserError(
            f"{path}: got a damaged file ({one_line(str(error))[:120]}), allowed: as the run wrote it, or the run made "
            "again after its folder is moved away"
        ) from error

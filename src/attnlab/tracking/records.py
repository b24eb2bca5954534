"""A JSON Lines file of one object a record, each with its `step`: what metrics.jsonl and media.jsonl are.

The file is only ever appended to, and each record is flushed, so a killed run keeps all that it logged; at most the
line being written is torn, and a torn line is dropped. A resumed run first rewinds the file to its checkpoint.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from typing import Any

from attnlab.errors import UserError
from attnlab.tracking.files import dump_json, number, write_atomic, writing


class RecordFile:
    """Appends to one JSON Lines file; nothing is created on disk before the first `append`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: FileIO | None = None

    def append(self, record: dict[str, Any]) -> None:
        """Add one record, in the operating system's hands on return (a kill -9 cannot take it back).

        Raises CannotWrite, with at most a torn line at the end.
        """
        line = memoryview(dump_json(record).encode("utf-8") + b"\n")
        with writing(self.path):
            if self._file is None:
                self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115  stays open between records
            while line:  # a disk that is nearly full takes a part, and says so at the next call
                line = line[self._file.write(line) :]

    def sync(self) -> None:
        """Return once the records are on the disk: a checkpoint must not outlive, in a power cut, what came before it."""
        if self._file is not None:
            with writing(self.path):
                os.fsync(self._file.fileno())

    def rewind(self, step: int) -> list[dict[str, Any]]:
        """Drop the records after `step`, and a torn last line. Returns what was kept.

        Training goes on from a checkpoint that is older than the last record, and logs those steps again: without
        this each of them would stand twice.
        """
        return self.drop(lambda record: record["step"] > step)

    def drop(self, unwanted: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
        """Rewrite the file without the records that are `unwanted` and without a torn last line; returns the rest."""
        self.close()
        kept = [record for record in read_records(self.path) if not unwanted(record)]
        if self.path.exists():
            write_atomic(self.path, "".join(dump_json(record) + "\n" for record in kept))
        return kept

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def read_records(path: Path) -> list[dict[str, Any]]:
    """All whole records of a JSON Lines file, as written; empty when there is no file.

    A last line without its newline was torn by a kill and is left out. Raises UserError, naming the line, for
    anything else that is not an object with a step: the file was edited or damaged, and nobody knows what it held.
    """
    if not path.exists():
        return []
    whole, _, _torn = path.read_bytes().rpartition(b"\n")
    records = []
    for index, line in enumerate(whole.split(b"\n") if whole else [], start=1):
        try:
            record = json.loads(line)
            record["step"] = int(record["step"])
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise _damaged(path, index, line[:40]) from error
        records.append(record)
    return records


def read_metrics(path: Path) -> list[dict[str, float]]:
    """The records of a metrics.jsonl, in order: `{"step": 100, "dev/nll": 3.2, ...}`.

    NaN and the infinities, which stand in the file as strings, come back as floats. A step may have several records
    with different names (training and evaluation log apart). Raises UserError for a damaged line.
    """
    numbers = []
    for index, record in enumerate(read_records(path), start=1):
        try:
            numbers.append(
                {name: float(number(value)) if name != "step" else value for name, value in record.items()}
            )
        except (ValueError, TypeError, OverflowError) as error:
            raise _damaged(path, index, str(record)[:40]) from error
    return numbers


def _damaged(path: Path, line: int, got: bytes | str) -> UserError:
    return UserError(
        f"{path}, line {line}: got {got!r}, which is damaged, allowed: an object with a step; the run's command with "
        "force=true trains afresh and keeps this folder aside"
    )

"""The records that W&B keeps on this machine: one folder below <output>/wandb for each time that a run was opened.

W&B uploads the records of one run id one after the other and takes all their points, so a step that stands in two
records stands twice on the server. Here each step of a run stands in one record only.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from attnlab.tracking.wandb_reader import read_wandb, whole_length

# W&B's folder names: [offline-]run-<date>_<time>-<run id>, and -1, -2, ... for those opened in one second.
_NAME = re.compile(r"(offline-)?run-\d{8}_\d{6}-(?P<id>.+?)(-\d+)?")


def own_id(run_id: str, attempt: int) -> str:
    """A run's id in W&B, unless an agent gave it another one.

    A run that was started afresh (force=true) is another run to W&B; its old record stays with its old id.
    """
    return run_id if attempt == 0 else f"{run_id}_{attempt}"


def find_records(output: Path, wandb_id: str | None = None) -> list[Path]:
    """The record folders below `output`, oldest first; those of one run if an id is given."""
    found = []
    for folder in (output / "wandb").iterdir() if (output / "wandb").is_dir() else []:
        match = _NAME.fullmatch(folder.name)
        if match and wandb_id in (None, match["id"]):
            found.append(folder)
    return sorted(found, key=lambda folder: folder.name.removeprefix("offline-"))


def wandb_id_of(record: Path) -> str:
    """The run's id in W&B, from the name of one of its records."""
    match = _NAME.fullmatch(record.name)
    if match is None:
        raise ValueError(f"not a record of W&B: {record}")
    return match["id"]


def is_offline(record: Path) -> bool:
    return record.name.startswith("offline-")


def is_uploaded(record: Path) -> bool:
    """Whether `wandb sync` has uploaded all of it: the marker that it leaves is not older than the record."""
    files = list(record.glob("*.wandb"))
    markers = [file.with_name(file.name + ".synced") for file in files]
    return bool(files) and all(
        marker.exists() and marker.stat().st_mtime >= file.stat().st_mtime
        for file, marker in zip(files, markers, strict=True)
    )


def cut_torn_end(record: Path) -> None:
    """Take away the part of a record that a kill left at the end of the file, which nothing can read.

    W&B uploads such a file up to there, but never takes it for uploaded, and sends all of it again each time.
    """
    for file in record.glob("*.wandb"):
        data = file.read_bytes()
        if (length := whole_length(data)) < len(data):
            os.truncate(file, length)


def retire(output: Path, wandb_id: str) -> None:
    """Move the run's offline records that were never uploaded out of reach of `sync`.

    The record that is about to be made repeats what they hold.
    """
    attic = output / ".wandb-data" / "superseded"
    for record in find_records(output, wandb_id):
        if is_offline(record) and not is_uploaded(record):
            attic.mkdir(exist_ok=True)
            target = attic / record.name
            while target.exists():
                target = target.with_name(target.name + "+")
            record.rename(target)


def next_step(output: Path, wandb_id: str) -> int:
    """The first step that no record of the run holds, after `retire`: those left were sent to the server."""
    steps = [row["_step"] for record in find_records(output, wandb_id) for row in read_wandb(record).history]
    return max(steps, default=-1) + 1

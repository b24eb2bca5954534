"""`attnlab sync` uploads the runs that were recorded offline; `attnlab dashboard` shows all runs in the terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from attnlab.errors import UserError
from attnlab.tracking.folder import RunFolder
from attnlab.tracking.status import State
from attnlab.tracking.wandb_records import find_records, is_offline, is_uploaded, wandb_id_of
from attnlab.tracking.wandb_setup import import_wandb, wandb_environment


def unsynced(output: Path) -> list[Path]:
    """The offline records below `output` that no sync has uploaded yet, oldest first.

    Without those of runs that go on now: W&B would upload what they have so far, and later all of it again.
    """
    return [
        record
        for record in find_records(output)
        if is_offline(record) and not is_uploaded(record) and not _is_running(output, record)
    ]


def sync(output: Path, *, dry_run: bool) -> list[Path]:
    """Upload the offline runs of `output`, W&B telling on the terminal how it goes; returns their records.

    With `dry_run` they are only listed.
    Raises UserError when wandb is missing, there is no API key, or a run could not be uploaded.
    """
    output = output.absolute()
    records = unsynced(output)
    if dry_run or not records:
        print("\n".join(f"would upload {record}" for record in records) or f"nothing to upload in {output}")
        return records
    with wandb_environment(output):
        wandb = import_wandb()
        if not wandb.login(prompt=False, verify=False):
            raise UserError("sync: W&B has no API key; set WANDB_API_KEY or run `wandb login`")
        # stdin is closed: W&B must not ask anything.
        subprocess.run(
            [sys.executable, "-m", "wandb", "sync", "--include-synced", *map(str, records)],
            stdin=subprocess.DEVNULL,
            check=False,
        )
    left = set(unsynced(output)) & set(records)
    if left:
        raise UserError(
            f"sync: {len(left)} of {len(records)} runs were not uploaded, such as {sorted(left)[0]}; "
            "check the network and WANDB_BASE_URL, then run it again"
        )
    return records


def dashboard(output: Path) -> None:
    """Replace this process by W&B's terminal dashboard over all runs of `output`. Does not return."""
    folder = output.absolute() / "wandb"
    if not folder.is_dir():
        raise UserError(f"dashboard: {folder} does not exist; run something with track=wandb first")
    import_wandb()
    with wandb_environment(output.absolute()):
        os.execvpe(sys.executable, [sys.executable, "-m", "wandb", "leet", str(folder)], dict(os.environ))


def _is_running(output: Path, record: Path) -> bool:
    run_id = wandb_id_of(record).partition("_")[0]  # "_1" marks a run that was started afresh
    return RunFolder(output / "runs" / run_id).state() is State.running

"""`attnlab sync` uploads the runs that were recorded offline; `attnlab dashboard` shows all runs in the terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from attnlab.errors import UserError
from attnlab.terminal import show
from attnlab.tracking.folder import RunFolder
from attnlab.tracking.status import State
from attnlab.tracking.wandb_reader import read_wandb
from attnlab.tracking.wandb_records import cut_torn_end, find_records, is_offline, is_uploaded, wandb_id_of
from attnlab.tracking.wandb_setup import import_wandb, require_answer, wandb_environment


def unsynced(output: Path) -> list[Path]:
    """The offline records below `output` that no sync has uploaded yet, oldest first.

    Without those of runs that go on now, since W&B would upload what they have so far, and later all of it again; and
    without those of runs that were killed before W&B had written anything.
    """
    waiting = [record for record in find_records(output) if is_offline(record) and not is_uploaded(record)]
    return [record for record in waiting if not _is_running(output, record) and not _is_empty(record)]


def sync(output: Path, *, dry_run: bool) -> list[Path]:
    """Upload the offline runs of `output`, W&B telling on the terminal how it goes; returns their records.

    What was uploaded is marked, so the same call again uploads the rest. With `dry_run` they are only listed.
    Raises UserError when wandb is missing, there is no API key or no answer; and, once all others are uploaded, for
    runs that could not be.
    """
    output = output.absolute()
    if not output.is_dir():
        raise UserError(
            f"--output: got '{output}', which is no folder, allowed: that which runs were written to"
        )
    records = unsynced(output)
    if dry_run or not records:
        show("\n".join(f"would upload {record}" for record in records) or f"nothing to upload in {output}")
        return records
    with wandb_environment(output):
        wandb = import_wandb()
        if not wandb.login(prompt=False, verify=False):
            raise UserError("sync: W&B has no API key; set WANDB_API_KEY or run `wandb login`")
        require_answer("sync", wandb.setup().settings.base_url)
        damage = {record: reason for record in records if (reason := _damage(record)) is not None}
        # W&B would upload none of them where one cannot be read, and of one that is damaged the same part each time.
        whole = [record for record in records if record not in damage]
        for record in whole:
            cut_torn_end(record)
        _upload(whole)
    left = [
        f"{record} ({damage.get(record, 'W&B says why above')})"
        for record in records
        if not is_uploaded(record)
    ]
    if left:
        raise UserError(
            f"sync: {len(left)} of {len(records)} runs were not uploaded: {', '.join(left)}; their run folders are whole, "
            "and the same command tries them again"
        )
    return records


def _upload(records: list[Path]) -> None:
    if records:
        subprocess.run(
            [sys.executable, "-m", "wandb", "sync", "--include-synced", *map(str, records)],
            env={**os.environ, "WANDB_SILENT": "false"},
            stdin=subprocess.DEVNULL,  # it must not ask anything
            check=False,
        )


def _damage(record: Path) -> str | None:
    """Why a record cannot be read, or None."""
    try:
        read_wandb(record)
    except ValueError as error:
        return str(error)
    return None


def _is_empty(record: Path) -> bool:
    return _damage(record) is None and not read_wandb(record).run_id


def dashboard(output: Path) -> None:
    """Replace this process by W&B's terminal dashboard over all runs of `output`. Does not return."""
    folder = output.absolute() / "wandb"
    if not folder.is_dir():
        raise UserError(f"dashboard: {folder} does not exist; run something with track=wandb first")
    import_wandb()
    with wandb_environment(output.absolute()):
        os.execvpe(sys.executable, [sys.executable, "-m", "wandb", "leet", str(folder)], dict(os.environ))


def _is_running(output: Path, record: Path) -> bool:
    folder = _folder(output, wandb_id_of(record))
    if not folder.path.exists() and _damage(record) is None:  # an agent of a sweep chose W&B's id
        folder = _folder(output, str(read_wandb(record).config.get("run_id")))
    return folder.state() is State.running


def _folder(output: Path, own_id: str) -> RunFolder:
    return RunFolder(output / "runs" / own_id.partition("_")[0])  # "_1" marks a run that was started afresh

"""The command `attnlab`, with one place in it that stalls so that a test can kill it just there.

`python stalling.py run ...` is `attnlab run ...`. The environment variable STALL holds, as JSON, which place, at its
how many-th passage, and the file that appears when it is reached; the place is left when `<file>.go` is there. Workers
are processes that import this file anew, which is how they stall too. The product knows nothing of it.
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Functions, at whose start it stalls.
CALLS = {
    "inside a step": "attnlab.training.loop:Trainer.backward",
    "inside a probe": "attnlab.run:probe",
    "inside an evaluation": "attnlab.run:dev_metrics",
    "while scoring": "attnlab.run:decode",
    "while W&B finishes": "attnlab.tracking.wandb_mirror:WandbMirror.finish",
}
# Files that are half-written while it stalls: a part of their path before the last rename.
WRITES = {
    "while preparing data": "/cache/",
    "inside a checkpoint write": "/.checkpoint.pt.",
    "inside a status write": "/.status.json.",
    "while records are rewound": "/.metrics.jsonl.",
    "while translations are written": "/.test.",
}


def install(place: str, passage: int, marker: str) -> None:
    """Let `place` stall at its `passage`-th passage in this process, unless it already did in another one."""
    passages = itertools.count(1)

    def stall() -> bool:
        if next(passages) != passage:
            return False
        try:
            number = os.open(marker, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            return False
        os.write(number, f"{os.getpid()}\n".encode())
        os.close(number)
        return True

    def wait() -> None:
        while not Path(f"{marker}.go").exists():
            time.sleep(0.01)

    if place in CALLS:
        owner, name, function = find(CALLS[place])

        def stalled(*arguments: Any, **named: Any) -> Any:
            if stall():
                wait()
            return function(*arguments, **named)

        setattr(owner, name, stalled)
    else:
        fsync = os.fsync

        def half_written(number: int) -> None:
            path = str(Path(f"/proc/self/fd/{number}").readlink())
            if WRITES[place] in path and stall():
                whole = Path(path).read_bytes()
                os.ftruncate(number, len(whole) // 2)
                wait()
                os.pwrite(number, whole, 0)
            fsync(number)

        os.fsync = half_written


def find(place: str) -> tuple[Any, str, Callable[..., Any]]:
    """The object that holds the function `module:name.name`, the function's name, and the function."""
    module, _, names = place.partition(":")
    *owners, name = names.split(".")
    owner = importlib.import_module(module)
    for one in owners:
        owner = getattr(owner, one)
    return owner, name, getattr(owner, name)


def processes(variable: str, value: str) -> Iterator[int]:
    """Living processes, of whatever program, that were started with this variable in their environment."""
    wanted = f"{variable}={value}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (
                wanted in (folder / "environ").read_bytes().split(b"\0")
                and b"\nState:\tZ" not in (folder / "status").read_bytes()
            ):
                yield int(folder.name)
        except OSError:  # it has ended, or is another user's
            continue


if "STALL" in os.environ and (__name__ == "__mp_main__" or "launch=serial" in sys.argv):
    install(**json.loads(os.environ["STALL"]))

if __name__ == "__main__":
    from attnlab.cli import main

    sys.exit(main())

"""A sweep of seconds, commands that run it, and what must be equal once it has been disturbed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from stalling import processes

from attnlab.study import render, table
from attnlab.study.grid import expand
from attnlab.tracking.folder import RunFolder
from attnlab.tracking.status import State
from attnlab.training import checkpoint

RUN = [
    "data.train_pairs=200", "data.dev_pairs=20", "data.test_pairs=20", "data.tokenizer.vocab_size=300",
    "model.d_model=16", "model.heads=2", "model.d_ff=16", "model.encoder_layers=1", "model.decoder_layers=1",
    "train.steps=40", "train.warmup=10", "train.batch_tokens=300", "train.checkpoint_every=10", "train.average_last=2",
    "measure.log_every=2", "measure.every=10", "measure.evaluate_every=20", "measure.probe_sentences=4",
    "measure.prefix_sentences=4", "decode.max_length_factor=0", "decode.max_length_extra=6", "decode.protocols=[prefix]",
]  # fmt: skip
SWEEP = ["experiment=demo", *RUN, "attention=correct,zero_fill", "seed=1,2", "launch.workers=2"]

SEED = int(os.environ.setdefault("CHAOS_SEED", str(random.randrange(10**6))))

OWN = "ATTNLAB_CHAOS"  # of whatever a command starts, to find its processes by
NOT_COMPARED = ("wandb", ".wandb-data", "logs")  # W&B's records have the time in their names


@dataclass
class Command:
    """One `attnlab run` in a process of its own, which may stall."""

    process: subprocess.Popen[str]
    log: Path
    marker: Path

    def stalled(self, seconds: float = 120) -> int | None:
        """The process that stalls, as soon as one does; None where the command ended before."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.marker.exists() and (text := self.marker.read_text()).endswith("\n"):
                return int(text)
            if self.process.poll() is not None:
                return None
            time.sleep(0.005)
        raise AssertionError(f"neither stalled nor ended: {self.log.read_text()}")

    def go_on(self) -> None:
        self.marker.with_name(f"{self.marker.name}.go").touch()

    def end(self, seconds: float = 240) -> int:
        return self.process.wait(seconds)


def start(folder: Path, overrides: Sequence[str], place: str | None = None, passage: int = 1) -> Command:
    """`attnlab run` into <folder>/outputs, stalling at the `passage`-th passage of `place` if one is given."""
    folder.mkdir(parents=True, exist_ok=True)
    number = len(list(folder.glob("command-*.log")))
    log, marker = folder / f"command-{number}.log", folder / f"stalled-{number}"
    stall = {"place": place, "passage": passage, "marker": str(marker)}
    added = {OWN: str(folder)} | ({"STALL": json.dumps(stall)} if place else {})
    command = [sys.executable, str(Path(__file__).with_name("stalling.py")), "run", *overrides]
    with log.open("w") as file:
        process = subprocess.Popen(
            [*command, f"output={folder / 'outputs'}"], env=os.environ | added, stdin=subprocess.DEVNULL, stdout=file,
            stderr=file, start_new_session=True, text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
        )  # fmt: skip
    return Command(process, log, marker)


def alive(folder: Path) -> list[int]:
    """The processes that commands in `folder` started and that live."""
    return list(processes(OWN, str(folder)))


def workers(folder: Path) -> list[int]:
    """Those of them that train the runs of a sweep."""
    found = []
    for pid in alive(folder):
        with suppress(OSError):  # it has ended
            if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def no_orphan(folder: Path, seconds: float = 60) -> None:
    """Waits for the last process: a worker whose parent was killed first ends its step and writes a checkpoint."""
    end = time.monotonic() + seconds
    while left := alive(folder):
        if time.monotonic() > end:
            lines = [Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ") for pid in left]
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            raise AssertionError(f"orphans after {seconds:g} s: {lines}")
        time.sleep(0.02)


def folders(output: Path) -> dict[str, RunFolder]:
    runs = output / "runs"
    return (
        {path.name: RunFolder(path) for path in sorted(runs.iterdir()) if path.is_dir()}
        if runs.exists()
        else {}
    )


def intact(output: Path) -> None:
    """What must hold at any moment, also just after a kill: every file is whole, no step's number is there twice."""
    for folder in folders(output).values():
        folder.read_status()
        folder.read_provenance()
        folder.read_media()
        seen = [
            (record["step"], name) for record in folder.read_metrics() for name in record if name != "step"
        ]
        assert len(seen) == len(set(seen))
        assert [step for step, _ in seen] == sorted(step for step, _ in seen)
        if folder.checkpoint.exists():
            checkpoint.load(folder.checkpoint)


def assert_same(output: Path, undisturbed: Path, overrides: Sequence[str]) -> None:
    """The same runs and the same table; and not one file more."""
    assert names(output) == names(undisturbed)
    for name, whole in folders(undisturbed).items():
        same_run(RunFolder(output / "runs" / name), whole)
    assert markdown(output, overrides) == markdown(undisturbed, overrides)


def same_run(folder: RunFolder, whole: RunFolder) -> None:
    """The same numbers, texts, pictures and weights as those of an undisturbed run."""
    assert folder.state() is whole.state() is State.done
    ended, expected = folder.read_status(), whole.read_status()
    for field in ("step", "results", "alarms", "alarm_kinds", "nan_steps", "first_nan_step"):
        assert getattr(ended, field) == getattr(expected, field), (folder.path, field)
    assert timeless(folder.read_metrics()) == timeless(whole.read_metrics())
    for file in ("media.jsonl", "attention.json.gz", "tokenizer.model", "translations/*", "images/**/*.png"):
        found = sorted(whole.path.glob(file))
        assert found
        for path in found:
            assert (folder.path / path.relative_to(whole.path)).read_bytes() == path.read_bytes(), path
    mine, theirs = checkpoint.load(folder.checkpoint), checkpoint.load(whole.checkpoint)
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine["model"][weight], theirs["model"][weight]) for weight in theirs["model"])


def names(output: Path) -> list[str]:
    """Every file below `output` but those of W&B and the logs."""
    paths = [path.relative_to(output) for path in output.rglob("*") if not path.is_dir()]
    return sorted(path.as_posix() for path in paths if path.parts[0] not in NOT_COMPARED)


def timeless(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """NaN compares as text; speed is what a disturbed run may differ in."""
    return [
        {name: str(value) for name, value in record.items() if "/speed/" not in name} for record in records
    ]


def markdown(output: Path, overrides: Sequence[str]) -> str:
    """The study's table, as `attnlab table` prints it."""
    items = [*overrides, f"output={output}"]
    return render.markdown(table.build(expand(items), items, []))

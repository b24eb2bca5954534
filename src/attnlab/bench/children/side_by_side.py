"""One of several trainings that share a device: warm up, wait until all are ready, then train for so many seconds."""

from __future__ import annotations

import os
import time
from pathlib import Path

import torch

from attnlab.bench.child import Values, main
from attnlab.bench.environment import prepare_torch
from attnlab.bench.systems.ours import ready, silent
from attnlab.bench.work import Job
from attnlab.training.loop import Interrupted

ENDLESS = 10**9  # steps
POLL = 0.02  # seconds


def measure(job: Job) -> Values:
    """settings: folder of the gate, seconds, then settings of ours. Tokens a second over the seconds, memory on the GPU."""
    prepare_torch(job)
    gate, seconds, *overrides = job.settings
    trainer = ready(job, ENDLESS, tuple(overrides)).trainer
    steps = 0
    tokens = 0
    first_step = began = 0.0

    def step(now: int) -> None:
        nonlocal steps, tokens, first_step, began
        steps += 1
        if steps == 1:
            _finish(trainer.device)
            first_step = time.monotonic()
        if steps > job.warmup:
            tokens += now
        elif steps == job.warmup:
            _finish(trainer.device)
            _pass(Path(gate))
            began = time.monotonic()

    try:
        trainer.run(silent(trainer, step, lambda: tokens > 0 and time.monotonic() - began > float(seconds)))
    except Interrupted:
        _finish(trainer.device)
    spent = time.monotonic() - began
    values = {
        "tokens_per_second": tokens / spent,
        "steps_per_second": (steps - job.warmup) / spent,
        "first_step": first_step,
    }
    if trainer.device.type == "cuda":
        values["gpu_mb"] = torch.cuda.max_memory_reserved(trainer.device) / 2**20
    return values


def _finish(device: torch.device) -> None:
    """Wait for what the device has still to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _pass(gate: Path) -> None:
    """Say that this one is ready and wait for the rest."""
    (gate / f"ready-{os.getpid()}").touch()
    while not (gate / "go").exists():
        time.sleep(POLL)


if __name__ == "__main__":
    main(measure)

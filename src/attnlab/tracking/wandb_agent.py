"""A run that an agent of a W&B sweep started (`wandb agent`) goes into the W&B run that the agent holds for it.

The agent sets WANDB_SWEEP_ID and WANDB_RUN_ID, and with them W&B takes no other id: whatever a process logs lands in
that one run. So one run is all that a process of an agent's may train. The run folder keeps its own id.
"""

from __future__ import annotations

import os
from pathlib import Path

from attnlab.errors import UserError
from attnlab.tracking.wandb_reader import read_wandb
from attnlab.tracking.wandb_records import find_records


def agent_run_id() -> str | None:
    """The id that an agent wants its run to have; None without an agent."""
    return os.environ.get("WANDB_RUN_ID") if os.environ.get("WANDB_SWEEP_ID") else None


def refuse_many_runs(runs: int) -> None:
    """Raise UserError where an agent started a process that would train several runs."""
    if runs > 1 and agent_run_id() is not None:
        raise UserError(
            f"experiment: got {runs} runs in a process of `wandb agent`, allowed: one, as conf/wandb_sweep/*.yaml ask for it"
        )


def refuse_second_run(output: Path, wandb_id: str, own_id: str) -> None:
    """Raise UserError where the agent's run holds another run's numbers, which W&B would mix with these."""
    if agent_run_id() is None:
        return
    for record in find_records(output, wandb_id):
        holder = read_wandb(record).config.get("run_id")
        if holder not in (None, own_id):
            raise UserError(
                f"WANDB_RUN_ID: got {wandb_id}, which holds run {holder}, allowed: one run for each run of an agent"
            )

"""Several runs side by side on one GPU: what one small run leaves idle, others can use."""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from attnlab.bench.options import Options
from attnlab.bench.report import Table, Value
from attnlab.bench.rounds import Spread, spread
from attnlab.bench.spawn import Ended, Running
from attnlab.bench.work import Environment, Job

MODULE = "attnlab.bench.children.side_by_side"
BUDGET = 440.0  # seconds for all numbers of runs together: the whole stays under 8 minutes
POLL = 0.05  # seconds


def run(options: Options) -> Table:
    """A row for each number of runs; one that does not fit into the budget says so."""
    deadline = time.monotonic() + BUDGET
    rows: list[dict[str, Value]] = []
    one: Spread | None = None
    for runs in options.runs:
        ended = together(options, runs, deadline)
        row = _row(runs, ended, one)
        one = spread(end.values.get("tokens_per_second") for end in ended) if runs == 1 else one
        rows.append(row)
    note = (
        f"One process a run, bf16, all on one device ({options.device}), {options.work.layers} + {options.work.layers} layers, width "
        f"{options.work.d_model}, batches of up to {options.work.batch_tokens:,} padded tokens: real target tokens a second over "
        f"{options.seconds:g} s that all runs spend side by side, after {options.warmup} steps to warm up."
    )  # fmt: skip
    return Table("gpu", "Runs side by side on one GPU", note, rows)


def together(options: Options, runs: int, deadline: float) -> list[Ended]:
    """So many children, which begin to count at the same moment; empty where the time is up."""
    if deadline - time.monotonic() < 2 * options.seconds:
        return []
    with ExitStack() as stack:
        gate = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="attnlab-gate-")))
        job = Job(
            options.work, "bf16", options.threads[0], options.warmup, options.steps, Environment.shipped,
            options.device, (str(gate), str(options.seconds), *options.overrides),
        )  # fmt: skip
        children = [stack.enter_context(Running(MODULE, job)) for _ in range(runs)]
        while (
            len(list(gate.glob("ready-*"))) < runs
            and not any(child.has_ended() for child in children)
            and time.monotonic() < deadline
        ):
            time.sleep(POLL)
        (gate / "go").touch()
        return [child.wait(max(1.0, deadline - time.monotonic())) for child in children]


def _row(runs: int, ended: list[Ended], one: Spread | None) -> dict[str, Value]:
    problem = next((end.problem for end in ended if end.problem), None) or (
        "the time was up" if not ended else None
    )
    if problem:
        return {"runs": runs, "tokens/s in total": problem}
    speeds = [end.values["tokens_per_second"] for end in ended]
    return {
        "runs": runs,
        "tokens/s in total": sum(speeds),
        "tokens/s a run": spread(speeds),
        "total over one run": sum(speeds) / one.median if one else 1.0 if runs == 1 else None,
        "steps/s a run": spread(end.values["steps_per_second"] for end in ended),
        "GPU MB a run": spread(end.values.get("gpu_mb") for end in ended),
        "first step after s": spread(end.values["first_step"] - end.started for end in ended),
    }

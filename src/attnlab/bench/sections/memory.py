"""Peak memory, and whether it goes on growing with the number of steps."""

from __future__ import annotations

from dataclasses import replace

from attnlab.bench.options import Options
from attnlab.bench.report import Table, Value
from attnlab.bench.rounds import Child, measure, problem_of, ratio, series, spread
from attnlab.bench.work import Environment

LONGER = 6  # times the steps of the training section: most batch shapes have come up after a quarter


def run(options: Options) -> Table:
    """Our own training, longer, with the peak after each quarter of the steps."""
    jobs = [
        replace(job, steps=LONGER * options.steps, settings=options.overrides)
        for job in options.jobs([Environment.shipped])
    ]
    children = [
        Child(f"memory {job.precision} {job.threads}", "attnlab.bench.systems.ours", job) for job in jobs
    ]
    rows: list[dict[str, Value]] = []
    for job, ended in zip(jobs, measure(children, options.rounds), strict=True):
        peaks = {f"after {part}/4, MB": spread(series(ended, f"peak_mb_{part}/4")) for part in (1, 2, 3, 4)}
        growth = ratio(series(ended, "peak_mb_4/4"), series(ended, "peak_mb_2/4"))
        row: dict[str, Value] = {"precision": job.precision, "threads": job.threads}
        rows.append(
            row | {"problem": problem_of(ended)}
            if problem_of(ended)
            else row | peaks | {"4/4 over 2/4": growth}
        )
    note = (
        f"Our own training for {LONGER * options.steps + options.warmup} steps: largest resident memory after each quarter "
        "of them. It rises while batches of new shapes come up, and must not rise with the steps."
    )
    return Table("memory", "Memory", note, rows)

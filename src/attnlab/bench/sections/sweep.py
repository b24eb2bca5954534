"""Runs an hour of a sweep of short runs, with one worker and with two, and what a run costs beside its training."""

from __future__ import annotations

from dataclasses import replace

from attnlab.bench.options import Options
from attnlab.bench.report import Table, Value
from attnlab.bench.rounds import Child, measure, problem_of, ratio, series, spread
from attnlab.bench.spawn import run_child
from attnlab.bench.work import Job

MODULE = "attnlab.bench.children.sweep_runs"
WORKERS = (1, 2)
LENGTHS = {100: 4, 1000: 2}  # steps of a run: runs. Of seconds, where all overhead shows, and of a minute


def run(options: Options) -> Table:
    """A row for each length of a run and number of workers."""
    cells = [(steps, runs, workers) for steps, runs in LENGTHS.items() for workers in WORKERS]
    jobs = [
        Job(options.work, steps=steps, settings=(str(runs), str(workers), *options.overrides))
        for steps, runs, workers in cells
    ]
    # the tokenizer of the nano runs, made once by any study
    run_child(MODULE, replace(jobs[0], steps=11, settings=("1", "1", *options.overrides)))
    children = [
        Child(f"sweep, {steps} steps, {workers} workers", MODULE, job)
        for (steps, _, workers), job in zip(cells, jobs, strict=True)
    ]
    measured = dict(zip(cells, measure(children, options.rounds), strict=True))
    walls = {
        cell: [None if one is None or one.problem else one.seconds for one in each]
        for cell, each in measured.items()
    }
    rows: list[dict[str, Value]] = []
    for (steps, runs, workers), each in measured.items():
        wall = walls[steps, runs, workers]
        training = series(each, "training")
        beside = [
            None if whole is None or inside is None else whole * workers / runs - inside
            for whole, inside in zip(wall, training, strict=True)
        ]
        rows.append(
            {
                "steps a run": steps,
                "runs": runs,
                "workers": workers,
                "runs/h": problem_of(each)
                or spread([None if whole is None else 3600 * runs / whole for whole in wall]),
                "over 1 worker": ratio(walls[steps, runs, 1], wall),
                "training s a run": spread(training),
                "beside it s a run": spread(beside),
                "W&B records": "yes" if any(series(each, "tracked")) else "no",
            }
        )
    note = (
        "Nano runs on the embedded corpus, 64 dev and 16 test sentences, from the command to its end; tokenizer in the cache. "
        "`beside it`: a worker's time a run less the seconds of its training steps, so text, probes, scoring and "
        "records, and its share of the start of the process: each worker starts once, and makes runs / workers of them."
    )
    return Table("sweep", "Sweeps", note, rows)

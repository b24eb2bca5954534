"""Runs an hour of a sweep of short runs, with one worker and with two, and what a run costs beside its training."""

from __future__ import annotations

from dataclasses import replace

from attnlab.bench.options import Options
from attnlab.bench.report import Table, Value
from attnlab.bench.rounds import Child, measure, problem_of, ratio, series, spread
from attnlab.bench.spawn import run_child
from attnlab.bench.work import Job

MODULE = "attnlab.bench.children.sweep_runs"
RUNS, WORKERS = 4, (1, 2)
STEPS = 100


def run(options: Options) -> Table:
    """A row for each number of workers."""
    job = Job(options.work, steps=STEPS)
    jobs = [replace(job, settings=(str(RUNS), str(workers), *options.overrides)) for workers in WORKERS]
    # the tokenizer of the nano runs, made once by any study
    run_child(MODULE, replace(job, steps=11, settings=("1", "1", *options.overrides)))
    children = [
        Child(f"sweep, {workers} workers", MODULE, job) for workers, job in zip(WORKERS, jobs, strict=True)
    ]
    ended = measure(children, options.rounds)
    walls: list[list[float | None]] = [
        [None if one is None or one.problem else one.seconds for one in each] for each in ended
    ]
    rows: list[dict[str, Value]] = []
    for workers, each, wall in zip(WORKERS, ended, walls, strict=True):
        training = series(each, "training")
        beside = [
            None if whole is None or inside is None else whole * workers / RUNS - inside
            for whole, inside in zip(wall, training, strict=True)
        ]
        rows.append(
            {
                "workers": workers,
                "runs/h": problem_of(each)
                or spread(None if whole is None else 3600 * RUNS / whole for whole in wall),
                "over 1 worker": ratio(walls[0], wall),
                "training s a run": spread(training),
                "beside it s a run": spread(beside),
                "W&B records": "yes" if any(series(each, "tracked")) else "no",
            }
        )
    note = (
        f"{RUNS} nano runs of {STEPS} steps on the embedded corpus, 64 dev and 16 test sentences, from the command to its end; "
        "tokenizer in the cache. `beside it`: a worker's time a run less the seconds of its training steps, so start of the "
        "process, text, probes, scoring and records."
    )
    return Table("sweep", "Sweeps", note, rows)

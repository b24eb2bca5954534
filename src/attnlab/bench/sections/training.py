"""Training tokens a second: every system at the same work, in turns, beside the limit of the machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from attnlab.bench.options import Options
from attnlab.bench.report import Table, Value
from attnlab.bench.rounds import Child, measure, problem_of, ratio, series, spread
from attnlab.bench.spawn import Ended
from attnlab.bench.systems import System
from attnlab.bench.work import Environment, Job

LIMIT = "attnlab.bench.systems.limit"
Rates = Sequence[float | None]
Key = tuple[str, str, int, str]  # system, precision, threads, environment


def run(options: Options) -> Table:
    """A row for each system, precision, number of threads and environment, and the limits."""
    cells = [
        (system, replace(job, settings=system.settings))
        for job in options.jobs()
        for system in options.systems
    ]
    limits = [*_limits(options)]
    children = [
        Child(" ".join(map(str, key(system.name, job))), system.module, job) for system, job in cells
    ] + [Child(f"{name} {job.precision} {job.threads}", LIMIT, job) for name, job in limits]
    ended = measure(children, options.rounds)
    mine, theirs = ended[: len(cells)], ended[len(cells) :]
    rates = {
        key(system.name, job): series(one, "tokens_per_second")
        for (system, job), one in zip(cells, mine, strict=True)
    }
    bounds = _bounds([job for _, job in limits], theirs)
    rows = [_row(system, job, one, rates, bounds) for (system, job), one in zip(cells, mine, strict=True)]
    rows += [_limit_row(name, job, one) for (name, job), one in zip(limits, theirs, strict=True)]
    return Table("training", "Training", _note(options), rows)


def key(name: str, job: Job) -> Key:
    """What makes a row."""
    return name, job.precision, job.threads, job.environment.value


def _limits(options: Options) -> list[tuple[str, Job]]:
    """fp32 by torch's default and by oneDNN, bf16 by what there is; the environment makes no difference to them."""
    named: list[tuple[str, Job]] = []
    for job in options.jobs([Environment.shipped]):
        named.append(("matrix products alone", job))
        if job.precision == "fp32":
            named.append(("matrix products alone, oneDNN", replace(job, settings=("onednn",))))
    return named


def _bounds(
    jobs: Sequence[Job], ended: Sequence[Sequence[Ended | None]]
) -> dict[tuple[str, int], list[float | None]]:
    """By precision and threads, the fastest limit of each round."""
    found: dict[tuple[str, int], list[float | None]] = {}
    for job, one in zip(jobs, ended, strict=True):
        now = series(one, "tokens_per_second")
        before = found.get((job.precision, job.threads), [None] * len(now))
        found[job.precision, job.threads] = [
            max((x for x in pair if x is not None), default=None) for pair in zip(before, now, strict=True)
        ]
    return found


def _row(
    system: System, job: Job, ended: Sequence[Ended | None], rates: dict[Key, list[float | None]],
    bounds: dict[tuple[str, int], list[float | None]],
) -> dict[str, Value]:  # fmt: skip
    own = rates[key(system.name, job)]
    ours = rates.get(key("ours", job))
    starts = [
        one.values["first_step"] - one.started if one and "first_step" in one.values else None
        for one in ended
    ]
    return {
        "system": system.name,
        "precision": job.precision,
        "threads": job.threads,
        "environment": job.environment.value,
        "tokens/s": problem_of(ended) or spread(own),
        "ours / it": None if ours is None else ratio(ours, own),
        "share of the limit": ratio(own, bounds[job.precision, job.threads]),
        "tokens a step": spread(series(ended, "tokens_per_step")),
        "peak MB": spread(series(ended, "peak_mb")),
        "first step after s": spread(starts),
    }


def _limit_row(name: str, job: Job, ended: Sequence[Ended | None]) -> dict[str, Value]:
    return {
        "system": name,
        "precision": job.precision,
        "threads": job.threads,
        "environment": "any",
        "tokens/s": problem_of(ended) or spread(series(ended, "tokens_per_second")),
        "GFLOP/s": spread(series(ended, "gflop_per_second")),
    }


def _note(options: Options) -> str:
    notes = "; ".join(f"`{system.name}`: {system.note}" for system in options.systems)
    return (
        f"Real target tokens a second: those of {options.steps} optimiser steps, after {options.warmup} to warm up, over the time "
        f"that they took, each row in a fresh process; median [lowest, highest] of {options.rounds} rounds in which all take "
        "turns, each with batches of its own. `ours / it` and the "
        "share of the limit, for fp32 the faster of the two, are ratios within a round. docs/performance.md says how to read "
        f"it. {notes}."
    )

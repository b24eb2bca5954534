"""What measuring costs at the default cadence, as a share of training time."""

from __future__ import annotations

from dataclasses import replace

from attnlab.bench.options import Options
from attnlab.bench.report import Table, Value
from attnlab.bench.rounds import Child, Spread, measure, problem_of, series, spread
from attnlab.bench.work import Environment

LOOKS = {
    "norms": "gradient norms",
    "probe": "probes inside the softmax, and leak tests",
    "evaluate": "dev/nll and dev/prefix_nll",
}


def run(options: Options) -> Table:
    """A row for each look, and what they are together."""
    pairs = (str(options.rounds + 1), *options.overrides)
    jobs = [replace(job, settings=pairs) for job in options.jobs([Environment.shipped])]
    children = [
        Child(f"probes {job.precision} {job.threads}", "attnlab.bench.children.probe_cost", job)
        for job in jobs
    ]
    rows: list[dict[str, Value]] = []
    for job, ended in zip(jobs, measure(children, 1), strict=True):
        where: dict[str, Value] = {"precision": job.precision, "threads": job.threads}
        if problem := problem_of(ended):
            rows.append(where | {"look": problem})
            continue
        steps = series(ended, "step")
        shares = {}
        for name, title in LOOKS.items():
            seconds, every = series(ended, name), series(ended, f"{name}_every")
            shares[name] = share(seconds, every, steps)
            rows.append(
                where
                | {
                    "look": title,
                    "seconds": spread(seconds),
                    "every so many steps": spread(every),
                    "% of training": shares[name],
                }
            )
        rows.append(
            where | {"look": "norms and probes", "% of training": _sum(shares["norms"], shares["probe"])}
        )
        rows.append(where | {"look": "a step of training", "seconds": spread(steps)})
        rows.append(
            where
            | {"look": "a step after looks over one without", "% of training": spread(series(ended, "after"))}
        )
    note = (
        f"Our own training in one process, in blocks of {options.steps} steps, every other one with all looks at its end: "
        f"median over {options.rounds + 1} pairs. Percent: seconds of a look over the seconds of training between two of them, at the "
        "default cadence."
    )  # fmt: skip
    return Table("probes", "Measuring", note, rows)


def share(seconds: list[float | None], every: list[float | None], step: list[float | None]) -> Spread | None:
    """Cost of a look over the training time from one to the next, in percent."""
    triples = zip(seconds, every, step, strict=True)
    return spread(100 * a / (b * c) if a is not None and b and c else None for a, b, c in triples)


def _sum(*shares: Spread | None) -> float:
    return sum(share.median for share in shares if share is not None)

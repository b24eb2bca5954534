"""Greedy decoding, sentences a second: both protocols, beside Hugging Face's generate and the products alone."""

from __future__ import annotations

from dataclasses import replace

from attnlab.bench.options import Options
from attnlab.bench.report import Table, Value
from attnlab.bench.rounds import Child, measure, problem_of, ratio, series, spread
from attnlab.bench.work import Job

LIMIT = "matrix products alone"
MODULES = {"ours": "attnlab.bench.children.decode_ours", "marian": "attnlab.bench.children.decode_marian",
           LIMIT: "attnlab.bench.children.decode_limit"}  # fmt: skip
ASKED = {"ours": [(p, n) for n in ("forced", "natural") for p in ("cached", "prefix")],
         "marian": [("cached", n) for n in ("forced", "natural")],
         LIMIT: [("cached", "forced")]}  # fmt: skip


def run(options: Options) -> Table:
    """A row for each system, precision, protocol and kind of length."""
    names = [name for name in ASKED if any(system.name == name for system in options.systems)] or ["ours"]
    cells = [
        (name, replace(job, settings=options.overrides if name == "ours" else ()))
        for job in options.jobs()
        for name in [*names, LIMIT]
    ]
    children = [
        Child(f"decoding {name} {job.precision} {job.threads} {job.environment}", MODULES[name], job)
        for name, job in cells
    ]
    rows: list[dict[str, Value]] = []
    measured = measure(children, options.rounds)
    by_name = {(name, where(job)): ended for (name, job), ended in zip(cells, measured, strict=True)}
    for (name, job), ended in zip(cells, measured, strict=True):
        for protocol, lengths in ASKED[name]:
            speed = series(ended, f"{protocol}/{lengths}")
            cached = series(ended, f"cached/{lengths}")
            generate, limit = by_name.get(("marian", where(job))), by_name[LIMIT, where(job)]
            rows.append(
                {
                    "system": name, "precision": job.precision, "threads": job.threads,
                    "environment": job.environment.value, "protocol": protocol, "lengths": lengths,
                    "sentences/s": problem_of(ended) or spread(speed),
                    "cached / it": ratio(cached, speed) if name == "ours" else None,
                    "it / generate": ratio(speed, series(generate, f"cached/{lengths}")) if generate and name != LIMIT else None,
                    "share of the cached limit": ratio(speed, series(limit, f"cached/{lengths}")) if lengths == "forced" else None,
                }
            )  # fmt: skip
    return Table("decoding", "Decoding", _note(options), rows)


def where(job: Job) -> tuple[str, int, str]:
    """What two systems have to share to be compared."""
    return job.precision, job.threads, job.environment.value


def _note(options: Options) -> str:
    return (
        "Greedy, the first 1,000 test sentences, 64 a batch, random weights. `forced`: each translation has exactly 16 pieces; "
        "`natural`: as many as its source. `prefix` runs the decoder on the whole prefix at each step, `cached` on the new "
        "position alone. Hugging Face: `generate` with its cache, weights in bf16 where bf16 is asked for, batches sorted by "
        "length and, for natural lengths, as long as their longest source. `matrix products alone`: those of cached decoding at "
        "the forced length, by torch's default. "
        f"Median [lowest, highest] of {options.rounds} rounds, a fresh process each."
    )

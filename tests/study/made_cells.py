"""Cells of a table and claims about them, with numbers of our choosing and no files."""

import functools
import json
from dataclasses import replace
from pathlib import Path

from attnlab.compose import load
from attnlab.study.cells import Cell, SeedRun
from attnlab.study.claims import Claim, Direction, Kind
from attnlab.tracking.folder import RunFolder
from attnlab.tracking.status import State, Status


@functools.cache
def _config():
    return load([])


def cell(name, values, diverged=(), metric="m", more=None):
    """A cell with these values by seed, seeds that diverged, and more metrics, each by seed."""
    done = {seed: Status(State.done, results={metric: value}) for seed, value in values.items()}
    for other, by_seed in (more or {}).items():
        for seed, value in by_seed.items():
            done[seed].results[other] = value
    ended = done | {seed: Status(State.diverged) for seed in diverged}
    folder, config = RunFolder(Path("nowhere")), _config()
    return Cell(name, (), tuple(SeedRun(seed, config, folder, ended[seed], {}) for seed in sorted(ended)))


def with_records(made, folder, records):
    """The cell with these records in the metrics.jsonl of each of its seeds, below `folder`."""
    runs = []
    for run in made.runs:
        own = RunFolder(folder / made.label / str(run.seed))
        own.create()
        (own.path / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        runs.append(replace(run, folder=own))
    return replace(made, runs=tuple(runs))


def row(*values, **named):
    """Cells a, b, c, ... each with these values of the seeds 1, 2, 3, ..."""
    names = [*"abcdefgh"[: len(values)], *named]
    return {
        name: cell(name, dict(enumerate(one, start=1)))
        for name, one in zip(names, [*values, *named.values()], strict=True)
    }


def claim(kind, direction, *bounds, cells=("a",), control=(), metric="m", **more):
    """Labels have one letter here, so that a text is several of them."""
    return Claim(
        "X",
        "s",
        metric,
        Kind(kind),
        tuple(cells),
        tuple(control),
        Direction(direction),
        bounds,
        "src",
        **more,
    )

"""Signals at many moments of a sweep, then the same command again: nothing lost, nothing twice, nothing left over.

`make chaos` kills at 60 moments, CHAOS_MOMENTS says at how many. Half the moments are named and hit exactly (see
stalling.py), the others come at a random time.
"""

import os
import random
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from stalling import CALLS, WRITES
from sweeps import SEED, SWEEP, Command, alive, assert_same, folders, intact, no_orphan, start, workers

from attnlab.tracking.records import read_metrics
from attnlab.tracking.wandb_reader import read_wandb
from attnlab.tracking.wandb_records import find_records

MOMENTS = int(os.environ.get("CHAOS_MOMENTS", "6"))
A_ROUND = 5  # moments of one sweep, before it is let through to its end
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
ANY_TIME = "at a random time"
WANDB = "while W&B finishes"
REWOUND = "while records are rewound"
PASSAGES = {"inside a step": 40, "inside a probe": 5, "inside a status write": 2, "while preparing data": 3}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes in /proc"),
]


@dataclass(frozen=True)
class Moment:
    """Where the sweep is hit, by which signal, and which of its processes: the command, a worker, or all at once."""

    place: str
    passage: int
    number: signal.Signals
    victim: str
    share: float  # of an undisturbed sweep's time, for a random time

    def __str__(self) -> str:
        return f"{self.number.name} to {self.victim} {self.place} (passage {self.passage})"


def moments(seed: int, how_many: int) -> list[list[Moment]]:
    """Rounds of moments: each named place with each signal before one comes again, a random time after each of them."""
    draw = random.Random(seed)
    named = [(place, number) for place in (*WRITES, *CALLS) for number in SIGNALS]
    draw.shuffle(named)
    found = []
    for index in range(how_many):
        place, number = named[index // 2 % len(named)] if index % 2 == 0 else (ANY_TIME, draw.choice(SIGNALS))
        victim = draw.choice(("the command", "the command", "a worker", "all"))
        found.append(
            Moment(place, draw.randint(1, PASSAGES.get(place, 1)), number, victim, draw.uniform(0, 0.8))
        )
    # What a sweep passes only at its beginning comes first in its round.
    first = {"while preparing data": 0, ANY_TIME: 1}
    rounds = [found[start : start + A_ROUND] for start in range(0, how_many, A_ROUND)]
    return [sorted(one, key=lambda moment: (first.get(moment.place, 2), moment.share)) for one in rounds]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """An undisturbed sweep and the seconds that it took."""
    folder = tmp_path_factory.mktemp("undisturbed")
    started = time.monotonic()
    command = start(folder, [*SWEEP, "track=none"])
    assert command.end() == 0, command.log.read_text()
    return folder / "outputs", time.monotonic() - started


def strike(moment: Moment, command: Command, folder: Path, sweep_seconds: float) -> bool:
    """Send the moment's signal; False where the command had ended before it."""
    if moment.place == ANY_TIME:
        time.sleep(moment.share * sweep_seconds)
        stalled = None
    else:
        stalled = command.stalled()
    if command.process.poll() is not None:
        return False
    match moment.victim:
        case "the command":
            victims = [command.process.pid]
        case "a worker":
            victims = [stalled or next(iter(workers(folder)), command.process.pid)]
        case _:
            victims = alive(folder)
    for pid in victims:
        with suppress(ProcessLookupError):  # it ended just now
            os.kill(pid, moment.number)
    time.sleep(0.2)  # a handler that only takes note must find its process still at the place
    command.go_on()
    return True


@pytest.mark.parametrize("number", range(-(-MOMENTS // A_ROUND)))
def test_a_sweep_that_is_struck_down_again_and_again_ends_as_one_that_was_not(
    number, tmp_path, undisturbed, capsys
):
    reference, seconds = undisturbed
    todo = moments(SEED, MOMENTS)[number]
    with_wandb = any(moment.place == WANDB for moment in todo)
    struck = []
    for attempt in count():
        # Where a sweep ends before all moments have come, the others strike another one.
        folder = tmp_path / str(attempt)
        output = folder / "outputs"
        options = [*SWEEP, "track=wandb" if with_wandb else "track=none"]
        for moment in list(todo):
            if moment.place == REWOUND:
                leave_something_to_rewind(folder, options)
            place = None if moment.place == ANY_TIME else moment.place
            command = start(folder, options, place, moment.passage)
            hit = strike(moment, command, folder, seconds)
            code = command.end()
            if moment.number is signal.SIGKILL or moment.share < 0.4:
                no_orphan(folder)  # else the next command comes while workers of this one still stop
            intact(output)
            survives = moment.victim == "a worker"  # the sweep goes on, and may make up for it at once
            if not hit or (code == 0 and moment.place == ANY_TIME and not survives):
                break
            assert code != 0 or survives, f"{moment}: {command.log.read_text()}"
            todo.remove(moment)
            struck.append(f"{moment}: exit {code}, {standing(output)}")
        last = start(folder, options)
        assert last.end() == 0, last.log.read_text()
        no_orphan(folder)
        assert_same(output, reference, SWEEP)
        if with_wandb:
            mirrored(output)
        if not todo:
            break
        assert attempt < A_ROUND, f"moments that never come: {todo}"
    with capsys.disabled():
        print(
            f"\n  CHAOS_SEED={SEED}, sweep {number + 1}",
            *struck,
            "the same command again: all equal",
            sep="\n    ",
        )


def leave_something_to_rewind(folder: Path, options: list[str]) -> None:
    """Only a run that has a checkpoint is rewound to it."""
    command = start(folder, options, "inside a checkpoint write", 2)
    assert command.stalled() is not None
    for pid in alive(folder):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    command.end()


def standing(output: Path) -> str:
    """How the runs stand just after a moment."""
    states = [str(folder.state()) for folder in folders(output).values()]
    return ", ".join(f"{states.count(state)} {state}" for state in sorted(set(states))) or "no run yet"


def mirrored(output: Path) -> None:
    """What W&B would upload has each number of the run folders, and each step once."""
    for name, folder in folders(output).items():
        (record,) = find_records(output, name)
        rows = {row["_step"]: row for row in read_wandb(record).history}
        assert len(rows) == len(read_wandb(record).history)
        for logged in read_metrics(folder.metrics.path):
            step = logged.pop("step")
            assert {key: rows[step][key] for key in logged} == logged

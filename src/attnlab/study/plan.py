"""What a study will run: each cell and seed with its id, its state and how long it may take, before anything trains."""

from __future__ import annotations

from collections.abc import Sequence

from attnlab.config import Launcher
from attnlab.study.forecast import Forecast, duration
from attnlab.study.grid import Impossible, Study
from attnlab.study.launch import headline, on_gpu, wants_to_run, workers_of
from attnlab.tracking.status import State

WAITING = "waiting"
INVALID = "invalid"


def plan(study: Study) -> str:
    """One line a run, one a cell that cannot exist with the reason, and the whole in two lines at the end."""
    forecast = Forecast(study.runs)
    lines = [_line("run id", "state", "time", "cell")]
    states: list[State | None] = []
    times: list[float | None] = []  # of the runs that are to be made
    for cell in study.cells:
        shown = " ".join(cell.overrides)
        if isinstance(cell, Impossible):
            lines.append(_line("-", INVALID, "", f"{shown}  {cell.problem}"))
            continue
        states.append(state := cell.folder.state())
        time = ""
        if wants_to_run(cell.config, state):
            times.append(left := forecast.seconds_left(cell))
            time = "unknown" if left is None else duration(left)
        lines.append(_line(cell.run_id, state or WAITING, time, shown))
    notes = [headline(study, states, len(times))]
    if invalid := len(study.cells) - len(states):
        notes.append(f"{invalid} cell{'s' * (invalid > 1)} that cannot exist")
    if study.duplicates:
        notes.append(f"{study.duplicates} duplicate{'s' * (study.duplicates > 1)} dropped")
    lines.append(f"study {study.name}: {'; '.join(notes)}")
    return "\n".join([*lines, _time(study, times, forecast.side_by_side())] if times else lines)


def _time(study: Study, times: Sequence[float | None], measured: int) -> str:
    """The whole time, from runs of which `measured` were side by side.

    A cluster's queue is nobody's to foretell: there it is that of the runs one after the other. Runs that share a GPU
    slow each other down, and by how much is known of as many as were measured: more of them take no longer in all.
    """
    known = [seconds for seconds in times if seconds is not None]
    if len(known) < len(times):
        return f"time: unknown (for {len(times) - len(known)} runs none like it is done)"
    if study.base.launch.name in (Launcher.slurm, Launcher.ray):
        return f"time: about {duration(sum(known))} in all, over however many machines"
    workers = min(workers_of(study.base), len(times))
    if on_gpu(study.base) and measured < workers:
        return f"time: at most {duration(sum(known) / measured)}, as with {measured} at a time on the GPU"
    return f"time: about {duration(sum(known) / workers)}"


def _line(run: str, state: str, time: str, cell: str) -> str:
    return f"{run:<10}  {state:<11}  {time:>10}  {cell}"

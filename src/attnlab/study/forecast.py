"""How long runs take, from those of the study that are done, and how far a run is."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from datetime import UTC, datetime
from statistics import mean

from attnlab.study.grid import PlannedRun
from attnlab.tracking.folder import RunFolder
from attnlab.tracking.status import State

_TAIL = 1 << 18  # bytes: several times the longest record

Span = tuple[datetime, datetime]  # start and end


class Forecast:
    """Seconds of a run: the mean over its cell's finished seeds, else over runs of its data, model size and steps."""

    def __init__(self, runs: Sequence[PlannedRun]) -> None:
        self._known: dict[Hashable, list[float]] = {}
        self._spans: list[Span] = []
        for run in runs:
            if (span := span_of(run.folder)) is not None:
                self._spans.append(span)
                for key in (_cell(run), _kind(run)):
                    self._known.setdefault(key, []).append(_seconds(span))

    def seconds_left(self, run: PlannedRun) -> float | None:
        """What is still to train of a run, less the steps that it has; None where no run like it is done."""
        known = self._known.get(_cell(run)) or self._known.get(_kind(run))
        if known is None:
            return None
        steps = max(run.config.train.steps, 1)
        return mean(known) * (1 - min(steps_kept(run.folder), steps) / steps)

    def side_by_side(self) -> int:
        """How many of the finished runs were under way at a time, on average over the time that any was; 1 for none.

        Their seconds hold for so many: those of runs that shared a GPU are longer than those of a run by itself.
        """
        covered, until = 0.0, datetime.min.replace(tzinfo=UTC)
        for started, ended in sorted(self._spans):
            covered += max(0.0, (ended - max(started, until)).total_seconds())
            until = max(until, ended)
        return max(1, round(sum(map(_seconds, self._spans)) / covered)) if covered else 1


def span_of(folder: RunFolder) -> Span | None:
    """Start and end of a run that was done in one session, from its provenance to its status.

    None for any other run, and where the clock was set back meanwhile.
    """
    status, provenance = folder.read_status(), folder.read_provenance()
    if status is None or provenance is None or status.state is not State.done or provenance["earlier"]:
        return None
    span = datetime.fromisoformat(provenance["started"]), datetime.fromisoformat(status.updated)
    return span if _seconds(span) >= 0 else None


def seconds_of(folder: RunFolder) -> float | None:
    """Wall time of such a run; None as there."""
    span = span_of(folder)
    return None if span is None else _seconds(span)


def step_of(folder: RunFolder) -> int:
    """The last step that was logged, 0 for none: the end of metrics.jsonl alone is read."""
    path = folder.metrics.path
    if not path.exists():
        return 0
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL))
        whole = file.read().rpartition(b"\n")[0]  # a line that is being written has no end yet
    try:
        return int(json.loads(whole.rpartition(b"\n")[2])["step"])
    except (ValueError, KeyError, TypeError):  # none yet; or damaged, which the run says when it goes on
        return 0


def steps_kept(folder: RunFolder) -> int:
    """The steps that a launch need not train again: none of a run with a result, which force=true makes afresh."""
    return 0 if folder.state() in (State.done, State.diverged) else step_of(folder)


def duration(seconds: float) -> str:
    """In the two largest units, as `1 h 20 min`."""
    whole = round(seconds)
    hours, minutes = divmod(round(seconds / 60), 60)
    if whole < 60:
        return f"{whole} s"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _seconds(span: Span) -> float:
    started, ended = span
    return (ended - started).total_seconds()


def _cell(run: PlannedRun) -> Hashable:
    return tuple(item for item in run.overrides if not item.startswith("seed="))


def _kind(run: PlannedRun) -> Hashable:
    model, train = run.config.model, run.config.train
    return run.config.data.name, model.name, model.d_model, train.steps, train.batch_tokens

"""status.json: what became of a run, for `plan`, for tables and for the next process that finds the folder."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from attnlab.texts import without_secrets
from attnlab.tracking.files import dump_json, number


class State(StrEnum):
    """How a run stands. `done` and `diverged` are results; the other ends may be taken up again."""

    running = "running"
    done = "done"
    diverged = "diverged"
    failed = "failed"
    interrupted = "interrupted"


@dataclass(frozen=True)
class Status:
    """One run's state.

    step: the last step that was logged; for `diverged` the step at which a loss or gradient was not finite.
    error: for `failed` one sentence or a traceback, else None.
    alarms: sentences that must stand beside the run's numbers wherever they are shown, such as a leak.
    alarm_kinds: the kind of each of them, in their order; a later judgement of a kind replaces its sentence.
    nan_steps, first_nan_step: how many steps logged a NaN or an infinity, and the first of them.
    results: the final numbers by metric name.
    """

    state: State
    step: int = 0
    error: str | None = None
    alarms: list[str] = field(default_factory=list)
    nan_steps: int = 0
    first_nan_step: int | None = None
    results: dict[str, float] = field(default_factory=dict)
    alarm_kinds: list[str] = field(default_factory=list)
    pid: int = field(default_factory=os.getpid)
    host: str = field(default_factory=platform.node)
    updated: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    @property
    def reason(self) -> str | None:
        """What went wrong, on one line: the last one of a traceback."""
        lines = (self.error or "").strip().splitlines()
        return lines[-1] if lines else None

    def to_json(self) -> str:
        """For status.json; a traceback may quote a secret of the environment, which then is its variable's name."""
        error = None if self.error is None else without_secrets(self.error)
        return dump_json(asdict(self) | {"error": error}, indent=2) + "\n"

    @staticmethod
    def from_json(text: str) -> Status:
        """Raises ValueError when `text` is not what `to_json` writes."""
        try:
            fields = json.loads(text)
            fields["state"] = State(fields["state"])
            fields["results"] = {name: float(number(value)) for name, value in fields["results"].items()}
            status = Status(**fields)
            " ".join([*status.alarms, *status.alarm_kinds, status.error or "", status.host, status.updated])
            whole = type(status.step) is int and isinstance(status.alarms, list)
        except (AttributeError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from error
        if not whole:
            raise ValueError("a step that is no whole number, or alarms that are no list")
        return status

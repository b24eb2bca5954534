"""One run of a study in this process: what a worker, a job of a cluster and launch=serial do."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab.config import Config
from attnlab.errors import UserError
from attnlab.tracking.folder import RunBusy


@dataclass(frozen=True)
class Attempt:
    """problem: what went wrong, in one sentence, or None. busy: another process works on the run, nothing was done."""

    problem: str | None
    busy: bool = False


def attempt(config: Config, bar: bool = False) -> Attempt:
    """Run it; whatever goes wrong is told and not raised, so that other runs go on. A signal's exit is raised."""
    try:
        from attnlab.run import run  # torch: two seconds, spent in the workers alone

        return Attempt(run(config, bar=bar).status.error)
    except RunBusy as error:
        return Attempt(str(error), busy=True)
    except UserError as error:
        return Attempt(str(error))
    except Exception as error:  # the traceback is in the run's status
        return Attempt(one_sentence(error))


def one_sentence(error: Exception) -> str:
    """Kind and message on one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}"

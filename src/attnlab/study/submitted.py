"""The jobs of hydra-submitit-launcher one by one; its own launch() tells of none after the first that was killed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from attnlab.study.attempt import one_sentence


class Submitted(Protocol):
    """What is used of submitit's Job."""

    def done(self) -> bool:
        """Whether it has ended, in whatever way; a job that waits in the queue has not."""

    def result(self) -> Any:
        """What Hydra made of its end. Raises where the job was killed."""


@contextmanager
def noted(jobs: list[Submitted]) -> Iterator[None]:
    """The jobs that submitit is given inside are added to `jobs`, in their order: the launcher keeps them to itself."""
    try:
        from submitit import AutoExecutor
    except ImportError:  # another plugin's launch
        yield
        return
    kind: Any = AutoExecutor
    submit = kind.map_array

    def map_array(*call: Any) -> list[Submitted]:
        submitted: list[Submitted] = submit(*call)
        jobs.extend(submitted)
        return submitted

    kind.map_array = map_array
    try:
        yield
    finally:
        kind.map_array = submit


def problem_of(job: Submitted) -> str | None:
    """What a job that has ended says went wrong, or what is known of its death; None where nothing did."""
    try:
        return job.result().return_value  # type: ignore[no-any-return]  # what plugin.job returns
    except Exception as error:
        return one_sentence(error)

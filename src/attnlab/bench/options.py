"""What the user chose, checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from attnlab.bench.systems import System
from attnlab.bench.work import Environment, Job, Work


class Section(StrEnum):
    """Parts of the benchmark, in the order in which `all` runs them; `gpu` is by itself."""

    training = "training"
    memory = "memory"
    decoding = "decoding"
    probes = "probes"
    sweep = "sweep"
    gpu = "gpu"


@dataclass(frozen=True)
class Options:
    """See arguments.py for what each means."""

    work: Work
    rounds: int
    steps: int
    warmup: int
    threads: tuple[int, ...]
    precisions: tuple[str, ...]
    environments: tuple[Environment, ...]
    systems: tuple[System, ...]
    overrides: tuple[str, ...]
    runs: tuple[int, ...]
    seconds: float
    device: str

    def jobs(self, environments: Iterable[Environment] | None = None) -> list[Job]:
        """One for each precision, number of threads and environment."""
        return [
            Job(self.work, precision, threads, self.warmup, self.steps, environment)
            for threads in self.threads
            for environment in (self.environments if environments is None else environments)
            for precision in self.precisions
        ]

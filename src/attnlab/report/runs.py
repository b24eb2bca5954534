"""What the explorer shows: every run below an outputs folder, finished or not, with its settings and numbers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from attnlab.errors import UserError
from attnlab.report.curves import Curves, add_curves, wanted
from attnlab.report.values import Value, finite, flat
from attnlab.study.statistics import LEVEL
from attnlab.tracking.folder import RunFolder
from attnlab.tracking.status import State

CURVES = (
    "train/loss/nll", "train/grad/norm", "dev/nll", "dev/prefix_nll", "dev/accuracy", "dev/leak_gap",
    "probe/(entropy|future_mass|logit_std|grad_scores_median)/<site>",
)  # fmt: skip
POINTS = 4800  # of one metric, over all runs: with more runs each curve has fewer
READ = ("config.yaml", "status.json", "metrics.jsonl", "provenance.json")
SEEDS = 120  # the longest table of t quantiles that a page brings


@dataclass(frozen=True)
class ListedRun:
    """config: the settings in which the runs differ. error: of a failed run, or why a folder cannot be read."""

    id: str
    state: str
    step: int
    steps: int | None
    updated: str
    error: str
    alarms: list[str]
    config: dict[str, Value]
    results: dict[str, float | None]


@dataclass(frozen=True)
class RunsPage:
    """common: settings that all runs have, once. t: 97.5% quantiles of Student's t by degrees of freedom, from 1."""

    kind: str
    title: str
    output: str
    runs: list[ListedRun]
    common: dict[str, Value]
    curves: Curves
    notes: list[str]
    t: list[float]


@dataclass(frozen=True)
class ReadRun:
    """One run folder, read."""

    listed: ListedRun
    records: list[dict[str, float]]


@dataclass
class Reader:
    """Reads run folders and keeps what it read until a file changes, so that a page can be made every few seconds."""

    output: Path
    _kept: dict[str, tuple[tuple[float, ...], ReadRun]] = field(default_factory=dict)

    def version(self, only: Set[str] | None = None) -> str:
        """A text that changes whenever a run does, or is killed: that changes no file."""
        now = [
            (path.name, _times(path), self._still_runs(path))
            for path in self._folders()
            if only is None or path.name in only
        ]
        return hashlib.sha256(repr(now).encode()).hexdigest()[:16]

    def page(self, title: str, only: Set[str] | None = None) -> RunsPage:
        """All runs, or those with these ids, in the order of their ids."""
        read = [self._read(path) for path in self._folders() if only is None or path.name in only]
        curves, wish = Curves(), wanted(min(80, max(16, POINTS // max(len(read), 1))), *CURVES)
        for place, one in enumerate(read):
            add_curves(curves, place, one.records, [wish])
        common = _common([one.listed.config for one in read if one.listed.config])
        runs = [_less(one.listed, common) for one in read]
        return RunsPage(
            "runs", title, str(self.output), runs, common, curves, self._skipped(), _t_quantiles()
        )

    def _folders(self) -> list[Path]:
        """Run folders, less hidden ones, those set aside, and those that lie elsewhere."""
        return [path for path in self._candidates() if _inside(path, self._root())]

    def _candidates(self) -> list[Path]:
        root = self._root()
        found = root.iterdir() if root.is_dir() else []
        return sorted(path for path in found if path.is_dir() and "." not in path.name)

    def _root(self) -> Path:
        return (self.output / "runs").resolve()

    def _skipped(self) -> list[str]:
        return [
            f"{path.name}: left out, it is a link to a folder outside of {self._root()}"
            for path in self._candidates()
            if not _inside(path, self._root())
        ]

    def _still_runs(self, path: Path) -> bool:
        """Whether a run that was running when it was read is so still."""
        kept = self._kept.get(path.name)
        return (
            kept is not None
            and kept[1].listed.state == State.running
            and self._read(path).listed.state == State.running
        )

    def _read(self, path: Path) -> ReadRun:
        times, kept = _times(path), self._kept.get(path.name)
        if kept is None or kept[0] != times or kept[1].listed.state == State.running:
            kept = (times, _read_run(path))
            self._kept[path.name] = kept
        return kept[1]


def _read_run(path: Path) -> ReadRun:
    """A damaged folder becomes a row that says so; its text is not quoted, for it may be any file's."""
    folder = RunFolder(path)
    if outside := [name for name in READ if (path / name).exists() and not _inside(path / name, path)]:
        return _unreadable(path, f"{outside[0]} is a link to a file outside of the run's folder")
    if not (path / "status.json").exists():
        return _unreadable(path, "no status.json: the run never started")
    try:
        config = flat(OmegaConf.to_container(OmegaConf.load(path / "config.yaml")))
        status, records = folder.read_status(), folder.read_metrics()
        state = folder.state()
    except Exception as error:  # whatever a file that was cut, edited or written by another version may raise
        return _unreadable(path, f"a file of this folder cannot be read ({type(error).__name__})")
    assert status is not None  # its file was there
    lines = (status.error or "").strip().splitlines()
    results = {name: finite(value) for name, value in status.results.items() if "/layer" not in name}
    step = max([status.step, *(int(record["step"]) for record in records[-1:])])
    steps = config.get("train.steps")
    listed = ListedRun(
        path.name, str(state), step, int(steps) if isinstance(steps, int) else None, status.updated,
        lines[-1] if lines else "", status.alarms, config, results,
    )  # fmt: skip
    return ReadRun(listed, records)


def _unreadable(path: Path, why: str) -> ReadRun:
    return ReadRun(ListedRun(path.name, "unreadable", 0, None, "", why, [], {}, {}), [])


def _inside(path: Path, root: Path) -> bool:
    return path.resolve().is_relative_to(root)


def _times(path: Path) -> tuple[float, ...]:
    """When each file that is read was last written; 0 for one that is not there."""
    return tuple((path / name).stat().st_mtime_ns if (path / name).exists() else 0 for name in READ)


def _common(configs: list[dict[str, Value]]) -> dict[str, Value]:
    """Settings that every run has, with one value."""
    first = configs[0] if configs else {}
    return {
        key: value
        for key, value in first.items()
        if all(key in one and json.dumps(one[key]) == json.dumps(value) for one in configs)
    }


def _less(run: ListedRun, common: dict[str, Value]) -> ListedRun:
    differing = {key: value for key, value in run.config.items() if key not in common}
    fields: dict[str, Any] = vars(run) | {"config": differing}
    return ListedRun(**fields)


def _t_quantiles() -> list[float]:
    """Rounded: an interval is shown in four digits."""
    try:
        from scipy import stats
    except ImportError:
        raise UserError(
            "report: got no scipy, allowed: pip install 'attnlab[report]', which brings it"
        ) from None
    return [round(float(one), 5) for one in stats.t.ppf(0.5 + LEVEL / 2, range(1, SEEDS + 1))]

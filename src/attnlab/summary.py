"""What a finished run or study says on the terminal; the numbers come from status.json."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attnlab.study.grid import Impossible, PlannedRun, Study
from attnlab.tracking.status import State

if TYPE_CHECKING:
    from attnlab.run import Outcome

COLUMNS = {
    "final/dev/nll": "dev nll",
    "final/dev/prefix_nll": "prefix nll",
    "test/prefix/bleu": "BLEU",
    "test/prefix/length_ratio": "length ratio",
    "test/prefix/empty": "empty",
    "final/probe/entropy/decoder": "entropy",
    "final/probe/future_mass/decoder": "future mass",
}
LEGEND = """\
dev nll: teacher-forced, nats a token, by the arm's own code; prefix nll: each token scored from its own prefix.
A prefix nll far above the dev nll is a leak: the model was shown the future while it trained.
BLEU, length ratio, empty: test set, decoded by re-running the arm's own code on the prefix (protocol `prefix`).
entropy (nats): decoder self-attention, of the weights on allowed keys, mean over queries with more than one such key.
future mass: weight on keys of the future, mean over all real queries. Formulas in docs/metrics.md."""


def summary(outcome: Outcome) -> str:
    """A run's state, alarms, final numbers and files."""
    status, path = outcome.status, outcome.folder.path
    already = ", found done: nothing was trained (force=true starts afresh)" if outcome.found_done else ""
    lines = [f"run {outcome.run_id}: {status.state} at step {status.step}{already}"]
    lines += [f"  {status.error}"] if status.error else []
    lines += [f"  ALARM {alarm}" for alarm in status.alarms]
    shown = [name for name in status.results if name.startswith("test/") or name.startswith("final/dev/")]
    lines += [f"  {name:<32} {status.results[name]:z.4f}" for name in shown]
    lines += [
        f"  {path / name}"
        for name in ("status.json", "metrics.jsonl", "translations")
        if (path / name).exists()
    ]
    return "\n".join(lines)


def study_table(study: Study) -> str:
    """One row a run, the few numbers that tell a leak from learning, what went wrong, and where everything lies."""
    rows = [["cell", "seed", "state", *COLUMNS.values()]]
    invalid, failed, alarms, folders = [], [], [], []
    for planned in study.cells:
        if isinstance(planned, Impossible):
            rows.append([" ".join(planned.overrides), "", "invalid", *[""] * len(COLUMNS)])
            invalid.append(f"{' '.join(planned.overrides)}: {planned.problem}")
            continue
        folder = planned.folder
        status, state = folder.read_status(), folder.state()
        results = status.results if status is not None and state in (State.done, State.diverged) else {}
        numbers = [f"{results[name]:.3f}" if name in results else "-" for name in COLUMNS]
        rows.append([_cell(planned), str(planned.config.seed), state or "missing", *numbers])
        name = f"{_cell(planned)} seed {planned.config.seed}"
        if status is not None:
            failed += [f"{name}: {status.reason}"] if state is State.failed else []
            alarms += [f"{name}: {alarm}" for alarm in status.alarms]
        folders.append(f"{name}: {folder.path}")
    parts = [f"study {study.name}", _aligned(rows), LEGEND]
    for title, lines in {
        "invalid": invalid,
        "failed": failed,
        "alarms": alarms,
        "run folders": folders,
    }.items():
        parts += [title, *(f"  {line}" for line in lines)] if lines else []
    return "\n".join(parts)


def _cell(planned: PlannedRun) -> str:
    """The arm and what else the grid changes."""
    settings = [item for item in planned.overrides if item.partition("=")[0] not in ("attention", "seed")]
    return " ".join([planned.config.attention.name, *settings])


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i < 3 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )

"""The headline figure: what each arm of a study does to loss and to BLEU, drawn from a table that is committed.

It reads the CSV of `attnlab table` and no run, so that whoever has the repository can draw it again.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TEACHER, PREFIX = "final/dev/nll", "final/dev/prefix_nll"
INK, MUTED, TEACHER_COLOR, PREFIX_COLOR = "#1b1b1b", "#66645e", "#c44e00", "#0068a8"
ROW = 0.34  # inches


@dataclass(frozen=True)
class Mark:
    """A mean and, with two seeds or more, its 95% interval."""

    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Arm:
    label: str
    seeds: int
    marks: dict[str, Mark]


def draw(table: Path, out: Path | None = None) -> Path:
    """Write the figure beside the table as headline.png (or to `out`, whose ending says the format) and return where.

    Raises UserError for a file that is no table of a study, and without matplotlib.
    """
    arms = read(table)
    names = {name for arm in arms for name in arm.marks if name.endswith("/bleu")}
    bleu = "test/prefix/bleu" if "test/prefix/bleu" in names else min(names, default=None)
    if bleu is None or not any(TEACHER in arm.marks for arm in arms):
        raise UserError(
            f"--figure: got {table} without {TEACHER} and a BLEU, allowed: the table.csv of a study"
        )
    path = out or table.parent / "headline.png"
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise UserError(f"--out: got {path}, allowed: a name that ends in .png, .svg or .pdf")
    _draw(arms, bleu, path)
    return path


def read(table: Path) -> list[Arm]:
    """The arms of a table.csv in its order, less those that have no number. Raises UserError for another file."""
    try:
        with table.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        found: dict[str, Arm] = {}
        for row in rows:
            label = f"{row['arm']} {row['settings']}".strip()
            if row["metric"]:
                arm = found.setdefault(label, Arm(label, int(row["n"]), {}))
                arm.marks[row["metric"]] = Mark(float(row["mean"]), _number(row["low"]), _number(row["high"]))
    except (OSError, UnicodeDecodeError, KeyError, ValueError, TypeError, csv.Error) as error:
        raise UserError(
            f"--figure: got {table}, which cannot be read ({type(error).__name__}), allowed: the table.csv of a study"
        ) from None
    return list(found.values())


def _number(text: str) -> float | None:
    return float(text) if text else None


def _draw(arms: list[Arm], bleu: str, path: Path) -> None:
    plt = _pyplot()
    figure, (losses, scores) = plt.subplots(
        1, 2, figsize=(8.4, 1.2 + ROW * len(arms)), sharey=True, width_ratios=(3, 2), layout="constrained"
    )
    rows = range(len(arms) - 1, -1, -1)  # the first arm on top
    for row, arm in zip(rows, arms, strict=True):
        _gap(losses, row, arm)
        _mark(losses, row, arm.marks.get(TEACHER), "o", TEACHER_COLOR, TEACHER_COLOR)
        _mark(
            losses, row, arm.marks.get(PREFIX), "s", PREFIX_COLOR, "none"
        )  # open: the other shows through it
        _mark(scores, row, arm.marks.get(bleu), "D", INK, INK, text=True)
    losses.set_yticks(list(rows), [arm.label for arm in arms])
    losses.set_xlabel("dev loss (nats a token)")
    scores.set_xlabel(f"BLEU, test ({bleu.split('/')[1]})")
    best = max((arm.marks[bleu].mean for arm in arms if bleu in arm.marks), default=0.0)
    scores.set_xlim(0, max(best * 1.15, 1.0))  # room for the last number
    losses.set_xlim(left=0)
    # The first arm is the control; what the marks are is written where the eye begins.
    losses.set_title("● teacher-forced", loc="left", fontsize=9, color=TEACHER_COLOR)
    losses.set_title("□ from its own prefix", loc="right", fontsize=9, color=PREFIX_COLOR)
    seeds = sorted({arm.seeds for arm in arms})
    count = str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    scores.set_title(
        f"{count} {'seed' if seeds == [1] else 'seeds'} an arm", loc="right", fontsize=9, color=MUTED
    )
    for axes in (losses, scores):
        _plain(axes)
    path.parent.mkdir(parents=True, exist_ok=True)
    # No date and no version in the file: the same table gives the same bytes.
    kinds: dict[str, dict[str, Any]] = {
        ".png": {"Software": None},
        ".svg": {"Date": None},
        ".pdf": {"CreationDate": None},
    }
    figure.savefig(path, dpi=160, facecolor="white", metadata=kinds[path.suffix])
    plt.close(figure)


def _gap(axes: Axes, row: int, arm: Arm) -> None:
    """The leak: how far the loss from the prefix lies from the one that was seen while training."""
    ends = [arm.marks[name].mean for name in (TEACHER, PREFIX) if name in arm.marks]
    if len(ends) == 2:
        axes.plot(ends, [row, row], color=MUTED, linewidth=0.8)


def _mark(
    axes: Axes, row: int, mark: Mark | None, symbol: str, color: str, face: str, text: bool = False
) -> None:
    if mark is None or not math.isfinite(mark.mean):
        return
    if mark.low is not None and mark.high is not None:
        axes.plot(
            [mark.low, mark.high], [row, row], color=color, linewidth=3, solid_capstyle="butt", alpha=0.5
        )
    axes.plot([mark.mean], [row], symbol, color=color, markerfacecolor=face, markersize=5.5, clip_on=False)
    if text:
        axes.annotate(
            f"{mark.mean:.1f}", (mark.mean, row), (7, 0), textcoords="offset points", va="center", fontsize=8
        )


def _plain(axes: Axes) -> None:
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(MUTED)
    axes.tick_params(axis="y", length=0, labelsize=9, labelcolor=INK)
    axes.tick_params(axis="x", color=MUTED, labelsize=8, labelcolor=MUTED)
    axes.xaxis.label.set(size=9, color=INK)
    axes.grid(axis="y", color="#e6e3d9", linewidth=0.8)
    axes.set_axisbelow(True)


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise UserError(
            "--figure: got no matplotlib, allowed: pip install 'attnlab[figures]', which brings it"
        ) from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot

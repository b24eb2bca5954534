"""The headline figure: what each arm of a study does to loss and to BLEU, drawn from a table that is committed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab.errors import UserError
from attnlab.report.paper import INK, MUTED, interval, picture, plain, pyplot, save
from attnlab.report.table_csv import PREFIX, TEACHER, Arm, Mark, bleu_of, read

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TEACHER_COLOR, PREFIX_COLOR = "#c44e00", "#0068a8"
ROW = 0.34  # inches


def draw(table: Path, out: Path | None = None) -> Path:
    """Write the figure beside the table as headline.png (or to `out`, whose ending says the format) and return where.

    Raises UserError for a file that is no table of a study, and without matplotlib.
    """
    arms = read(table)
    bleu = bleu_of(arms)
    if bleu is None or not any(TEACHER in arm.marks for arm in arms):
        raise UserError(
            f"--figure: got {table} without {TEACHER} and a BLEU, allowed: the table.csv of a study"
        )
    path = picture(out or table.parent / "headline.png")
    _draw(arms, bleu, path)
    return path


def _draw(arms: list[Arm], bleu: str, path: Path) -> None:
    figure, (losses, scores) = pyplot().subplots(
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
        plain(axes, "y")
        axes.tick_params(axis="y", length=0, labelsize=9, labelcolor=INK)
        axes.tick_params(axis="x", color=MUTED, labelsize=8, labelcolor=MUTED)
    save(figure, path)


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
        interval(axes, [mark.low, mark.high], [row, row], color, alpha=0.5)
    axes.plot([mark.mean], [row], symbol, color=color, markerfacecolor=face, markersize=5.5, clip_on=False)
    if text:
        axes.annotate(
            f"{mark.mean:.1f}", (mark.mean, row), (7, 0), textcoords="offset points", va="center", fontsize=8
        )

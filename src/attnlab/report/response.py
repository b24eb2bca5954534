"""A study along one factor, such as d_k: loss and BLEU of each arm as lines, drawn from a table that is committed.

The loss is that from each token's own prefix, which no leak makes better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab.errors import UserError
from attnlab.report.paper import INK, MUTED, interval, picture, plain, pyplot, save
from attnlab.report.table_csv import PREFIX, Arm, Mark, bleu_of, read

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = (INK, "#c44e00", "#0068a8", "#2e7d32", "#7b3fa0", MUTED)
SYMBOLS, DASHES = "os^DvP", ("-", (0, (5, 2)), (0, (2, 1.5)), "-.", (0, (1, 1)), (0, (7, 2, 1, 2)))
WIDE = 5  # from this ratio of largest to smallest on the axis is logarithmic


@dataclass(frozen=True)
class Line:
    """Cells that differ in the factor alone: its values, in order, and the numbers there."""

    label: str
    values: list[float]
    marks: list[dict[str, Mark]]


def draw(table: Path, key: str, out: Path | None = None) -> Path:
    """Write the figure beside the table as response.png (or to `out`, whose ending says the format) and return where.

    key: the setting along the axis, as the table names it. Raises UserError for a file that is no table of a study,
    for a setting that has no two numbers there, and without matplotlib.
    """
    arms = read(table)
    lines, bleu = lines_along(arms, key), bleu_of(arms)
    if bleu is None or not lines:
        known = sorted({item.split("=", 1)[0] for arm in arms for item in arm.settings})
        raise UserError(
            f"--along: got {key}, allowed: a setting that has two numbers or more in {table}; it has "
            f"{', '.join(known) or 'no setting'}"
        )
    path = picture(out or table.parent / "response.png")
    _draw(lines, key, bleu, path)
    return path


def lines_along(arms: list[Arm], key: str) -> list[Line]:
    """In the table's order; an arm that has the factor at one finite number alone is no line."""
    found: dict[str, list[tuple[float, dict[str, Mark]]]] = {}
    for arm in arms:
        settings = dict(item.split("=", 1) for item in arm.settings if "=" in item)
        try:
            value = float(settings.pop(key))
        except (KeyError, ValueError):
            continue
        if math.isfinite(value):
            label = " ".join(
                [arm.name, *(f"{name.split('.')[-1]}={text}" for name, text in settings.items())]
            )
            found.setdefault(label, []).append((value, arm.marks))
    ordered = {label: sorted(cells, key=lambda cell: cell[0]) for label, cells in found.items()}
    return [
        Line(label, [value for value, _ in cells], [marks for _, marks in cells])
        for label, cells in ordered.items()
        if len({value for value, _ in cells}) > 1
    ]


def _draw(lines: list[Line], key: str, bleu: str, path: Path) -> None:
    figure, (losses, scores) = pyplot().subplots(1, 2, figsize=(8.4, 3.6), layout="constrained")
    values = sorted({value for line in lines for value in line.values})
    sign = -1 if values[-1] < 0 else 1  # a fill of -10,000 has no place on a plain axis
    sizes = [sign * value for value in values]
    for axes, metric, title in (
        (losses, PREFIX, "dev loss from the prefix (nats a token)"),
        (scores, bleu, f"BLEU, test ({bleu.split('/')[1]})"),
    ):
        for line, color, symbol, dash in zip(
            lines, cycle(COLORS), cycle(SYMBOLS), cycle(DASHES), strict=False
        ):
            _line(axes, line, metric, sign, color, symbol, dash)
        if min(sizes) > 0 and max(sizes) >= WIDE * min(sizes):
            axes.set_xscale("log")
        axes.set_xticks(sizes, [f"{value:g}" for value in values])
        axes.minorticks_off()
        axes.set_xlabel(key)
        axes.set_title(title, loc="left", fontsize=9, color=INK)
        axes.set_ylim(bottom=0)
        plain(axes, "y")
        axes.tick_params(length=0, labelsize=8, labelcolor=MUTED)
    losses.legend(frameon=False, fontsize=8, labelcolor=INK)
    save(figure, path)


def _line(axes: Axes, line: Line, metric: str, sign: int, color: str, symbol: str, dash: object) -> None:
    """Means with their 95% intervals over seeds; a cell without a finite number is a gap."""
    marks = [cell.get(metric) for cell in line.marks]
    means = [math.nan if mark is None or not math.isfinite(mark.mean) else mark.mean for mark in marks]
    places = [sign * value for value in line.values]
    axes.plot(
        places,
        means,
        color=color,
        marker=symbol,
        markersize=5,
        linestyle=dash,
        linewidth=1.4,
        label=line.label,
    )  # type: ignore[arg-type]
    for place, mark in zip(places, marks, strict=True):
        if mark is not None and mark.low is not None and mark.high is not None:
            interval(axes, [place, place], [mark.low, mark.high], color)

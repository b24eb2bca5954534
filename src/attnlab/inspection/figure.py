"""The views of one sentence as heat maps with token labels. matplotlib is imported where it draws.

One scale for all panels, white 0 to dark 1, whose lightness falls evenly: a grey print shows the same. Weights are
spread by their square root, since means over heads are often pale, and a ring marks the largest of each row. Every
cell of every panel has the same size, so panels are set in lines, as words of a text are.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from attnlab.config import Site
from attnlab.errors import UserError
from attnlab.inspection.views import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Panel
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure

DARK, MIDDLE = "#1b2a49", "#8fb0d0"

# In inches. Letters of labels are 8 points high and about 0.07 wide.
CELL, LETTER, TITLE, GAP = 0.21, 0.075, 0.3, 0.3
HEADER, LINE_WIDTH = 1.1, 18.0


class HeatMap(NamedTuple):
    """One panel: weights [rows, columns] with their labels."""

    title: str
    weights: Tensor
    rows: list[str]
    columns: list[str]
    new_line: bool = False


class Box(NamedTuple):
    """Where a panel's cells are, in inches from the left and from the top."""

    left: float
    top: float
    width: float
    height: float


def heat_maps(view: View) -> list[HeatMap]:
    """The three views of self-attention, then the cross-attention of every layer.

    Rows of the latter are labelled `query > next`, since what a row looks for may be the token that it predicts.
    """
    source, target = view.source_tokens, view.target_tokens
    decoder, cross = view.layers(Site.decoder), view.layers(Site.cross)
    rows = [f"{query} > {following}" for query, following in zip(target, view.next_tokens, strict=True)]
    heads = [f"head {h}" for h in range(1, len(view.query_weights()) + 1)]
    return [
        HeatMap("encoder, layer 1, mean of heads", view.layers(Site.encoder)[0].mean(0), source, source),
        HeatMap(f"encoder, layer 1, query '{view.query}'", view.query_weights(), heads, source),
        HeatMap(f"decoder, layer {len(decoder)}, mean of heads", decoder[-1].mean(0), target, target),
        *(
            HeatMap(
                f"cross-attention, layer {layer}, mean of heads", weights.mean(0), rows, source, layer == 1
            )
            for layer, weights in enumerate(cross, start=1)
        ),
    ]


def draw(view: View) -> Figure:
    """All panels. Raises UserError where matplotlib is not installed."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import LinearSegmentedColormap, PowerNorm
        from matplotlib.figure import Figure
    except ImportError:
        raise UserError("--figure: needs matplotlib, which the extra attnlab[figures] installs") from None
    maps = heat_maps(view)
    boxes, width, height = layout(maps)
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)  # no pyplot: no window, and no state that other code shares
    norm, colours = PowerNorm(0.5, 0, 1), LinearSegmentedColormap.from_list("weight", ["white", MIDDLE, DARK])

    def panel(box: Box) -> Panel:
        bottom = height - box.top - box.height
        return figure.add_axes((box.left / width, bottom / height, box.width / width, box.height / height))

    for heat_map, box in zip(maps, boxes, strict=True):
        _draw_one(panel(box), heat_map, colours, norm)
    _draw_scale(figure, panel(Box(GAP, 0.75, 2.6, 0.1)), ScalarMappable(norm, colours))
    for text, top in ((view.source, 0.15), (view.translation, 0.38)):
        figure.text(GAP / width, 1 - top / height, text, fontsize=10, va="top", parse_math=False)
    return figure


def layout(maps: Sequence[HeatMap]) -> tuple[list[Box], float, float]:
    """Boxes from left to right in lines, with room for labels and titles, and the width and height of it all."""
    boxes: list[Box] = []
    x, top, line_height, width = GAP, HEADER, 0.0, 6.0
    for title, _, rows, columns, new_line in maps:
        labels, below = (LETTER * max(map(len, side)) + 0.1 for side in (rows, columns))
        cells_wide, cells_high = CELL * len(columns), CELL * len(rows)
        block = max(labels + cells_wide, labels + LETTER * len(title)) + GAP
        if new_line or (x > GAP and x + block > LINE_WIDTH):
            x, top, line_height = GAP, top + line_height, 0.0
        boxes.append(Box(x + labels, top + TITLE, cells_wide, cells_high))
        x += block
        width, line_height = max(width, x), max(line_height, TITLE + cells_high + below + GAP)
    return boxes, width, top + line_height


def save(figure: Figure, path: Path) -> None:
    """A PNG without a time stamp, so that equal figures are equal files; missing folders are made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110, metadata={"Software": None})
    except OSError as error:
        raise UserError(f"--figure: got '{path}', which cannot be written ({error.strerror})") from None


def _draw_one(panel: Panel, heat_map: HeatMap, colours: Colormap, norm: Normalize) -> None:
    weights = heat_map.weights.detach().float().numpy()
    panel.imshow(weights, cmap=colours, norm=norm, aspect="auto")
    best = weights.argmax(axis=1)
    panel.plot(best, range(len(best)), "o", ms=3.5, mfc="white", mec="black", mew=0.7)
    panel.set_xticks(range(len(heat_map.columns)), heat_map.columns, rotation=90, fontsize=8)
    panel.set_yticks(range(len(heat_map.rows)), heat_map.rows, fontsize=8)
    for label in (*panel.get_xticklabels(), *panel.get_yticklabels()):
        label.set_parse_math(False)  # a token may hold dollar signs
    panel.tick_params(length=0)
    panel.set_title(heat_map.title, loc="left", fontsize=9, parse_math=False)


def _draw_scale(figure: Figure, panel: Panel, scale: ScalarMappable) -> None:
    figure.colorbar(scale, cax=panel, orientation="horizontal", ticks=[0, 0.05, 0.2, 0.5, 1])
    panel.tick_params(labelsize=7, length=2)
    label = "weight; ring: largest of a row"
    panel.text(1.04, 0.5, label, transform=panel.transAxes, fontsize=8, va="center")

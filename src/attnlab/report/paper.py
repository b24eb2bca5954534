"""How figures on paper look, and that the same table gives the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attnlab.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, MUTED, GRID = "#1b1b1b", "#66645e", "#e6e3d9"
# No date and no version in the file.
_METADATA: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}


def picture(path: Path) -> Path:
    """`path`, if its ending is one of a picture. Raises UserError for another."""
    if path.suffix not in _METADATA:
        raise UserError(f"--out: got {path}, allowed: a name that ends in .png, .svg or .pdf")
    return path


def pyplot() -> Any:
    """matplotlib's, without a screen. Raises UserError where there is none."""
    try:
        import matplotlib
    except ImportError:
        raise UserError(
            "--figure: got no matplotlib, allowed: pip install 'attnlab[figures]', which brings it"
        ) from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def plain(axes: Axes, lines: Literal["x", "y"]) -> None:
    """Little ink: no frame, and grid lines across `lines` alone."""
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(MUTED)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set(size=9, color=INK)
    axes.grid(axis=lines, color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)


def interval(axes: Axes, x: Sequence[float], y: Sequence[float], color: str, alpha: float = 0.4) -> None:
    """A broad pale line from (x[0], y[0]) to (x[1], y[1]), behind a mean."""
    axes.plot(x, y, color=color, linewidth=3, solid_capstyle="butt", alpha=alpha)


def save(figure: Any, path: Path) -> None:
    """Write the figure; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=160, facecolor="white", metadata=_METADATA[path.suffix])
    pyplot().close(figure)

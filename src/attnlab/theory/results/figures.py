"""The theory's figures: readable in greyscale, under 200 kB each. matplotlib is imported where it draws."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from attnlab.theory import softmax_laws
from attnlab.theory.axes_maps import future_cells
from attnlab.theory.moments import Entries
from attnlab.theory.results.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Panel
    from matplotlib.figure import Figure

DARK, MIDDLE, LIGHT = "#1b2a49", "#c2512c", "#8fb0d0"  # apart in greyscale too: 16%, 45%, 68%
PAGE_D_K = (16, 64, 512)  # marked where the sd of logits is sqrt(d_k), as without the scale


def variance_figure(table: Table) -> Figure:
    """Variance of q.k against d_k, with the scale and without."""
    figure, (panel,) = _figure(1, width=6.4)
    d_k = table.column("d_k", {"entries": "gaussian"})
    panel.plot(d_k, d_k, color=DARK, lw=1.2, label="law: $d_k$")
    panel.axhline(1, color=MIDDLE, lw=1.2, ls="--", label="law: 1")
    for entries, marker, shift in zip(Entries, "os^", (0.93, 1.0, 1.075), strict=True):
        x = np.array(d_k) * shift  # side by side, since they agree
        variance = np.array(table.column("variance", {"entries": entries.value}))
        panel.plot(x, variance, marker, color=DARK, ms=5, label=f"$q\\cdot k$, {entries.value} entries")
        panel.plot(
            x,
            variance / d_k,
            marker,
            mfc="white",
            mec=MIDDLE,
            ms=5,
            label=f"$q\\cdot k/\\sqrt{{d_k}}$, {entries.value}",
        )
    panel.set(xscale="log", yscale="log", xlabel="$d_k$ (size of a query)", ylabel="variance (nats$^2$)")
    panel.set_xticks(d_k, [f"{value:.0f}" for value in d_k])
    panel.minorticks_off()
    panel.set_title("Dividing by $\\sqrt{d_k}$ keeps the variance of a score at 1", loc="left")
    panel.legend(frameon=False, fontsize=8)
    return figure


def softmax_figure(table: Table) -> Figure:
    """Entropy and Jacobian of a softmax against the sd of its logits."""
    figure, (left, right) = _figure(2, width=10)
    black: Any = {"color": "black", "ls": ":", "lw": 1.4, "zorder": 3}
    for n, (colour, line, marker) in {
        10: (DARK, "-", "o"),
        30: (MIDDLE, "--", "s"),
        512: (LIGHT, "-.", "^"),
    }.items():
        where, log_n, freezing = {"n": n}, np.log(n), softmax_laws.freezing_point(n)
        sigma = np.array(table.column("sigma", where))
        style: Any = {"color": colour, "ls": line, "marker": marker, "ms": 3.5}
        mean, low, high = (
            np.array(table.column(f"entropy{part}", where)) / log_n for part in ("", "_p10", "_p90")
        )
        left.fill_between(sigma, low, high, color=colour, alpha=0.18, lw=0)
        left.plot(sigma, mean, label=f"n = {n} keys", **style)
        left.plot(sigma, np.array(table.column("entropy_saturated", where)) / log_n, **black)
        left.plot(freezing, 0.02, "|", color=colour, ms=16, mew=2)
        right.plot(sigma, table.column("frobenius_squared", where), label=f"n = {n} keys: mean", **style)
        right.plot(
            sigma, table.column("frobenius_squared_p50", where), ls=line, color=colour, lw=0.9, label="median"
        )
        right.plot(sigma, table.column("frobenius_squared_saturated", where), **black)
    small = table.column("entropy_small_sigma", {"n": 10})
    left.plot(
        table.column("sigma", {"n": 10}),
        np.array(small) / np.log(10),
        label="laws for small and large sd",
        **black,
    )
    left.set(ylabel="entropy / ln n: mean, 10% to 90%", ylim=(0, 1.12))
    left.set_title("The weights condense on one key", loc="left")
    left.annotate("freezing points $\\sqrt{2\\,\\ln n}$", (2.0, 0.03), (0.26, 0.03), fontsize=8, color="0.2", va="center",
                  arrowprops={"arrowstyle": "-", "lw": 0.6, "color": "0.4"})  # fmt: skip
    left.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0, 0.07))
    right.set(ylabel="squared Frobenius norm of the Jacobian", yscale="log", ylim=(1e-5, 2))
    right.set_title("The Jacobian: mean like 1/sd, median vanishes", loc="left")
    right.legend(frameon=False, fontsize=8, loc="lower left")
    for panel in (left, right):
        panel.set(xscale="log", xlabel="sd of the logits within a row (nats)")
        panel.set_xticks([0.25, 0.5, 1, 2, 4, 8, 16, 32], ["0.25", "0.5", "1", "2", "4", "8", "16", "32"])
        panel.minorticks_off()
        for d_k in PAGE_D_K:
            panel.axvline(np.sqrt(d_k), color="0.6", lw=0.7, zorder=0)
            panel.annotate(f"$d_k$={d_k}", (np.sqrt(d_k), 1), xycoords=("data", "axes fraction"), ha="center", va="top",
                           fontsize=7.5, color="0.25", bbox={"fc": "white", "ec": "none", "pad": 1})  # fmt: skip
    return figure


def gradient_figure(table: Table) -> Figure:
    """Gradient of a query, unscaled over scaled, against d_k."""
    figure, panels = _figure(2, width=10)
    for panel, n in zip(panels, (14, 30), strict=True):
        where = {"n": n}
        d_k = table.column("d_k", where)
        panel.fill_between(d_k, table.column("p10_ratio", where), table.column("p90_ratio", where), color=LIGHT, alpha=0.35,
                           lw=0, label="10% to 90% quantile")  # fmt: skip
        panel.plot(d_k, table.column("rms_ratio", where), "-o", color=DARK, ms=4, label="root mean square")
        panel.plot(d_k, table.column("mean_ratio", where), "--s", color="0.35", ms=4, label="mean")
        panel.plot(d_k, table.column("median_ratio", where), "-.^", color=MIDDLE, ms=4, label="median")
        law = np.array(table.column("rms_ratio_saturated", where))
        panel.plot(d_k, law, ":", color="black", lw=1.6, label="law for the rms, $\\propto d_k^{1/4}$")
        panel.axhline(1, color="0.5", lw=0.8)
        panel.set(xscale="log", yscale="log", ylim=(1e-3, 40), xlabel="$d_k$ (size of a query)")
        panel.set_xticks(d_k, [f"{value:.0f}" for value in d_k])
        panel.minorticks_off()
        panel.set_title(f"{n} keys", loc="left")
        panel.legend(frameon=False, fontsize=8, loc="lower left")
    panels[0].set_ylabel("$|\\partial L/\\partial q|$, unscaled over scaled")
    figure.suptitle("Without the scale gradients are not small but heavy-tailed", x=0.01, ha="left")
    return figure


def leak_figure(maps: dict[str, Tensor]) -> Figure:
    """Which tokens each output sees, for six arms."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    figure, panels = _figure(len(maps), width=10, rows=2)
    colours = ["white", LIGHT, DARK]
    for panel, (arm, seen) in zip(panels, maps.items(), strict=True):
        n = len(seen)
        image = (seen.int() + seen.triu(1).int()).numpy()  # 0 not seen, 1 past, 2 future
        panel.imshow(image, cmap=ListedColormap(colours), vmin=0, vmax=2, extent=(0.5, n + 0.5, n + 0.5, 0.5))
        panel.plot([0.5, n + 0.5], [0.5, n + 0.5], color="0.4", lw=0.6)
        panel.set_title(
            f"{arm}: {future_cells(seen)} of {n * (n - 1) // 2} future cells", loc="left", fontsize=9
        )
        panel.set_xticks(range(1, n + 1, 3))
        panel.set_yticks(range(1, n + 1, 3))
    for panel in panels[len(maps) // 2 :]:
        panel.set_xlabel("input token")
    for panel in panels[:: len(maps) // 2]:
        panel.set_ylabel("output position")
    names = ("not seen", "past and present, seen", "future, seen")
    handles = [Patch(fc=colour, ec="0.4", label=name) for colour, name in zip(colours, names, strict=True)]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def save(figure: Figure, path: Path) -> None:
    """PNG without a time stamp, so that equal figures are equal files."""
    figure.savefig(path, dpi=110, metadata={"Software": None})


def _figure(panels: int, width: float, rows: int = 1) -> tuple[Figure, list[Panel]]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    height = 4.0 if rows == 1 else 3.1 * rows
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)  # no pyplot: no window, and no state that other code shares
    grid = figure.subplots(rows, panels // rows, squeeze=False)
    for panel in grid.flat:
        panel.spines[["top", "right"]].set_visible(False)
    return figure, list(grid.flat)

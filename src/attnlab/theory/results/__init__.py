"""Footnote 4 as tables and figures: `attnlab theory`.

Written to a folder: variance, logits, softmax, gradients and leaks, each as CSV and Markdown, and a PNG of all but
logits. Under 60 seconds on one core; the same files each time.
"""

from __future__ import annotations

from pathlib import Path

from attnlab.errors import UserError
from attnlab.theory.results import figures
from attnlab.theory.results.leaks import leak_maps, leak_table
from attnlab.theory.results.logits import logit_table, variance_table
from attnlab.theory.results.saturation import gradient_table, softmax_table


def write(folder: Path) -> list[Path]:
    """Compute everything and write it; returns the paths. Raises UserError without matplotlib."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UserError(
            "theory: got no matplotlib, allowed: after pip install 'attnlab[figures]', which draws the figures"
        ) from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"theory: got '{folder}' ({error.strerror}), allowed: a folder that can be made"
        ) from None
    maps = leak_maps()
    variance, logits, softmax, gradients = variance_table(), logit_table(), softmax_table(), gradient_table()
    paths = []
    for table in (variance, logits, softmax, gradients, leak_table(maps)):
        for suffix, text in ((".csv", table.as_csv()), (".md", table.as_markdown())):
            paths.append(folder / f"{table.name}{suffix}")
            paths[-1].write_text(text, encoding="utf-8")
    drawn = {
        "variance": figures.variance_figure(variance), "softmax": figures.softmax_figure(softmax),
        "gradients": figures.gradient_figure(gradients), "leaks": figures.leak_figure(maps),
    }  # fmt: skip
    for name, figure in drawn.items():
        paths.append(folder / f"{name}.png")
        figures.save(figure, paths[-1])
    return paths

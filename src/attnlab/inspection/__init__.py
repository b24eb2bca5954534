"""A finished run looked at from inside: `attnlab inspect`."""

from __future__ import annotations

from pathlib import Path

from attnlab.config import Source
from attnlab.errors import UserError
from attnlab.inspection import report
from attnlab.inspection.gold import measure_gold
from attnlab.inspection.views import view
from attnlab.translate import load_run


def inspect(
    run: str, output: Path, source: str, query: str | None, sentences: int, figure: Path | None, as_json: bool
) -> str:
    """One sentence through a finished run, as text or JSON; also drawn to `figure` (a .png) where one is asked for.

    `query` is a word of `source`, None: one is chosen. On the grammar corpus `sentences` dev sentences, 0 for none,
    are compared with the gold alignments and antecedents. Raises UserError for what cannot be done.
    """
    if sentences < 0:
        raise UserError(f"--sentences: got {sentences}, allowed: at least 0")
    if figure is not None and figure.suffix.lower() != ".png":
        raise UserError(f"--figure: got '{figure}', allowed: a path that ends in .png")
    trained = load_run(run, output)
    views = view(trained, source, query)
    if figure is not None:
        from attnlab.inspection.figure import draw, save

        save(draw(views), figure)
    measured = trained.config.data.source is Source.grammar and sentences > 0
    gold = measure_gold(trained, sentences) if measured else None
    return report.as_json(views, gold) if as_json else report.as_text(views, gold)

"""`attnlab report`: which page, from where, to where."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

from attnlab.compose import load
from attnlab.errors import UserError
from attnlab.report.html import page
from attnlab.report.runs import Reader
from attnlab.report.serve import Live, serve
from attnlab.report.study import study_page
from attnlab.study.expected import registered
from attnlab.study.grid import Study, expand
from attnlab.tracking.files import require_writable, write_atomic
from attnlab.tracking.folder import folder_of

RUNS = "runs · attnlab"  # title of the explorer


def run(
    overrides: Sequence[str], *, out: Path | None, allow_mixed: bool, partial: bool, port: int | None
) -> Path | None:
    """Write the page of a study, or of all runs, and return where; with a port, serve it instead until Ctrl-C.

    Raises UserError for missing runs (of a study, when not served), a folder that cannot be written, no plotly.
    """
    if port is None:
        return write(overrides, out, allow_mixed, partial)
    if out is not None:
        raise UserError(f"--out: got {out} with --serve, allowed: one of them")
    serve(live(overrides, allow_mixed), port)
    return None


def write(overrides: Sequence[str], out: Path | None, allow_mixed: bool, partial: bool) -> Path:
    """The page as a file; see `run`."""
    study, output = _asked(overrides)
    if study is not None:
        text = page(_study(study, overrides, allow_mixed, partial), f"{study.name} · attnlab")
    elif not (output / "runs").is_dir():
        raise UserError(
            f"output: got '{output}', where no runs/ is, allowed: the folder that runs were written to"
        )
    else:
        text = page(_runs(Reader(output), "all runs"), RUNS)
    path = out or output / "reports" / f"{study.name if study else 'runs'}.html"
    require_writable(path.parent)
    write_atomic(path, text)
    return path


def live(overrides: Sequence[str], allow_mixed: bool) -> Live:
    """A study's page as soon as all of its runs are there, until then the explorer over those that it has; or all runs."""
    study, output = _asked(overrides)
    reader = Reader(output)
    if study is None:
        return Live(RUNS, reader.version, lambda version: _runs(reader, "all runs") | {"version": version})
    ids = {folder_of(planned.config).path.name for planned in study.runs}

    def contents(version: str) -> dict[str, Any]:
        try:
            found = _study(study, overrides, allow_mixed)
        except UserError as error:
            found = _runs(reader, study.name, ids, str(error))
        return found | {"version": version}

    return Live(f"{study.name} · attnlab", lambda: reader.version(ids), contents)


def _asked(overrides: Sequence[str]) -> tuple[Study | None, Path]:
    """The study that is named, if one is, and the outputs folder."""
    if not any(item.startswith("experiment=") and item != "experiment=null" for item in overrides):
        return None, Path(load(list(overrides)).output)
    study = expand(list(overrides))
    return study, Path(study.base.output)


def _study(
    study: Study, overrides: Sequence[str], allow_mixed: bool, partial: bool = False
) -> dict[str, Any]:
    claims = registered(study)
    return vars(study_page(study, overrides, claims, allow_mixed=allow_mixed, partial=partial))


def _runs(reader: Reader, title: str, only: Set[str] | None = None, note: str = "") -> dict[str, Any]:
    found = reader.page(title, only)
    return vars(replace(found, notes=[note, *found.notes]) if note else found)

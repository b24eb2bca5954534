"""The same source sentences, translated by every run, with their references."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from attnlab.study.cells import SeedRun
from attnlab.tracking.folder import RunFolder
from attnlab.tracking.media import Table
from attnlab.tracking.status import State

SENTENCES = 20


@dataclass(frozen=True)
class Translations:
    """lines: by protocol and run (its place in the page's list), line i for sources[i]. missing: by run, why not."""

    sources: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    lines: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    missing: dict[int, str] = field(default_factory=dict)


def translations_of(runs: Sequence[SeedRun], protocols: Sequence[str]) -> Translations:
    """The first sentences of the test set. A run with other sources than the first one's is left out, with the reason."""
    found = Translations()
    for place, run in enumerate(runs):
        if run.status.state is not State.done:
            found.missing[place] = f"the run is {run.status.state}"
            continue
        sources, references = _texts(run.folder)
        if not sources:
            found.missing[place] = "the run kept no sources"
            continue
        if not found.sources:
            found.sources.extend(sources)
            found.references.extend(references)
        elif sources != found.sources:
            found.missing[place] = "its test set is another one"
            continue
        for protocol in protocols:
            lines = _lines(run.folder, f"test.{protocol}")
            if lines:
                found.lines.setdefault(protocol, {})[place] = lines
        if not any(place in lines for lines in found.lines.values()):
            found.missing[place] = "the run has no translations"
    return found


def _texts(folder: RunFolder) -> tuple[list[str], list[str]]:
    """Sources and references: from their files, or, in a run made before there were any, from its table of samples."""
    sources, references = _lines(folder, "test.source"), _lines(folder, "test.reference")
    if sources and references:
        return sources, references
    for item in folder.read_media():
        if isinstance(item, Table) and item.name == "test/translations":
            rows = item.rows[:SENTENCES]
            return [str(row[0]) for row in rows], [str(row[1]) for row in rows]
    return [], []


def _lines(folder: RunFolder, name: str) -> list[str]:
    try:
        return folder.read_translations(name)[:SENTENCES]
    except OSError:
        return []

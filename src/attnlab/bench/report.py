"""Tables for people, records for programs, and the place in a document where a table belongs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from attnlab.bench.rounds import Spread
from attnlab.errors import UserError

Value = str | int | float | Spread | None  # None: the quantity does not exist in this row


@dataclass(frozen=True)
class Table:
    """One section's result; `note` says what was done, in which units."""

    name: str
    title: str
    note: str
    rows: Sequence[Mapping[str, Value]]


def markdown(table: Table) -> str:
    """Title, note and rows; a spread is its median and, in brackets, lowest and highest."""
    columns = list(dict.fromkeys(column for row in table.rows for column in row))
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    lines += ["| " + " | ".join(shown(row.get(column)) for column in columns) + " |" for row in table.rows]
    return "\n".join([f"### {table.title}", "", table.note, "", *lines]) + "\n"


def shown(value: Value) -> str:
    """For people: three significant digits, whole numbers from 100 on."""
    match value:
        case None:
            return "-"
        case Spread(median, low, high):
            return shown(median) if low == high else f"{shown(median)} [{shown(low)}, {shown(high)}]"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:#.3g}".rstrip(".")
        case str():
            return value.replace("|", "\\|").replace("\n", " ")


def as_json(made: Mapping[str, str], tables: Sequence[Table]) -> str:
    """How it was made, and each table with full precision."""

    def plain(value: object) -> object:
        return asdict(value) if isinstance(value, Spread) else value

    sections = [
        {
            "name": table.name,
            "note": table.note,
            "rows": [{k: plain(v) for k, v in row.items()} for row in table.rows],
        }
        for table in tables
    ]
    return json.dumps({**made, "sections": sections}, indent=2)


def as_text(made: Mapping[str, str], tables: Sequence[Table]) -> str:
    """All tables, and how they were made."""
    return "\n".join([*map(markdown, tables), _recipe(made)])


def write_into(path: Path, made: Mapping[str, str], tables: Sequence[Table]) -> None:
    """Put each table between its marks, `<!-- bench:NAME -->` and `<!-- /bench:NAME -->`, and leave the rest alone.

    A document without such marks gets them at its end. Raises UserError where the document cannot be written.
    """
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else "# Performance\n"
        for table in tables:
            text = _placed(text, table.name, f"{markdown(table)}\n{_recipe(made)}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"--write: got '{path}' ({error.strerror}), allowed: a Markdown file that can be written"
        ) from None


def _placed(text: str, name: str, content: str) -> str:
    opening, closing = f"<!-- bench:{name} -->", f"<!-- /bench:{name} -->"
    block = f"{opening}\n{content}{closing}"
    marked = re.compile(f"{re.escape(opening)}.*?{re.escape(closing)}", re.DOTALL)
    return (
        marked.sub(lambda _: block, text, count=1) if marked.search(text) else f"{text.rstrip()}\n\n{block}\n"
    )


def _recipe(made: Mapping[str, str]) -> str:
    return "; ".join(f"{key}: {value}" for key, value in made.items()) + ".\n"

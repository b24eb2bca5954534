"""A table of numbers that is written as CSV, for programs, and as Markdown, for people."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Value = str | int | float | None  # None: the quantity does not exist in this row


@dataclass(frozen=True)
class Table:
    """Rows with equal columns; `note` says what they are and in which units."""

    name: str
    note: str
    rows: Sequence[dict[str, Value]]

    def column(self, name: str, where: Mapping[str, Value]) -> list[float]:
        """The numbers of a column in the rows where other columns have the given values; NaN for None."""
        chosen = [row[name] for row in self.rows if all(row[key] == value for key, value in where.items())]
        return [math.nan if value is None else float(value) for value in chosen]

    def as_csv(self) -> str:
        """Full precision; nothing between the commas for None."""
        text = io.StringIO()
        writer = csv.DictWriter(text, list(self.rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return text.getvalue()

    def as_markdown(self) -> str:
        """Four significant digits."""
        columns = list(self.rows[0])
        lines = [self.note, "", "| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
        lines += ["| " + " | ".join(_text(row[column]) for column in columns) + " |" for row in self.rows]
        return "\n".join(lines) + "\n"


def _text(value: Value) -> str:
    match value:
        case None:
            return "-"
        case float():
            return f"{value:.4g}"
        case _:
            return str(value)

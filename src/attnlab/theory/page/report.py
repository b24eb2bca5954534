"""The table of `attnlab page`, for a terminal and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from attnlab.theory.page.rules import Outcome, Row

WIDTHS = {"id": 14, "what": 42, "printed": 22, "ours": 22, "tolerance": 12, "class": 8, "result": 7}


def table(rows: Sequence[Row]) -> str:
    """One line a result; long values are cut, and printed in full below where they fail or are the only ones."""
    lines = [_line(list(WIDTHS)), "-" * (sum(WIDTHS.values()) + 2 * (len(WIDTHS) - 1))]
    lines += [_line(list(_cells(row).values())) for row in rows]
    in_full = [row for row in rows if row.outcome is Outcome.failed or len(rows) <= 4]
    for row in in_full:
        cells = _cells(row)
        lines += [
            "",
            f"{cells['id']}  {cells['what']}",
            f"  printed  {cells['printed']}",
            f"  ours     {cells['ours']}",
        ]
        if row.printed.stream:
            lines.append(f"  stream   {row.printed.stream}")
    return "\n".join([*lines, "", summary(rows)])


def summary(rows: Sequence[Row]) -> str:
    """One sentence: how many of each outcome."""
    count = Counter(row.outcome for row in rows)
    parts = [f"{count[Outcome.passed]} pass", f"{count[Outcome.failed]} fail"]
    if count[Outcome.new]:
        parts.append(f"{count[Outcome.new]} new numbers of other weights than the page's")
    if count[Outcome.needs_weights]:
        parts.append(f"{count[Outcome.needs_weights]} need the released weights (--released PATH_OR_ID)")
    if count[Outcome.claim]:
        parts.append(f"{count[Outcome.claim]} are claims that the studies test")
    return f"{len(rows)} result{'s' * (len(rows) != 1)}: " + ", ".join(parts) + "."


def as_json(rows: Sequence[Row]) -> str:
    """A list of objects with every field, in the table's order."""
    return json.dumps(
        [{**_cells(row), "stream": row.printed.stream} for row in rows], ensure_ascii=False, indent=1
    )


def _cells(row: Row) -> dict[str, str]:
    printed = row.printed
    values = (
        printed.id, printed.what, printed.rule.printed, row.ours, printed.rule.tolerance, printed.kind.value,
        row.outcome.value,
    )  # fmt: skip
    return dict(zip(WIDTHS, values, strict=True))


def _line(cells: Sequence[str]) -> str:
    cut = (
        text if len(text) <= width else text[: width - 1] + "…"
        for text, width in zip(cells, WIDTHS.values(), strict=True)
    )  # fmt: skip
    return "  ".join(text.ljust(width) for text, width in zip(cut, WIDTHS.values(), strict=True)).rstrip()

"""Every number that the page prints, recomputed with our own attention: `attnlab page`.

The printed numbers are data in `printed.py`; the modules that compute ours never see them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from attnlab.errors import UserError
from attnlab.theory.page import (
    equation_one,
    footnote_four,
    mask_example,
    multi_head,
    printed,
    report,
    three_uses,
)
from attnlab.theory.page.marian import views_of_released
from attnlab.theory.page.own_run import LoadRun, views_of_run
from attnlab.theory.page.rules import Kind, Ours, Outcome, Printed, Row, judge, new_number
from attnlab.theory.page.views import Views, view_results

RESULTS = 69


@dataclass(frozen=True)
class Section:
    """Results of the page that one function computes."""

    printed: tuple[Printed, ...]
    compute: Callable[[], Iterator[tuple[str, Ours]]]

    def rows(self) -> list[Row]:
        """Every printed result of the section beside ours."""
        ours = dict(self.compute())
        claims = {entry.id for entry in self.printed if entry.kind is Kind.claim}
        if ours.keys() != {entry.id for entry in self.printed} - claims:
            raise ValueError(
                f"computed and printed results differ: {ours.keys() ^ {e.id for e in self.printed}}"
            )
        return [
            Row(entry, "-", Outcome.claim) if entry.id in claims else judge(entry, ours[entry.id])
            for entry in self.printed
        ]


SECTIONS = (
    Section(printed.EQUATION_ONE, equation_one.results),
    Section(printed.FOOTNOTE_FOUR, footnote_four.results),
    Section(printed.MULTI_HEAD, multi_head.results),
    Section(printed.THREE_USES, three_uses.results),
    Section(printed.MASK_EXAMPLE, mask_example.results),
)


def rows(only: Sequence[str] = (), views: Views | None = None) -> list[Row]:
    """Printed results beside ours, in the page's order; `only` names results (S20, S12.shape), () is all.

    Without `views` the results about trained weights are listed as needing them.
    """
    entries = [entry for section in SECTIONS for entry in section.printed] + list(printed.RELEASED)
    known = {entry.id for entry in entries} | {entry.number for entry in entries}
    for name in only:
        if name not in known:
            raise UserError(f"only: got '{name}', allowed: S01 to S{RESULTS}, or a part such as S12.shape")

    def wanted(entry: Printed) -> bool:
        return not only or entry.id in only or entry.number in only

    found = [row for s in SECTIONS if any(map(wanted, s.printed)) for row in s.rows() if wanted(row.printed)]
    found += [row for row in weight_rows(views) if wanted(row.printed)]
    return sorted(found, key=lambda row: int(re.sub(r"\D", "", row.printed.number)))


def weight_rows(views: Views | None) -> Iterator[Row]:
    """The results about trained weights: judged on the page's, listed as new on others, waiting without any."""
    ours = {} if views is None else dict(view_results(views))
    for entry in printed.RELEASED:
        if entry.kind is Kind.claim:
            yield Row(entry, "-", Outcome.claim)
        elif views is None:
            yield Row(entry, "-", Outcome.needs_weights)
        elif entry.id not in ours:
            yield Row(entry, views.missing, Outcome.needs_weights)
        elif views.are_the_page_s:
            yield judge(entry, ours[entry.id])
        else:
            yield new_number(entry, ours[entry.id])


def run(
    only: Sequence[str] = (), as_json: bool = False, released: str | None = None, run: str | None = None,
    load_run: LoadRun | None = None,
) -> int:  # fmt: skip
    """Print the table (or JSON); exit code 1 if any result fails, else 0.

    `released` is a folder or a Hub id of the page's model. `run` names a trained run of ours, which `load_run` turns
    into a model and its tokenizer; its numbers are printed as new, never as the page's.
    """
    if released is not None and run is not None:
        raise UserError("released: got a model beside run, allowed: one of the two")
    views = None
    if released is not None:
        views = views_of_released(released)
    elif run is not None:
        if load_run is None:
            raise ValueError("a run needs load_run, which loads its model and tokenizer")
        views = views_of_run(*load_run(run))
    found = rows(only, views)
    print(report.as_json(found) if as_json else report.table(found))
    return int(any(row.outcome is Outcome.failed for row in found))

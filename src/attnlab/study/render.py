"""A study's table as Markdown to read, CSV to compute with, LaTeX (booktabs) to print."""

from __future__ import annotations

import csv as csv_module
import io
import math
import re
from collections.abc import Iterator, Sequence

from attnlab.study.claims import Judged, Verdict
from attnlab.study.statistics import RESAMPLES, Estimate, Interval
from attnlab.study.table import Column, Row, StudyTable
from attnlab.tracking.status import State

LEGEND = """\
Mean ± sd [95% t-interval] over seeds; Δ: cell - control, paired by seed, over the seeds that both have. n: seeds that are \
done, of all; those that diverged or failed are counted, never averaged. One seed has no sd and no interval, and its Δ \
says nothing about another training. p: paired t-test, Holm-corrected over the differences of this table. (all equal): \
every seed has this number, and a t-interval would have no width; exact: the binomial interval over the sentences of the \
test set, of these seeds."""
LOSS_AND_BLEU = """\
dev nll: teacher-forced, nats a token, by the arm's own code; prefix nll: each token scored from its own prefix. A prefix \
nll far above the dev nll is a leak: the model was shown the future while it trained. BLEU (protocol), length ratio and \
share of empty translations are of the test set."""
CHOSEN = """\
The columns are those that the study asks for (study.columns), by the names of the results in a run's status.json, to \
three digits. All others are in table.csv."""
VERDICTS = """\
Confirmed: the 95% interval over seeds lies inside the bounds; refuted: outside; inconclusive: it meets the edge, there \
is none, or runs are missing or failed (provisional). The interval of a share of translations is over the sentences of one \
test set, of these seeds, and over seeds where that is wider. These intervals are not corrected for the number of claims."""
CHECKS = """\
What holds by construction: a control on the harness and no prediction, so it is counted apart. A check that is not \
confirmed says that code or data are not what they seem."""
SENTENCES = """\
BLEU on {} resampled test sets (sentence-level paired bootstrap). A row with a seed is about the test set alone: these \
weights, other sentences. `all`: seeds resampled too; with few seeds that interval is too narrow, so read it beside the \
t-interval above. p is sacreBLEU's: how often a resampled |Δ|, less their mean, is above the |Δ| of the test set; where all \
resampled Δ have one sign that is one tail, about half of a two-sided p."""
CSV_COLUMNS = (
    "arm", "settings", "control", "metric", "seeds", "diverged", "failed", "n", "mean", "sd", "low", "high",
    "difference_n", "difference", "difference_sd", "difference_low", "difference_high", "p", "p_holm",
    "bootstrap_low", "bootstrap_high", "run_ids", "problem",
)  # fmt: skip
_TEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"} | {
    character: "\\" + character for character in "_&%$#{}"
}


def markdown(table: StudyTable) -> str:
    """The whole table with verdicts, alarms and provenance; ends in a newline."""
    parts = [f"# Study {table.study}", f"**{table.missing}**" if table.missing else ""]
    parts += [table.question, f"Control: {table.control or 'none'}."]
    parts += [
        _lines(["cell", "n", *_titles(table.columns), "notes"], [_row(row, table) for row in table.rows])
    ]
    parts += [legend(table.columns)]
    if table.notes:
        parts += [_bullets(table.notes)]
    if sentences := [cells for row in table.rows for cells in _sentence_rows(row)]:
        head = ["cell", "seed", "BLEU", "control", "Δ [95%]", "p"]
        parts += ["## Sentences", _lines(head, sentences), SENTENCES.format(RESAMPLES)]
    claims, checks = ([one for one in table.claims if one.claim.check is check] for check in (False, True))
    parts += ["## Claims"]
    parts += _claims(claims, VERDICTS) if claims else ["None are registered (expected.yaml)."]
    parts += ["## Checks", *_claims(checks, CHECKS)] if checks else []
    alarms = [f"{row.cell.label}, seed {run.seed}: {alarm}" for row in table.rows for run in row.cell.runs
              for alarm in run.status.alarms]  # fmt: skip
    parts += ["## Alarms", _bullets(alarms) if alarms else "None."]
    parts += ["## Provenance", _bullets(f"{name}: {_code(name, text)}" for name, text in table.origin.lines)]
    ids = [f"{row.cell.label}: {', '.join(run.run_id for run in row.cell.runs)}" for row in table.rows
           if row.cell.runs]  # fmt: skip
    parts += ["## Run ids", _bullets(ids)]
    return "\n\n".join(part for part in parts if part) + "\n"


def csv(table: StudyTable) -> str:
    """One line a cell and metric, every metric but those of single heads; numbers to ten digits, empty for none."""
    text = io.StringIO()
    writer = csv_module.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for row in table.rows:
        cell = row.cell
        head = [cell.arm, " ".join(cell.settings), row.control.label if row.control else ""]
        counts = [len(cell.runs), len(cell.with_state(State.diverged)), len(cell.with_state(State.failed))]
        tail = [" ".join(run.run_id for run in cell.runs), cell.problem or ""]
        for metric in row.estimates or [""]:
            one, compared = row.estimates.get(metric), row.differences.get(metric)
            both = row.both.interval if row.both is not None and metric == table.bleu else None
            numbers = [*_numbers(one), *_numbers(compared.estimate if compared else None)]
            ps = (
                [None if math.isnan(p) else p for p in (compared.p, compared.p_holm)]
                if compared
                else [None] * 2
            )
            ends = [both.low, both.high] if both else [None, None]
            fields = [*head, metric, *counts, *map(_ten_digits, [*numbers, *ps, *ends]), *tail]
            writer.writerow(fields)
    return text.getvalue()


def latex(table: StudyTable) -> str:
    """A booktabs tabular to \\input, its provenance in comments."""
    printed = [_row(row, table, notes=False) for row in table.rows]
    titles = ["cell", "$n$", *(_tex(title).replace("Δ", r"$\Delta$") for title in _titles(table.columns))]
    body = [" & ".join([_tex(label), *map(_tex_cell, numbers)]) + r" \\" for label, *numbers in printed]
    comments = [f"% {name}: {text}" for name, text in table.origin.lines]
    notes = [f"% {note}" for note in [*([table.missing] if table.missing else []), *table.notes]]
    invalid = [f"% {row.cell.label}: {_state(row)}" for row in table.rows if _state(row)]
    return "\n".join([
        f"% study {table.study}; needs \\usepackage{{booktabs}}", *comments, *notes, *invalid,
        rf"\begin{{tabular}}{{l{'r' * (len(titles) - 1)}}}", r"\toprule", " & ".join(titles) + r" \\", r"\midrule",
        *body, r"\bottomrule", r"\end{tabular}", "",
    ])  # fmt: skip


def legend(columns: Sequence[Column]) -> str:
    """How to read a table of these columns."""
    chosen = all(column.digits is None for column in columns)
    return f"{LEGEND}\n{CHOSEN if chosen else LOSS_AND_BLEU}"


def fixed(value: float, digits: int | None, sign: str = "") -> str:
    """As tables and pages print a number, in fixed digits (what rounds to 0 has no minus); None: three that count."""
    if math.isnan(value):
        return "NaN"
    return f"{value:{sign}z.3g}" if digits is None else f"{value:{sign}z.{digits}f}"


def _titles(columns: Sequence[Column]) -> list[str]:
    return [title for c in columns for title in ([c.title, "Δ"] if c.compared else [c.title])]


def _row(row: Row, table: StudyTable, notes: bool = True) -> list[str]:
    seeds = len(row.cell.runs) + len(row.cell.missing)
    cells = [row.cell.label, f"{len(row.cell.with_state(State.done))}/{seeds}"]
    for column in table.columns:
        one = row.estimates.get(column.metric)
        text = "-" if one is None else _estimate(one, column.digits)
        if one is not None and (exact := row.exact.get(column.metric)) is not None:
            text = f"{fixed(one.mean, column.digits)} {_interval(exact, column.digits)} exact"
        cells.append(text)
        if column.compared:
            compared = row.differences.get(column.metric)
            p = f", p {compared.p_holm:.2g}" if compared and not math.isnan(compared.p_holm) else ""
            cells.append(_estimate(compared.estimate, column.digits, "+") + p if compared else "-")
    return [*cells, "; ".join(_notes(row))] if notes else cells


def _state(row: Row) -> str:
    """What became of the runs that are not done, and why a cell has none."""
    if row.cell.problem is not None:
        return f"invalid: {row.cell.problem}"
    found = []
    for state in (State.diverged, State.failed):
        if runs := row.cell.with_state(state):
            which = ", ".join(
                f"seed {run.seed}" + (f" at step {run.status.step}" if state is State.diverged else "")
                for run in runs
            )
            found.append(f"{state} {len(runs)} of {len(row.cell.runs)} ({which})")
    if missing := row.cell.missing:
        found.append(f"missing {len(missing)} (seed {', '.join(map(str, missing))})")
    return "; ".join(found)


def _notes(row: Row) -> Iterator[str]:
    if state := _state(row):
        yield state
    for run in row.cell.with_state(State.failed):
        if run.status.reason:
            yield f"seed {run.seed}: {run.status.reason}"
    for run in row.cell.runs:
        if run.status.nan_steps:
            yield f"seed {run.seed}: NaN in {run.status.nan_steps} steps, first {run.status.first_nan_step}"
    if alarmed := [run for run in row.cell.runs if run.status.alarms]:
        yield f"ALARM in {len(alarmed)} of {len(row.cell.runs)}"
    if row.differences and (short := min(d.estimate.n for d in row.differences.values())) < len(
        row.cell.runs
    ):
        yield f"Δ over {short} seeds"


def _sentence_rows(row: Row) -> Iterator[list[str]]:
    for one in row.by_seed:
        drawn = one.resampled
        yield [
            row.cell.label, str(one.seed), fixed(one.bleu, 2), fixed(one.control, 2),
            f"{fixed(drawn.difference, 2, '+')} {_interval(drawn.interval, 2)}", f"{drawn.p:.2g}",
        ]  # fmt: skip
    if row.both is not None and row.both.seeds > 1:
        both = row.both
        yield [
            row.cell.label, "all", "", "", f"{fixed(both.difference, 2, '+')} {_interval(both.interval, 2)}",
            f"{both.p:.2g}",
        ]  # fmt: skip


def _claims(claims: Sequence[Judged], legend: str) -> list[str]:
    found = [one.verdict for one in claims]
    counts = f"{len(found)}: {', '.join(f'{found.count(verdict)} {verdict}' for verdict in Verdict)}."
    head = ["id", "claim", "measured", "predicted", "numbers [95%]", "n", "verdict", "source"]
    return [counts, _lines(head, [_claim(one) for one in claims]), legend]


def _claim(one: Judged) -> list[str]:
    claim = one.claim
    numbers = "; ".join(_estimate(e, 4, sd=False) for e in one.estimates) or "-"
    seeds = ", ".join(str(n) for n in sorted({e.n for e in one.estimates})) or "0"
    bounds = " to ".join(f"{bound:g}" for bound in claim.bounds)
    return [
        claim.id, claim.statement, claim.quantity, f"{claim.direction} {bounds}",
        numbers, seeds, f"{one.verdict}: {one.reason}", claim.source,
    ]  # fmt: skip


def _estimate(one: Estimate, digits: int | None, sign: str = "", sd: bool = True) -> str:
    text = fixed(one.mean, digits, sign)
    if sd and one.sd is not None:
        text += f" ± {fixed(one.sd, digits)}"
    if one.interval is None:
        return text
    if one.interval.low == one.interval.high:  # [0.00, 0.00] would claim a certainty that nothing gives
        return f"{text} (all equal)"
    return f"{text} {_interval(one.interval, digits)}"


def _interval(interval: Interval, digits: int | None) -> str:
    return f"[{fixed(interval.low, digits)}, {fixed(interval.high, digits)}]"


def _numbers(one: Estimate | None) -> list[float | None]:
    if one is None:
        return [None] * 5
    ends = (None, None) if one.interval is None else (one.interval.low, one.interval.high)
    return [one.n, one.mean, one.sd, *ends]


def _ten_digits(value: float | None) -> str:
    return "" if value is None else f"{value:.10g}"


def _lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_one_line(cell) for cell in line) + " |" for line in lines)


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")


def _bullets(lines: Sequence[str] | Iterator[str]) -> str:
    return "\n".join(f"- {' '.join(line.split())}" for line in lines)


def _code(name: str, text: str) -> str:
    return f"`{text}`" if name in ("table", "runs", "scores") else text


def _tex(text: str) -> str:
    return "".join(_TEX.get(character, character) for character in text)


def _tex_cell(text: str) -> str:
    """Escaped, with a minus where text would have a hyphen."""
    return re.sub(r"-(?=\d)", "$-$", _tex(text)).replace("±", r"$\pm$")

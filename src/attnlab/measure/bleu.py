"""Corpus scores of translations by sacreBLEU, with their signatures.

The headline is cased BLEU of detokenised text, tokenised by 13a (Post 2018). Lower-cased BLEU, which sacreBLEU also
tokenises by 13a, is the one to put beside published scores of tokenised, lower-cased text, within about a point.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from attnlab.config import Protocol
from attnlab.errors import UserError

PIECE_LINES = 0.1  # share of lines with marks of pieces from which a text counts as pieces; strays are text
SPACED_STOP_LINES = 0.1  # share of lines that end in " ." from which a text looks tokenised
NGRAM = 4


@dataclass(frozen=True)
class Scores:
    """Scores of one set of translations. BLEU and chrF are from 0 to 100, shares from 0 to 1."""

    bleu: float
    bleu_lower: float
    chrf: float
    length_ratio: float  # tokens of the translations / tokens of the references
    empty: float  # share of translations without text
    distinct: float  # different translations / translations
    tied: float  # share of translations that are the text which stands most often; 0 where each stands once
    sentences: int
    signatures: dict[str, str]  # by the names bleu, bleu_lower, chrf: version, case, tokeniser, smoothing
    warnings: list[str]  # a sentence each

    def metrics(self, protocol: Protocol, split: str = "test") -> dict[str, float]:
        """The numbers by metric name."""
        names = ("bleu", "bleu_lower", "chrf", "length_ratio", "empty", "distinct", "tied", "sentences")
        return {f"{split}/{protocol}/{name}": float(getattr(self, name)) for name in names}


def score(hypotheses: Sequence[str], references: Sequence[str]) -> Scores:
    """Score detokenised text, one reference a line.

    Raises ValueError for no lines or counts that differ, UserError for lines of subword pieces and for references
    that are all empty. An empty translation scores as it is; an empty reference is kept and warned about.
    """
    from sacrebleu.metrics import BLEU, CHRF

    if not hypotheses or len(hypotheses) != len(references):
        raise ValueError(f"got {len(hypotheses)} translations for {len(references)} references")
    for side, lines in (("translations", hypotheses), ("references", references)):
        refuse_pieces(side, lines)
    if not any(line.strip() for line in references):
        raise UserError(
            f"references of the test set: got {len(references)} empty lines, allowed: text to score against"
        )

    cased = BLEU(force=True)  # force: its warning about tokenised text goes to a logger; ours is below
    metrics = {"bleu": cased, "bleu_lower": BLEU(force=True, lowercase=True), "chrf": CHRF()}
    hyp, ref = list(hypotheses), [list(references)]
    results = {name: metric.corpus_score(hyp, ref) for name, metric in metrics.items()}
    if results["bleu"].ref_len == 0:  # sacreBLEU drops "<skipped>"
        raise UserError(
            "references of the test set: got lines without a token, allowed: text to score against"
        )
    most = Counter(hypotheses).most_common(1)[0][1]
    longest = max(len(cased.tokenizer(line).split()) for line in references)
    return Scores(
        # rounded: identical text has a BLEU of 100.00000000000004
        **{name: round(result.score, 9) for name, result in results.items()},
        length_ratio=results["bleu"].sys_len / results["bleu"].ref_len,
        empty=sum(not line.strip() for line in hypotheses) / len(hypotheses),
        distinct=len(set(hypotheses)) / len(hypotheses),
        tied=most / len(hypotheses) if most > 1 else 0.0,
        sentences=len(hypotheses),
        signatures={name: str(metric.get_signature()) for name, metric in metrics.items()},
        warnings=_warnings(hypotheses, references, longest),
    )


def refuse_pieces(side: str, lines: Sequence[str]) -> None:
    """Raise UserError where `lines` are subword pieces, whose BLEU compares with nothing and is usually higher."""
    marked = sum("▁" in line or "@@ " in line or line.endswith("@@") for line in lines)
    if marked > PIECE_LINES * len(lines):
        raise UserError(
            f"{side} of the test set: got subword pieces ('▁' or '@@' in {marked} of {len(lines)} lines), "
            "allowed: detokenised text"
        )


def _warnings(hypotheses: Sequence[str], references: Sequence[str], longest: int) -> list[str]:
    found = []
    empty = [str(number) for number, line in enumerate(references, start=1) if not line.strip()]
    if empty:
        more = f" and {len(empty) - 10} more" if len(empty) > 10 else ""
        found.append(f"empty references (line {', '.join(empty[:10])}{more}): no translation can match them")
    for side, lines in (("translations", hypotheses), ("references", references)):
        spaced = sum(line.rstrip().endswith(" .") for line in lines)
        if spaced > SPACED_STOP_LINES * len(lines):
            found.append(
                f"{spaced} of {len(lines)} {side} end in ' .': text that looks tokenised inflates BLEU"
            )
    if longest < NGRAM:
        found.append(f"no reference has {NGRAM} tokens (at most {longest}): too short for {NGRAM}-gram BLEU")
    return found

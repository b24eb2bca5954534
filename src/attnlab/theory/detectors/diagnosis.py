"""From alarms to the mistake: which wrong line of code explains what the checks saw."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import torch
from torch import Tensor

from attnlab.config import Axes
from attnlab.model.masks import causal
from attnlab.theory import axes_maps
from attnlab.theory.detectors.checks import Check, Finding
from attnlab.theory.detectors.probing import (
    SENTENCES,
    STRESS,
    TOKENS,
    dependence,
    difference,
    draw,
    keep_for,
    leaking,
    masked_weights,
    moving,
)
from attnlab.theory.detectors.subject import Subject


class Mistake(StrEnum):
    """Mistakes that can be told apart."""

    after_softmax = "the mask of the future is applied after the softmax"
    finite_fill = "forbidden scores get a finite number"
    no_mask = "the mask of the future has no effect"
    off_by_one = "the mask lets each token see the next one"
    inverted_mask = "the mask of the future is read the other way round"
    numerics = "large scores overflow or underflow"
    leak = "the future leaks in"
    wrong_split = "heads are split and merged without the transpose"
    wrong_merge = "heads are merged without the transpose"
    wrong_split_only = "heads are split without the transpose, and merged with it"
    mixed_tokens = "tokens are mixed up"
    padding = "padding changes the outputs of real tokens"
    no_scale = "the scores are not divided by sqrt(d_k)"
    other_scale = "the scores have another scale than 1/sqrt(d_k)"
    other_score = "the scores are no scaled dot products"
    softmax_axis = "the softmax runs over the queries"
    not_normalised = "the weights of a query do not sum to 1"
    length = "outputs depend on the length of the sentence"
    different = "the output differs from the library's"


FIX = {
    Mistake.after_softmax: "set forbidden scores to -inf before the softmax, not weights to 0 after it",
    Mistake.finite_fill: "fill forbidden scores with -inf",
    Mistake.no_mask: "pass the mask on to the scores",
    Mistake.off_by_one: "query i may look at key j only if j <= i: tril() with diagonal 0",
    Mistake.inverted_mask: "give the complement, or tell `detect` with mask='drop' that True means may not attend",
    Mistake.numerics: "mask before the softmax, and subtract the maximum of what is left before the exponential",
    Mistake.leak: "look for what mixes positions beside the weights",
    Mistake.wrong_split: "view(B, N, H, d).transpose(1, 2) to split, transpose(1, 2).reshape(B, N, H * d) to merge",
    Mistake.wrong_merge: "transpose(1, 2) before reshape(B, N, H * d)",
    Mistake.wrong_split_only: "view(B, N, H, d) before transpose(1, 2)",
    Mistake.mixed_tokens: "check each reshape with one token changed",
    Mistake.padding: "set the scores of padding keys to -inf before the softmax",
    Mistake.no_scale: "multiply the scores by 1/sqrt(d_k)",
    Mistake.other_scale: "multiply the scores by 1/sqrt(d_k)",
    Mistake.other_score: "no mistake if another score function is meant",
    Mistake.softmax_axis: "softmax over the last axis, the keys",
    Mistake.not_normalised: "softmax over the last axis, the keys",
    Mistake.length: "look for statistics over positions, such as a norm over the token axis",
    Mistake.different: "compare the intermediate results one by one",
}


@dataclass(frozen=True)
class Diagnosis:
    """A mistake and the numbers that point to it."""

    mistake: Mistake
    because: str

    @property
    def fix(self) -> str:
        """What to change."""
        return FIX[self.mistake]


def diagnose(subject: Subject, findings: Sequence[Finding], seed: int = 0) -> list[Diagnosis]:
    """The mistakes that explain the alarms; every alarm is explained by at least one."""
    by_check = {finding.check: finding for finding in findings}

    def alarm(check: Check) -> bool:
        return check in by_check and bool(by_check[check].alarm)

    def says(check: Check) -> str:
        return by_check[check].says

    if alarm(Check.row_sums) and _columns_sum_to_one(subject, seed):  # explains every other alarm
        return [Diagnosis(Mistake.softmax_axis, f"{says(Check.row_sums)}, while columns sum to 1")]
    found: list[Diagnosis] = []
    raised = [check for check in (Check.permutation, Check.causality, Check.prefix) if alarm(check)]
    axes = _axes(subject) if raised else Mistake.mixed_tokens
    if alarm(Check.permutation) or axes is not Mistake.mixed_tokens:
        found.append(Diagnosis(axes, says(raised[0])))
    elif alarm(Check.causality):
        found.append(_future(subject, by_check[Check.causality], seed))
    elif alarm(Check.prefix):
        found.append(Diagnosis(Mistake.length, says(Check.prefix)))
    if alarm(Check.padding) and not alarm(Check.permutation) and not _explains_padding(found):
        found.append(Diagnosis(Mistake.padding, says(Check.padding)))
    if alarm(Check.row_sums) and not found:
        found.append(Diagnosis(Mistake.not_normalised, says(Check.row_sums)))
    if alarm(Check.scale):
        found.append(_scale(by_check[Check.scale]))
    if alarm(Check.library) and not found:
        found.append(Diagnosis(Mistake.different, says(Check.library)))
    return found


def _columns_sum_to_one(subject: Subject, seed: int) -> bool:
    weights = masked_weights(subject, False, torch.Generator().manual_seed(seed))
    if weights is None:
        return False
    columns = weights.sum(-2)
    return difference(columns, torch.ones_like(columns)) <= 10 * subject.tolerance


def _explains_padding(found: Sequence[Diagnosis]) -> bool:
    """Whether a mistake that was found already goes wrong for padding too."""
    explaining = {
        Mistake.after_softmax, Mistake.finite_fill, Mistake.no_mask, Mistake.off_by_one, Mistake.inverted_mask,
        Mistake.numerics,
    }  # fmt: skip
    return any(diagnosis.mistake in explaining for diagnosis in found)


def _future(subject: Subject, finding: Finding, seed: int) -> Diagnosis:
    """Which mistake of the mask lets the future through."""
    generator = torch.Generator().manual_seed(seed)
    keep = causal(TOKENS)
    if finding.evidence["cells"] == 0:
        return Diagnosis(_at_large_scores(subject, generator), finding.says)
    x = draw(subject, 1, TOKENS, generator)
    masked = subject.forward(x, keep_for(subject, TOKENS), None).out
    if subject.takes_keep:
        if difference(masked, subject.forward(x, None, None).out) <= subject.tolerance:
            return Diagnosis(
                Mistake.no_mask, f"{finding.says}; the output is the same with and without the mask"
            )
        if _reads_the_complement(subject, x, keep):
            return Diagnosis(Mistake.inverted_mask, f"{finding.says}; with the opposite mask none does")
    moves = dependence(lambda x: subject.forward(x, keep_for(subject, TOKENS), None).out, x)
    if torch.equal(leaking(moves, subject.tolerance), ~keep & causal(TOKENS + 1)[1:, :-1]):
        return Diagnosis(Mistake.off_by_one, finding.says)
    weights = masked_weights(subject, True, torch.Generator().manual_seed(seed))
    if weights is not None:
        return _from_weights(finding, weights, keep[: weights.shape[-2], : weights.shape[-1]])
    rank = _leak_rank(subject, x)
    if subject.heads is not None and rank <= subject.heads:
        return Diagnosis(Mistake.after_softmax, f"{finding.says}; only by one number a head (rank {rank})")
    return Diagnosis(
        Mistake.finite_fill if subject.takes_keep else Mistake.leak, f"{finding.says} (rank {rank})"
    )


def _at_large_scores(subject: Subject, generator: torch.Generator) -> Mistake:
    """A finite fill takes over once allowed scores fall below it; elsewhere exponentials leave the number range."""
    x = STRESS * draw(subject, SENTENCES, TOKENS, generator)
    weights = masked_weights(subject, True, generator, STRESS)
    if not bool(subject.forward(x, keep_for(subject, TOKENS), None).out.isfinite().all()):
        return Mistake.numerics
    return Mistake.finite_fill if weights is None or bool((weights.triu(1) > 0).any()) else Mistake.numerics


def _reads_the_complement(subject: Subject, x: Tensor, keep: Tensor) -> bool:
    moves = dependence(lambda x: subject.forward(x, ~keep, None).out, x)[
        :-1
    ]  # the last row has no key, or all
    return not bool(leaking(moves, subject.tolerance).any())


def _from_weights(finding: Finding, weights: Tensor, keep: Tensor) -> Diagnosis:
    """After the softmax, the future has weight 0 and rows fall short of 1; a finite fill gives it equal weights."""
    future = (weights * ~keep).sum(-1)
    if future.abs().max() == 0 and weights.sum(-1).min() < 0.999:
        low = weights.sum(-1).min().item()
        return Diagnosis(Mistake.after_softmax, f"{finding.says}; rows sum to as little as {low:.3f}")
    first = weights[..., 0, 1:]
    if difference(first, first.mean(-1, keepdim=True).expand(first.shape)) < 1e-6:
        share = future[..., 0].mean().item()
        return Diagnosis(
            Mistake.finite_fill, f"{finding.says}; equal weights on the future, {share:.3f} in row 1"
        )
    return Diagnosis(Mistake.leak, finding.says)


def _leak_rank(subject: Subject, x: Tensor) -> int:
    """Rank of d y_1 / d x_n: at most one a head where the future enters by the normaliser alone."""
    keep = keep_for(subject, TOKENS)
    full = torch.autograd.functional.jacobian(lambda x: subject.forward(x, keep, None).out[0, 0], x)[:, 0, -1]
    return int(torch.linalg.matrix_rank(full, rtol=1e-6))


def _axes(subject: Subject) -> Mistake:
    """Which wrong reshape has the index algebra that the subject shows; `mixed_tokens` for none."""
    if subject.heads is None:
        return Mistake.mixed_tokens
    x = draw(subject, 1, TOKENS, torch.Generator().manual_seed(2))
    moves = dependence(lambda x: subject.forward(x, keep_for(subject, TOKENS), None).out, x)
    seen = moving(moves, subject.tolerance)
    matches = {
        mistake: torch.equal(seen, axes_maps.visible(TOKENS, subject.heads, split, merge, subject.causal))
        for mistake, split, merge in _wrong_axes()
    }
    fitting = [mistake for mistake, fits in matches.items() if fits]
    return fitting[0] if len(fitting) == 1 else Mistake.mixed_tokens


def _wrong_axes() -> Iterator[tuple[Mistake, Axes, Axes]]:
    yield Mistake.wrong_split, Axes.no_transpose, Axes.no_transpose
    yield Mistake.wrong_merge, Axes.heads_first, Axes.no_transpose
    yield Mistake.wrong_split_only, Axes.no_transpose, Axes.heads_first


def _scale(finding: Finding) -> Diagnosis:
    """The usual wrong scales by name."""
    evidence = finding.evidence
    slope, fit = evidence["slope"], evidence["R^2"]
    if math.isnan(fit) or fit < 0.999:
        return Diagnosis(Mistake.other_score, finding.says)
    if math.isclose(slope, 1, rel_tol=1e-3):
        return Diagnosis(Mistake.no_scale, finding.says)
    named = {"1/d_k": 1 / evidence["d_k"], "1/sqrt(d_model)": evidence["width"] ** -0.5}
    for name, value in named.items():
        if math.isclose(slope, value, rel_tol=1e-3):
            return Diagnosis(Mistake.other_scale, f"{finding.says}: that is {name}")
    return Diagnosis(Mistake.other_scale, finding.says)

"""Which mistake does an attention have? Checks for any callable of yours, most of which need no reference.

Example:
    from attnlab.theory import detect

    report = detect(my_attention)   # a module, or a function (q, k, v, mask)
    print(report)
    assert report.ok

The table of all checks on all our arms is in docs/detectors.md.
"""

from __future__ import annotations

from typing import Any

import torch

from attnlab.errors import UserError
from attnlab.theory.detectors.adapters import subject_of
from attnlab.theory.detectors.checks import Check, Finding, run_check
from attnlab.theory.detectors.diagnosis import Diagnosis, Mistake, diagnose
from attnlab.theory.detectors.functions import MaskStyle
from attnlab.theory.detectors.probing import draw, keep_for
from attnlab.theory.detectors.report import Report
from attnlab.theory.detectors.subject import Projections, Seen, Subject

__all__ = [
    "Check",
    "Diagnosis",
    "Finding",
    "MaskStyle",
    "Mistake",
    "Projections",
    "Report",
    "Seen",
    "Subject",
    "detect",
]


def detect(
    attention: Any, *, mask: MaskStyle | str = MaskStyle.keep, causal: bool = False, positions: bool = False,
    heads: int | None = None, width: int | None = None, dtype: torch.dtype = torch.float64, seed: int = 0,
) -> Report:  # fmt: skip
    """Run every check that fits on `attention` and say which mistakes it has.

    `attention` is one of
    - a function of ready heads (q, k, v[, mask]), [B,H,N,d], [B*H,N,d] or [N,d], that returns the output or
      (output, weights, ...);
    - torch.nn.MultiheadAttention, a Hugging Face block with q_proj, k_proj, v_proj and out_proj, or our own block;
    - a module or function of tokens, (x[, mask]) or (query, key, value[, mask]), [B,N,width] -> [B,N,width], with
      `width` and, for naming wrong axes, `heads`;
    - a `Subject` that you make yourself.

    Its mask argument may be called mask, attn_mask, attention_mask or keep; `mask` says what it means: keep (True =
    may attend), drop (True = may not), additive (0 or -inf) or none. `causal`: it hides the future by itself.
    `positions`: it knows where tokens stand, so permuting them may change its output. Modules are copied to float64 and
    evaluated without dropout; functions are called with tensors of `dtype`.
    Raises UserError where `attention` cannot be called in one of these ways, or is not deterministic.
    """
    if mask not in list(MaskStyle):
        raise UserError(f"mask: got '{mask}', allowed: {', '.join(MaskStyle)}")
    subject = subject_of(
        attention,
        mask=MaskStyle(mask),
        hides_future=causal,
        positions=positions,
        heads=heads,
        width=width,
        dtype=dtype,
    )
    _check_output(subject, seed)
    findings = [run_check(check, subject, seed) for check in Check]
    return Report(subject.name, findings, diagnose(subject, findings, seed))


@torch.no_grad()
def _check_output(subject: Subject, seed: int) -> None:
    """The output must have the shape of x, and must be the same twice."""
    x = draw(subject, 2, 5, torch.Generator().manual_seed(seed))
    try:
        first, second = (subject.forward(x, keep_for(subject, 5), None).out for _ in range(2))
    except Exception as error:  # the user's code may raise anything
        raise UserError(
            f"check: got {subject.name}, which raises {type(error).__name__} on x of shape {tuple(x.shape)} "
            f"({' '.join(str(error).split())[:120]}), allowed: an attention of tokens [B,N,{subject.width}]"
        ) from error
    if first.shape != x.shape:
        raise UserError(
            f"check: got {subject.name} with output {tuple(first.shape)} for x {tuple(x.shape)}, allowed: the same shape"
        )
    if not torch.equal(first.nan_to_num(), second.nan_to_num()):
        raise UserError(
            f"check: got {subject.name}, whose output differs between two equal calls, allowed: one without dropout"
        )

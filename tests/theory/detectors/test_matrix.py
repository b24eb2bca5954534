"""The detector matrix: each arm is caught, the correct one is not, and the table in the docs is this one."""

from pathlib import Path

import pytest

from attnlab.theory import Check, Mistake
from attnlab.theory.detectors.matrix import FINITE_FILLS, arms, as_markdown, matrix

DOCS = Path(__file__).parents[3] / "docs" / "detectors.md"
EXPECTED = {
    "correct": (set(), None),
    "no_scale": ({Check.scale, Check.library}, Mistake.no_scale),
    "no_scale_folded": ({Check.scale, Check.library}, Mistake.no_scale),
    "scale_d_k": ({Check.scale, Check.library}, Mistake.other_scale),
    "scale_d_model": ({Check.scale, Check.library}, Mistake.other_scale),
    "additive": ({Check.scale, Check.library}, Mistake.other_score),
    "qk_norm": ({Check.scale, Check.library}, Mistake.other_score),
    "mask_after_softmax": (
        {Check.causality, Check.prefix, Check.row_sums, Check.library}, Mistake.after_softmax
    ),
    "zero_fill": ({Check.causality, Check.prefix, Check.library}, Mistake.finite_fill),
    "no_mask": ({Check.causality, Check.prefix, Check.library}, Mistake.no_mask),
    "inverted_mask": ({Check.causality, Check.prefix, Check.row_sums, Check.library}, Mistake.inverted_mask),
    "wrong_split": ({Check.prefix, Check.permutation, Check.padding, Check.library}, Mistake.wrong_split),
    "wrong_merge": (
        {Check.causality, Check.prefix, Check.permutation, Check.padding, Check.library}, Mistake.wrong_merge
    ),
    "wrong_split_only": (
        {Check.causality, Check.prefix, Check.permutation, Check.padding, Check.library}, Mistake.wrong_split_only
    ),
    # equal to correct, until the kept mass underflows: 0/0 at scores of a few thousand
    "mask_after_softmax_renormalized": ({Check.causality}, Mistake.numerics),
    "finite_fill_20": ({Check.causality}, Mistake.finite_fill),
    "finite_fill": ({Check.causality}, Mistake.finite_fill),
}  # fmt: skip


@pytest.fixture(scope="module")
def reports():
    return matrix(arms())


def test_every_arm_has_its_row(reports):
    assert set(reports) == set(EXPECTED)


@pytest.mark.parametrize("arm", EXPECTED)
def test_alarms_and_diagnosis(arm, reports):
    alarms, mistake = EXPECTED[arm]
    assert set(reports[arm].alarms) == alarms
    assert reports[arm].mistakes == ([] if mistake is None else [mistake])
    assert reports[arm].ok == (arm == "correct")
    assert all(finding.alarm is not None for finding in reports[arm].findings)  # every check applies to ours


def test_every_arm_but_correct_is_caught_without_a_reference(reports):
    for arm, report in reports.items():
        assert (set(report.alarms) - {Check.library} != set()) == (arm != "correct")


def test_the_library_comparison_alone_misses_finite_masks(reports):
    assert all(Check.library not in reports[arm].alarms for arm in FINITE_FILLS)


def test_the_table_in_the_docs_is_the_measured_one(reports):
    """Print it anew with `python -m attnlab.theory.detectors.matrix`."""
    assert as_markdown(reports) in DOCS.read_text(encoding="utf-8")

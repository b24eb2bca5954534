"""A study may choose the results that its table prints."""

import csv
import io

import pytest
from made_up import study_at, write_run
from scipy import stats

from attnlab.cli import main
from attnlab.errors import UserError
from attnlab.report.study import study_page
from attnlab.study import render, table

GRADIENT, SD = "final/probe/grad_q_rms/encoder", "final/probe/logit_std/encoder"
VALUES = {"correct": {1: 2e-5, 2: 4e-5, 3: 3e-5}, "zero_fill": {1: 12e-5, 2: 14e-5, 3: 13e-5}}


def lab_with(tmp_path, columns, more=None, protocols="[prefix]"):
    settings = ["seed=1,2,3", f"study.columns={columns}", f"decode.protocols={protocols}"]
    lab = study_at(tmp_path / "outputs", *settings)
    for (arm, seed), planned in lab.runs.items():
        results = {GRADIENT: VALUES[arm][seed], SD: 7.5, "final/dev/nll": 2.0, "final/dev/prefix_nll": 2.0}
        write_run(planned, results | (more or {}))
    return lab


def test_a_table_of_chosen_columns_shows_small_numbers_with_three_digits_and_no_loss(tmp_path):
    lab = lab_with(tmp_path, f"[{GRADIENT},{SD}]")
    built = table.build(lab.study, lab.items, [])
    shown = render.markdown(built)
    # mean 3e-5 with sd 1e-5, 13e-5 with 1e-5; each seed's difference is 1e-4; half an interval: 4.303 sd / sqrt(3)
    assert "| correct | 3/3 | 3e-05 ± 1e-05 [5.16e-06, 5.48e-05] | - | 7.5 ± 0 (all equal) | - |" in shown
    assert "| zero_fill | 3/3 | 0.00013 ± 1e-05 [0.000105, 0.000155] | +0.0001 ± " in shown
    assert "| cell | n | probe/grad_q_rms/encoder | Δ | probe/logit_std/encoder | Δ | notes |" in shown
    assert "## Sentences" not in shown
    assert "teacher-forced" not in shown
    assert "study.columns" in shown
    rows = list(csv.DictReader(io.StringIO(render.csv(built))))
    assert {"final/dev/nll", GRADIENT, SD} <= {row["metric"] for row in rows}  # all is there to compute with
    page = study_page(lab.study, lab.items, [])
    assert [column.metric for column in page.columns] == [GRADIENT, SD]
    assert page.rows[1][0].number.mean == "0.00013"
    assert page.legend in shown


def test_a_column_of_one_head_is_shown_too(tmp_path):
    head = "final/probe/logit_std/encoder/layer1/head1"
    lab = lab_with(tmp_path, f"[{head}]", {head: 7.25})
    built = table.build(lab.study, lab.items, [])
    assert built.rows[0].estimates[head].mean == 7.25
    assert "| correct | 3/3 | 7.25 ± 0 (all equal) |" in render.markdown(built)


def test_a_share_of_either_protocol_has_the_interval_of_its_own_sentences(tmp_path):
    prefix, cached = "test/prefix/empty", "test/cached/empty"
    shares = {cached: 1.0, "test/cached/sentences": 30.0}  # prefix: 0 of 30 by its translations
    lab = lab_with(tmp_path, f"[{cached},{prefix}]", shares, protocols="[prefix,cached]")
    row = table.build(lab.study, lab.items, []).rows[0]
    every, none = (stats.binomtest(k, 30).proportion_ci(method="exact") for k in (30, 0))
    assert (row.exact[cached].low, row.exact[cached].high) == pytest.approx((every.low, every.high))
    assert (row.exact[prefix].low, row.exact[prefix].high) == pytest.approx((none.low, none.high))


def test_the_bootstrap_stands_at_the_bleu_that_was_resampled(tmp_path):
    columns = "[test/cached/bleu,test/prefix/bleu]"
    lab = lab_with(tmp_path, columns, {"test/cached/bleu": 1.0}, protocols="[prefix,cached]")
    assert table.build(lab.study, lab.items, []).bleu == "test/prefix/bleu"


def test_losses_and_bleu_are_shown_where_nothing_is_chosen(tmp_path):
    lab = lab_with(tmp_path, "[]")
    built = table.build(lab.study, lab.items, [])
    assert [column.title for column in built.columns][:2] == ["dev nll", "prefix nll"]
    assert "teacher-forced" in render.markdown(built)


def test_a_column_that_no_run_has_is_one_sentence_with_the_likely_name(tmp_path, capsys):
    lab = lab_with(tmp_path, "[final/probe/grad_q_rsm/encoder]")
    with pytest.raises(
        UserError, match=r"^study.columns: got final/probe/grad_q_rsm/encoder, allowed .*" + GRADIENT
    ):
        table.build(lab.study, lab.items, [])
    assert main(["table", *lab.items, "--out", str(tmp_path)]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_column_twice_would_count_twice_in_holms_correction(tmp_path):
    lab = lab_with(tmp_path, f"[{SD},{SD}]")
    with pytest.raises(UserError, match=f"^study.columns: got {SD} twice"):
        table.build(lab.study, lab.items, [])

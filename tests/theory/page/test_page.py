"""`attnlab page`: every result is there, all that needs no weights agrees, and a wrong attention is noticed."""

import json
import time

import pytest
import torch

from attnlab.errors import UserError
from attnlab.theory import page
from attnlab.theory.page import printed
from attnlab.theory.page.rules import Kind, Outcome


@pytest.fixture(scope="module")
def rows():
    return page.rows()


def test_every_result_is_accounted_for_once(rows):
    assert sorted({row.printed.number for row in rows}) == [f"S{i:02}" for i in range(1, 70)]
    ids = [row.printed.id for row in rows]
    assert len(ids) == len(set(ids))


def test_all_that_needs_no_weights_agrees(rows):
    for row in rows:
        match row.printed.kind:
            case Kind.released:
                assert row.outcome is Outcome.needs_weights
            case Kind.claim:
                assert row.outcome is Outcome.claim
            case _:
                assert row.outcome is Outcome.passed, (row.printed.id, row.ours)


def test_golden_results_name_their_random_stream(rows):
    golden = [row.printed for row in rows if row.printed.kind is Kind.golden]
    assert len(golden) == 15
    assert all(entry.stream for entry in golden)
    assert all(
        entry.stream is None for entry in (row.printed for row in rows) if entry.kind is not Kind.golden
    )


def test_the_whole_page_takes_under_20_seconds_and_leaves_the_global_random_stream_alone():
    start, before = time.perf_counter(), torch.random.get_rng_state()
    page.rows()
    assert time.perf_counter() - start < 20
    assert torch.equal(torch.random.get_rng_state(), before)


def test_only_selects_results_and_their_parts(capsys):
    assert page.run(only=["S20", "S12.shape"]) == 0
    out = capsys.readouterr().out
    assert "-15.8 9.5 0.8407 0.1339" in out
    assert "S12.shape" in out
    assert "S12.difference" not in out
    assert "seed 0" in out  # few results are printed in full
    with pytest.raises(UserError, match="S70"):
        page.run(only=["S70"])


def test_json_has_every_field(capsys):
    page.run(only=["S22"], as_json=True)
    (row,) = json.loads(capsys.readouterr().out)
    assert row == {
        "id": "S22", "what": "d_k 512 unscaled", "printed": "-60.1 46.0 1.0000 0.0000",
        "ours": "-60.1 46.0 1.0000 0.0000", "tolerance": "digits", "class": "golden", "result": "pass",
        "stream": printed.SEED_0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("target", "wrong", "only"),
    [
        ("attnlab.theory.page.equation_one.attend", {"scale": 1.0}, "S02"),
        ("attnlab.theory.page.mask_example.attend", {"mask_fill": -1.0}, "S52"),
    ],
)
def test_a_wrong_attention_fails_with_exit_code_1(monkeypatch, capsys, target, wrong, only):
    from attnlab.model.attention import attend

    monkeypatch.setattr(target, lambda *args, **factors: attend(*args, **{**factors, **wrong}))
    assert page.run(only=[only]) == 1
    assert "FAIL" in capsys.readouterr().out


def test_a_result_that_is_computed_but_not_printed_is_an_error(monkeypatch):
    section = page.Section(printed.EQUATION_ONE[:1], lambda: iter([("S01", 0), ("S02", 0)]))
    with pytest.raises(ValueError, match="S02"):
        section.rows()

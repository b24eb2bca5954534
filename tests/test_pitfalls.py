"""Rows of docs/pitfalls.md that need the whole program; the others stand beside what they test."""

import re
from pathlib import Path

import pytest
import torch
from end_to_end.conftest import SMALL

from attnlab.compose import load
from attnlab.model.masks import causal
from attnlab.run import run
from attnlab.tracking.status import State

ROOT = Path(__file__).parents[1]


def test_R01_the_one_mask_type_says_what_may_be_seen():
    scores = torch.zeros(4, 4).masked_fill(~causal(4), -torch.inf)
    weights = scores.softmax(-1)
    assert weights.triu(1).count_nonzero() == 0
    assert weights[0].tolist() == [1, 0, 0, 0]
    torch.testing.assert_close(weights[3], torch.full((4,), 0.25))


def test_R01_an_inverted_mask_raises_its_alarm_before_it_trains(tmp_path):
    """There is no argument for a mask that could be passed the wrong way round; the mistake has to be asked for."""
    untrained = [*SMALL, f"output={tmp_path}", "track=none", "train.steps=0", "train.warmup=0"]
    alarms = run(load([*untrained, "attention=inverted_mask"]), bar=False).status.alarms
    assert any("empty rows" in alarm and "decoder" in alarm for alarm in alarms), alarms
    right = run(load(untrained), bar=False).status.alarms
    assert not any("empty rows" in alarm for alarm in right)


def _write_corpus(folder, extra):
    """Sixty pairs of words, and in each split one more pair."""
    folder.mkdir()
    for stem, count in (("train", 60), ("val", 6), ("test_2016_flickr", 6)):
        for code in ("en", "de"):
            lines = [f"{code} word {stem} {i} of {i % 7}" for i in range(count)]
            (folder / f"{stem}.{code}").write_text("\n".join([*lines, extra(stem, code)]) + "\n")
    return [
        *SMALL, "data=files", f"data.dir={folder}", "data.train_pairs=null", "data.dev_pairs=null", "data.test_pairs=null",
        "data.tokenizer.vocab_size=70", "track=none", f"output={folder}/outputs", "train.steps=2", "train.warmup=1",
    ]  # fmt: skip


def test_R31_over_long_lines_cost_train_its_pair_and_the_test_set_nothing(tmp_path):
    """A line of 3,000 pieces on one side and one of 10,000 bytes on the other, in each split."""
    overrides = _write_corpus(
        tmp_path / "text", lambda stem, code: f"{stem} {'7 ' * 3000 if code == 'en' else 'of' * 5000}"
    )
    outcome = run(load(overrides), bar=False)
    report = outcome.folder.read_provenance()["data_report"]
    assert outcome.status.state is State.done
    assert report["train/too_long"] == 1
    assert (report["dev/pairs"], report["test/pairs"]) == (7, 7)
    assert len(outcome.folder.read_translations("test.prefix")) == 7


@pytest.mark.parametrize(("policy", "alarmed"), [("keep", True), ("remove", False)])
def test_R37_a_run_that_trains_on_test_sentences_says_so_in_its_status(tmp_path, policy, alarmed):
    overrides = _write_corpus(tmp_path / "text", lambda stem, code: f"{code} the same everywhere")
    status = run(load([*overrides, f"data.overlap={policy}"]), bar=False).status
    assert any("stand in the test set" in alarm for alarm in status.alarms) == alarmed


def test_the_page_of_pitfalls_has_every_row_and_its_tests_are_there():
    """48 rows; every test that a row names exists, and every test of a row is named."""
    page = (ROOT / "docs" / "pitfalls.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (R\d\d) \|.*\|$", page, re.MULTILINE)
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    existing = set(re.findall(r"def (test_(?:R\d\d_)+\w+)", sources))
    assert len(rows) == len(set(rows)) == 48
    assert set(re.findall(r"`(test_R\w+)`", page)) <= existing
    for row in rows:
        assert any(f"{row}_" in name for name in existing), row

"""`attnlab theory`: tables against the laws, files small and the same each time."""

import csv
import io
import math

import pytest
import torch

from attnlab.config import Axes
from attnlab.errors import UserError
from attnlab.theory import axes_maps
from attnlab.theory.results import leaks, logits, saturation, write
from attnlab.theory.results.table import Table

pytest.importorskip("matplotlib")


@pytest.fixture
def small(monkeypatch):
    """Fewer draws and sizes: the same code in seconds."""
    monkeypatch.setattr(logits, "DRAWS", 20_000)
    monkeypatch.setattr(logits, "KEY_SIZES", (4, 16, 64))
    monkeypatch.setattr(logits, "MODEL_SIZES", ((64, 4),))
    monkeypatch.setattr(saturation, "ROWS", 2_000)
    monkeypatch.setattr(saturation, "GRADIENT_DRAWS", 20_000)


def test_variance_table_lies_within_five_standard_errors(small):
    table = logits.variance_table()
    assert len(table.rows) == 9
    for row in table.rows:
        assert abs(row["mean"]) < 5 * row["se_mean"] * math.sqrt(5)  # the errors are those of DRAWS draws
        assert abs(row["variance"] - row["variance_exact"]) < 5 * row["se_variance"]
        assert row["scaled_sd"] == pytest.approx(1, abs=0.03)


def test_logit_table_agrees_with_the_closed_forms(small):
    for row in logits.logit_table().rows:
        tolerance = 0.12 if row["arm"] == "additive" else 0.05  # one vector v a head: 24 draws of its length
        assert row["sd_measured"] == pytest.approx(row["sd_exact"], rel=tolerance), row


def test_softmax_table_follows_its_laws(small):
    for row in saturation.softmax_table().rows:
        if row["entropy_small_sigma"] is not None:
            assert row["entropy"] == pytest.approx(row["entropy_small_sigma"], abs=0.03)
        if row["trace_saturated"] is not None and row["n"] < 100:
            assert row["trace"] == pytest.approx(row["trace_saturated"], rel=0.2)  # 2,000 draws
        assert row["entropy_p10"] <= row["entropy_p50"] <= row["entropy_p90"] <= math.log(row["n"]) + 1e-9


def test_gradient_table_shows_a_growing_rms_and_a_vanishing_median(small):
    table = saturation.gradient_table()
    for n in (14, 30):
        rms, median = (table.column(f"{name}_ratio", {"n": n}) for name in ("rms", "median"))
        assert rms == sorted(rms)
        assert min(rms) > 1
        assert median[-1] < 0.02 < 1 < median[0]


def test_measured_leak_maps_equal_the_index_algebra():
    maps = leaks.leak_maps()
    for arm, split, merge in (
        ("correct", Axes.heads_first, Axes.heads_first), ("wrong_split", Axes.no_transpose, Axes.no_transpose),
        ("wrong_merge", Axes.heads_first, Axes.no_transpose), ("wrong_split_only", Axes.no_transpose, Axes.heads_first),
    ):  # fmt: skip
        assert torch.equal(maps[arm], axes_maps.visible(leaks.TOKENS, 4, split, merge, causal=True))
    assert maps["mask_after_softmax"].all()
    assert maps["zero_fill"].all()
    row = next(row for row in leaks.leak_table(maps).rows if row["arm"] == "wrong_merge")
    assert (row["future_cells"], row["next_token_visible"], row["past_cells"]) == (45, 9, 91)


def test_tables_are_written_in_full_for_programs_and_short_for_people():
    table = Table("t", "A note.", [{"a": 1, "b": 1 / 3}, {"a": 2, "b": None}])
    assert list(csv.DictReader(io.StringIO(table.as_csv()))) == [
        {"a": "1", "b": str(1 / 3)},
        {"a": "2", "b": ""},
    ]
    assert table.as_markdown() == "A note.\n\n| a | b |\n|---|---|\n| 1 | 0.3333 |\n| 2 | - |\n"
    assert table.column("b", {"a": 1}) == [1 / 3]
    assert math.isnan(table.column("b", {"a": 2})[0])


def test_files_are_small_and_the_same_each_time(small, tmp_path):
    first, second = write(tmp_path / "a"), write(tmp_path / "b")
    assert {path.name for path in first} == {
        *(f"{name}.{suffix}" for name in ("variance", "logits", "softmax", "gradients", "leaks") for suffix in ("csv", "md")),
        "variance.png", "softmax.png", "gradients.png", "leaks.png",
    }  # fmt: skip
    for one, other in zip(first, second, strict=True):
        assert one.stat().st_size < 200_000
        assert one.read_bytes() == other.read_bytes()
        assert b"nan" not in one.read_bytes() or one.suffix == ".png"


def test_without_matplotlib_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(UserError, match=r"attnlab\[figures\]"):
        write(tmp_path)

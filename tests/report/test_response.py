"""The figure along a factor: which cells are a line, where its points stand, and what is refused."""

import math

import matplotlib.pyplot as plt
import pytest

from attnlab.cli import main
from attnlab.report.response import draw, lines_along
from attnlab.report.table_csv import PREFIX, read

BLEU = "test/prefix/bleu"


def cell(arm, settings, loss, bleu):
    half = 0.0 if math.isnan(loss) else 0.25
    return (
        f"{arm},{settings},,{PREFIX},3,0,0,3,{loss},0.1,{loss - half},{loss + half}\n"
        f"{arm},{settings},,{BLEU},3,0,0,3,{bleu},1,,\n"
    )


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(
        "arm,settings,control,metric,seeds,diverged,failed,n,mean,sd,low,high\n"
        + cell("correct", "model.d_k=64", 0.875, 45)
        + cell("correct", "model.d_k=16", 1.0, 42)
        + cell("no_scale", "model.d_k=16", 1.5, 21)
        + cell("no_scale", "model.d_k=64", math.nan, 4)
        + cell(
            "no_scale", "attention.init=xavier_packed model.d_k=64", 1.75, 20
        )  # one value: a point, no line
        + cell("no_scale", "", 1.0, 42)
        + cell("finite_fill", "attention.mask_fill=-1", 6.0, 0)
        + cell("finite_fill", "attention.mask_fill=-10000", 1.0, 42)
        + cell("finite_fill", "attention.mask_fill=-inf", 1.0, 42)
    )
    return path


def test_lines_are_cells_that_differ_in_the_factor_alone(table):
    lines = lines_along(read(table), "model.d_k")
    assert [(line.label, line.values) for line in lines] == [("correct", [16, 64]), ("no_scale", [16, 64])]
    assert [line.values for line in lines_along(read(table), "attention.mask_fill")] == [[-10000, -1]]


def drawn(monkeypatch, table, key):
    monkeypatch.setattr(plt, "close", lambda figure: None)
    path = draw(table, key)
    return path, *plt.gcf().axes


def test_points_stand_at_the_means_with_their_intervals_and_a_nan_is_a_gap(table, monkeypatch):
    path, losses, scores = drawn(monkeypatch, table, "model.d_k")
    assert path == table.parent / "response.png"
    points = {line.get_label(): line.get_xydata().tolist() for line in losses.lines}
    assert points["correct"] == [[16, 1.0], [64, 0.875]]
    assert points["no_scale"][0] == [16, 1.5]
    assert math.isnan(points["no_scale"][1][1])
    bars = [line.get_xydata().tolist() for line in losses.lines if line.get_label().startswith("_")]
    assert [[16, 0.75], [16, 1.25]] in bars
    assert [line.get_xydata().tolist() for line in scores.lines] == [
        [[16, 42], [64, 45]],
        [[16, 21], [64, 4]],
    ]
    assert [text.get_text() for text in losses.get_legend().get_texts()] == ["correct", "no_scale"]
    assert [tick.get_text() for tick in losses.get_xticklabels()] == ["16", "64"]
    assert losses.get_xlabel() == "model.d_k"
    plt.close("all")


def test_values_below_zero_stand_by_size_on_a_logarithmic_axis(table, monkeypatch):
    _, losses, _ = drawn(monkeypatch, table, "attention.mask_fill")
    assert losses.get_xscale() == "log"
    assert losses.lines[0].get_xydata().tolist() == [[10000, 1.0], [1, 6.0]]
    assert [tick.get_text() for tick in losses.get_xticklabels()] == ["-10000", "-1"]
    plt.close("all")


def test_the_command_writes_the_same_bytes_twice(table, capsys):
    assert main(["report", "--figure", str(table), "--along", "model.d_k"]) == 0
    path = table.parent / "response.png"
    assert capsys.readouterr().out.strip() == str(path)
    first = path.read_bytes()
    draw(table, "model.d_k")
    assert path.read_bytes() == first


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--along", "model.heads"], "it has attention.init, attention.mask_fill, model.d_k"),
        (["--along", "attention.init"], "a setting that has two numbers or more"),
        (["--along", "model.d_k", "--out", "response.doc"], ".png, .svg or .pdf"),
    ],
)
def test_a_setting_without_two_numbers_is_one_sentence(table, capsys, arguments, says):
    assert main(["report", "--figure", str(table), *arguments]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


def test_it_needs_a_table(capsys):
    assert main(["report", "--along", "model.d_k"]) == 2
    assert "--along: got model.d_k without --figure" in capsys.readouterr().err

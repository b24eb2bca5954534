"""The headline figure: what it reads from a table, what it draws, and that it does so byte for byte."""

import pytest
from made_runs import lab, write

from attnlab.cli import main
from attnlab.report.headline import draw
from attnlab.report.table_csv import PREFIX, TEACHER, Mark, read

HEAD = "arm,settings,control,metric,seeds,diverged,failed,n,mean,sd,low,high\n"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "results" / "table.csv"
    path.parent.mkdir()
    path.write_text(
        HEAD
        + f"correct,,,{TEACHER},3,0,0,3,2.0,0.1,1.5,2.5\ncorrect,,,{PREFIX},3,0,0,3,2.0,0.1,1.5,2.5\n"
        + "correct,,,test/cached/bleu,3,0,0,3,7.0,1,6,8\ncorrect,,,test/prefix/bleu,3,0,0,3,30.0,1,29,31\n"
        + f"zero_fill,model.d_k=8,correct,{TEACHER},1,0,0,1,0.1,,,\nfailed,,,,3,0,3,0,,,,\n"
    )
    return path


def test_arms_in_their_order_with_and_without_intervals(table):
    arms = read(table)
    assert [arm.label for arm in arms] == [
        "correct",
        "zero_fill model.d_k=8",
    ]  # one without a number has no row
    assert arms[0].marks[TEACHER] == Mark(2.0, 1.5, 2.5)
    assert arms[1].marks[TEACHER] == Mark(0.1, None, None)


def test_it_is_drawn_beside_the_table_with_the_same_bytes(table, capsys):
    assert main(["report", "--figure", str(table)]) == 0
    path = table.parent / "headline.png"
    assert capsys.readouterr().out.strip() == str(path)
    first = path.read_bytes()
    assert first.startswith(b"\x89PNG")
    draw(table)
    assert path.read_bytes() == first


def test_the_marks_stand_at_the_means(table, monkeypatch):
    import matplotlib.pyplot as plt

    monkeypatch.setattr(plt, "close", lambda figure: None)
    draw(table)
    losses, scores = plt.gcf().axes
    points = [tuple(line.get_xydata()[0]) for line in losses.lines if len(line.get_xydata()) == 1]
    assert points == [(2.0, 1.0), (2.0, 1.0), (0.1, 0.0)]
    assert [tuple(line.get_xydata()[0]) for line in scores.lines if len(line.get_xydata()) == 1] == [
        (30.0, 1.0)
    ]
    assert [text.get_text() for text in scores.texts] == ["30.0"]
    assert losses.get_xlabel() == "dev loss (nats a token)"
    plt.close("all")


def test_a_real_table_of_a_study(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    made = lab(tmp_path / "outputs", ["correct", "zero_fill"], [1, 2])
    for planned in made.runs:
        write(planned.config)
    assert main(["table", *made.overrides]) == 0
    assert main(["report", "--figure", "outputs/tables/demo/table.csv", "--out", "headline.svg"]) == 0
    text = (tmp_path / "headline.svg").read_text()
    assert "zero_fill" in text or "<svg" in text


@pytest.mark.parametrize(
    ("content", "says"),
    [(None, "FileNotFoundError"), ("a,b\n1,2\n", "KeyError"), (HEAD, "without final/dev/nll"),
     (HEAD + "correct,,,test/prefix/bleu,1,0,0,x,1,,,\n", "ValueError"), (HEAD + "correct,,,test/prefix/bleu,1,0,0,1,1,,,\n", "without final/dev/nll")],
)  # fmt: skip
def test_another_file_is_one_sentence(tmp_path, capsys, content, says):
    path = tmp_path / "table.csv"
    if content is not None:
        path.write_text(content)
    assert main(["report", "--figure", str(path)]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


def test_it_stands_alone(table, capsys):
    assert main(["report", "experiment=demo", "--figure", str(table)]) == 2
    assert "allowed: alone or with --out" in capsys.readouterr().err


def test_an_ending_that_is_no_picture(table, capsys):
    assert main(["report", "--figure", str(table), "--out", "headline.doc"]) == 2
    assert ".png, .svg or .pdf" in capsys.readouterr().err

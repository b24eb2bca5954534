"""Numbers as people read them, records for programs, and the place of a table in a document."""

import json

import pytest

from attnlab.bench import machine
from attnlab.bench.report import Table, as_json, markdown, shown, write_into
from attnlab.bench.rounds import Spread
from attnlab.errors import UserError

TABLE = Table(
    "speed", "Speed", "Tokens a second.", [{"system": "a|b", "tokens/s": Spread(9876.5, 9000.0, 10234.0)}]
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (3802, "3,802"),
        (0.012345, "0.0123"),
        (1.3, "1.30"),
        (43.21, "43.2"),
        (123.4, "123"),
        (999.6, "1,000"),
        (10159.4, "10,159"),
        (Spread(1.5, 1.25, 2.0), "1.50 [1.25, 2.00]"),
        (Spread(2.0, 2.0, 2.0), "2.00"),
        ("two\nlines", "two lines"),
    ],
)
def test_three_significant_digits_and_whole_numbers_from_100_on(value, text):
    assert shown(value) == text


def test_a_table_has_a_column_for_every_quantity_of_any_row():
    table = Table("t", "Title", "Note.", [{"a": 1}, {"a": 2, "b": None}])
    assert markdown(table) == "### Title\n\nNote.\n\n| a | b |\n|---|---|\n| 1 | - |\n| 2 | - |\n"
    assert "a\\|b" in markdown(TABLE)


def test_json_holds_full_precision():
    (section,) = json.loads(as_json({"date": "today"}, [TABLE]))["sections"]
    assert section["rows"] == [
        {"system": "a|b", "tokens/s": {"median": 9876.5, "low": 9000.0, "high": 10234.0}}
    ]


def test_a_table_replaces_what_stood_between_its_marks_and_nothing_else(tmp_path):
    path = tmp_path / "docs" / "performance.md"
    write_into(path, {"date": "1"}, [TABLE])  # a new document gets marks at its end
    path.write_text("Before.\n\n" + path.read_text() + "\nAfter.\n")
    once = path.read_text()
    assert once.count(markdown(TABLE)) == once.count("date: 1") == 1
    write_into(path, {"date": "1"}, [TABLE])
    assert path.read_text() == once
    write_into(path, {"date": "2"}, [TABLE])
    assert path.read_text() == once.replace("date: 1", "date: 2")


def test_a_document_that_cannot_be_written_is_refused_in_one_sentence(tmp_path):
    with pytest.raises(UserError, match="--write: got"):
        write_into(tmp_path, {}, [TABLE])


def test_a_table_tells_how_busy_the_machine_was_before(tmp_path, monkeypatch):
    monkeypatch.setattr(machine.os, "getloadavg", lambda: (7.51, 0.04, 12.0))
    made = machine.made(["bench"])
    assert made["load before"] == "7.5, 0.0, 12.0 processes over 1, 5, 15 min"
    write_into(tmp_path / "performance.md", made, [TABLE])
    assert "load before: 7.5, 0.0, 12.0 processes" in (tmp_path / "performance.md").read_text()


def test_a_published_table_shows_no_absolute_path():
    made = machine.made(["bench", "--data", "/home/somebody/multi30k", "--steps", "3"])
    assert made["command"] == "`attnlab bench --data multi30k --steps 3`"
    assert "torch" in made["versions"]

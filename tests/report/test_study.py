"""A study's page from whole run folders: its numbers are those of `attnlab table`, and what lies behind them is there."""

import base64
import csv
import io
import json

import numpy as np
import pytest
from made_runs import attention, corpus_of, lab, losses, write

from attnlab.cli import main
from attnlab.errors import UserError
from attnlab.report.html import embedded
from attnlab.report.study import study_page
from attnlab.study import render, table
from attnlab.tracking.folder import folder_of
from attnlab.tracking.status import State

ARMS = ["correct", "zero_fill"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    found = lab(tmp_path_factory.mktemp("study") / "outputs", ARMS, [1, 2, 3])
    for planned in found.runs:
        alarms = ["the model sees the future"] if planned.config.attention.name == "zero_fill" else []
        write(planned.config, alarms=alarms)
    return found


@pytest.fixture(scope="module")
def shown(made):
    return json.loads(embedded(vars(study_page(made.study, made.overrides, []))))


def test_its_numbers_are_those_of_the_table(made, shown):
    rows = list(csv.DictReader(io.StringIO(render.csv(table.build(made.study, made.overrides, [])))))
    compared = 0
    for cell, numbers in zip(shown["cells"], shown["rows"], strict=True):
        for column, entry in zip(shown["columns"], numbers, strict=True):
            row = next(r for r in rows if (r["arm"], r["metric"]) == (cell["arm"], column["metric"]))
            assert entry["number"]["value"] == pytest.approx(float(row["mean"]), rel=1e-9)
            assert entry["number"]["low"] == pytest.approx(float(row["low"]), rel=1e-9)
            if column["compared"] and cell["control"]:
                assert entry["difference"]["value"] == pytest.approx(float(row["difference"]), rel=1e-9)
                compared += 1
    assert compared == 3  # the arm's; the control has none


def test_its_texts_are_those_of_the_printed_table(made, shown):
    printed = render.markdown(table.build(made.study, made.overrides, []))
    for numbers in shown["rows"]:
        for entry in numbers:
            assert entry["number"]["mean"] in printed
            if entry["number"]["interval"] not in ("", "all equal"):
                assert entry["number"]["interval"] in printed


def test_curves_are_the_runs(made, shown):
    records = [write_folder.read_metrics() for write_folder in _folders(made)]
    for run, logged in enumerate(records):
        grid, values = shown["curves"]["lines"]["dev/nll"][str(run)]
        expected = [(int(r["step"]), r["dev/nll"]) for r in logged if "dev/nll" in r]
        assert list(zip(shown["curves"]["grids"][grid], values, strict=True)) == [
            (step, pytest.approx(value, rel=1e-3)) for step, value in expected
        ]


def test_maps_are_the_weights(made, shown):
    config = made.runs[0].config
    maps = shown["maps"]["cells"]["0"]
    for one in attention(config, 2, 2):
        packed = np.frombuffer(base64.b64decode(maps["weights"][one.name]), dtype=np.uint8)
        np.testing.assert_allclose(
            packed.reshape(one.weights.shape) / 254, one.weights, atol=0.5 / 254 + 0.0005
        )
    assert (maps["src"], maps["tgt"]) == (attention(config, 1, 1)[0].keys, attention(config, 1, 1)[1].keys)


def test_the_same_sources_are_translated_by_every_run(made, shown):
    test = corpus_of(made.runs[0].config).test
    assert shown["translations"]["sources"] == test.src
    assert shown["translations"]["references"] == test.tgt
    assert sorted(shown["translations"]["lines"]["prefix"]) == [str(run) for run in range(6)]
    assert shown["translations"]["lines"]["prefix"]["0"][:2] == ["", test.tgt[1]]


def test_axes_are_the_settings_that_differ(shown):
    assert shown["axes"] == ["attention.mask_fill"]
    assert shown["runs"][0]["factors"] == {"attention.mask_fill": "-inf"}


def test_final_numbers_and_alarms_stand_with_their_run(made, shown):
    for planned, run in zip(made.runs, shown["runs"], strict=True):
        assert run["values"]["final/dev/nll"] == losses(planned.config)[0]
        assert bool(run["alarms"]) == (planned.config.attention.name == "zero_fill")


def test_missing_things_have_reasons(tmp_path):
    made = lab(tmp_path, ARMS, [1])
    write(made.runs[0].config, maps=False)
    write(made.runs[1].config, state=State.diverged)
    shown = json.loads(embedded(vars(study_page(made.study, made.overrides, []))))
    assert "attention.json.gz" in shown["maps"]["missing"]["0"]
    assert shown["maps"]["missing"]["1"] == "no seed is done"
    assert shown["translations"]["missing"] == {"1": "the run is diverged"}
    assert shown["cells"][1]["state"] == "1 diverged"
    assert [entry["number"] for entry in shown["rows"][1]] == [None] * len(shown["columns"])


def test_another_test_set_is_not_laid_beside(tmp_path):
    made = lab(tmp_path, ARMS, [1])
    write(made.runs[0].config)
    write(made.runs[1].config, sources=["something else"] * 12)
    shown = study_page(made.study, made.overrides, [])
    assert shown.translations.missing == {1: "its test set is another one"}


def test_missing_runs_are_one_sentence(tmp_path):
    made = lab(tmp_path, ARMS, [1])
    with pytest.raises(UserError, match="0 of its 2 runs"):
        study_page(made.study, made.overrides, [])


def test_the_verb_writes_one_file(made, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # no expected.yaml here
    assert main(["report", *made.overrides]) == 0
    path = capsys.readouterr().out.strip()
    assert path == str(made.output / "reports" / "demo.html")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert text.startswith("<!doctype html>")
    assert main(["report", *made.overrides, "--out", str(tmp_path / "again.html")]) == 0
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == text  # the same runs, the same bytes


def _folders(made):
    return [folder_of(planned.config) for planned in made.runs]

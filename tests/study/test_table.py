"""Tables from made-up run folders: numbers by hand, what is refused, what is marked, and the same bytes twice."""

import csv
import io
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from made_cells import claim
from made_up import broken, corpus_of, study_at, write_run
from scipy import stats

from attnlab.cli import main
from attnlab.errors import UserError
from attnlab.study import render, table
from attnlab.study.cells import Cell, control_of, read_cells
from attnlab.study.claims import Direction
from attnlab.tracking.folder import folder_of
from attnlab.tracking.status import State

NLL = {"correct": {1: 2.0, 2: 2.1, 3: 2.4}, "zero_fill": {1: 0.5, 2: 0.7, 3: 0.8}}


def fill(lab, skip=(), **changes):
    """All runs of the study, with NLL's losses; zero_fill leaks and writes nothing."""
    for (arm, seed), planned in lab.runs.items():
        if (arm, seed) in skip:
            continue
        nll = NLL[arm][seed]
        references = corpus_of(planned.config.data).test.tgt
        empty = arm == "zero_fill"
        write_run(
            planned, {"final/dev/nll": nll, "final/dev/prefix_nll": nll + 10 * empty},
            translations=[""] * len(references) if empty else broken(references, 2 + seed),
            alarms=["the model sees the future"] if empty else [], **changes,
        )  # fmt: skip


def made(lab, **options):
    return table.build(lab.study, lab.items, [], **options)


def csv_rows(built):
    return list(csv.DictReader(io.StringIO(render.csv(built))))


def csv_row(built, arm, metric):
    return next(row for row in csv_rows(built) if (row["arm"], row["metric"]) == (arm, metric))


@pytest.fixture
def lab(tmp_path):
    return study_at(tmp_path / "outputs", "seed=1,2,3")


def test_R58_two_cells_of_three_seeds_one_failed(lab):
    fill(lab, skip=[("zero_fill", 2)])
    failed = lab.runs["zero_fill", 2]
    write_run(failed, {}, state=State.failed, error="Traceback ...\nMemoryError: no memory left")
    built = made(lab)
    row = csv_row(built, "zero_fill", "final/dev/nll")
    # 0.5 and 0.8: mean 0.65, sd 0.3 / sqrt(2). Differences to 2.0 and 2.4: -1.5 and -1.6.
    assert (row["n"], row["seeds"], row["failed"]) == ("2", "3", "1")
    assert float(row["mean"]) == pytest.approx(0.65)
    assert float(row["sd"]) == pytest.approx(0.3 / 2**0.5)
    half = 12.706204736174698 * 0.3 / 2
    assert (float(row["low"]), float(row["high"])) == pytest.approx((0.65 - half, 0.65 + half))
    assert float(row["difference"]) == pytest.approx(-1.55)
    assert float(row["difference_sd"]) == pytest.approx(0.1 / 2**0.5)
    assert float(row["p"]) == pytest.approx(stats.ttest_rel([0.5, 0.8], [2.0, 2.4]).pvalue)
    shown = render.markdown(built)
    assert "| zero_fill | 2/3 | 0.650 ± 0.212" in shown
    assert "failed 1 of 3 (seed 2)" in shown
    assert "MemoryError: no memory left" in shown
    assert "retry=true" in shown
    assert "0.650" in render.latex(built)


def test_holm_is_over_the_differences_that_are_printed(lab):
    fill(lab)
    built = made(lab)
    rows = [csv_row(built, "zero_fill", c.metric) for c in built.columns if c.compared]
    p = sorted(float(row["p"]) for row in rows)
    assert len(p) == 3
    corrected = sorted(float(row["p_holm"]) for row in rows)
    assert corrected[0] == pytest.approx(3 * p[0])
    assert csv_row(built, "zero_fill", "test/prefix/chrf")["p_holm"] == ""


def test_R43_diverged_is_counted_and_a_nan_stays_a_nan(lab):
    fill(lab, skip=[("zero_fill", 1), ("zero_fill", 3)])
    runs = lab.runs
    write_run(runs["zero_fill", 1], {}, state=State.diverged, step=120, error="the loss is nan")
    write_run(runs["zero_fill", 3], {"final/dev/nll": float("nan"), "final/dev/prefix_nll": 1.0})
    built = made(lab)
    row = csv_row(built, "zero_fill", "final/dev/nll")
    assert (row["n"], row["diverged"], row["mean"], row["low"]) == ("2", "1", "nan", "")
    shown = render.markdown(built)
    assert "| zero_fill | 2/3 | NaN ± NaN |" in shown
    assert "diverged 1 of 3 (seed 1 at step 120)" in shown


def test_a_metric_that_only_some_finished_seeds_have_is_not_averaged(lab):
    fill(lab, skip=[("correct", 2)])
    more = {"final/dev/nll": 2.1, "final/dev/prefix_nll": 2.1, "final/dev/other": 7.0}
    write_run(lab.runs["correct", 2], more)
    names = {row["metric"] for row in csv_rows(made(lab)) if row["arm"] == "correct"}
    assert "final/dev/nll" in names
    assert "final/dev/other" not in names


def test_losses_bleu_and_lengths_stand_beside_each_other_with_alarms(lab):
    fill(lab)
    shown = render.markdown(made(lab))
    (head,) = [line for line in shown.splitlines() if line.startswith("| cell | n |")]
    assert [c.strip() for c in head.strip("|").split("|")] == [
        "cell", "n", "dev nll", "Δ", "prefix nll", "Δ", "BLEU (prefix)", "Δ", "length ratio", "empty", "notes",
    ]  # fmt: skip
    assert "ALARM in 3 of 3" in shown
    assert "- zero_fill, seed 2: the model sees the future" in shown
    assert "1.000 [0.884, 1.000] exact" in shown  # 0.025 ** (1 / 30), one test set
    assert "0.00 ± 0.00 (all equal)" in shown
    assert re.search(r"\| zero_fill \| all \|.*\| -[\d.]+ \[-[\d.]+, -[\d.]+\]", shown)


def test_one_seed_has_no_interval_but_a_bootstrap_over_sentences(tmp_path):
    lab = study_at(tmp_path, "seed=1")
    fill(lab)
    shown = render.markdown(made(lab))
    assert "| zero_fill | 1/1 | 0.500 | -1.500 | 10.500 | +8.500 |" in shown
    assert re.search(r"\| zero_fill \| 1 \| 0\.00 \|", shown)
    assert "| zero_fill | all |" not in shown


@pytest.mark.parametrize("state", [None, State.running, State.interrupted])
def test_a_missing_run_names_the_command_that_makes_it(lab, state):
    fill(lab, skip=[("zero_fill", 2)])
    if state is not None:
        write_run(lab.runs["zero_fill", 2], {}, state=state)
    with pytest.raises(
        UserError,
        match=r"5 of its 6 runs.*attention=zero_fill seed=2.*`attnlab run experiment=demo .*seed=1,2,3",
    ):
        made(lab)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"git": {"commit": "b" * 40, "dirty": False}}, "code .aaaaaaaaaa, bbbbbbbbbb"),
        ({"git": {"commit": "a" * 40, "dirty": True}}, "uncommitted"),
        ({"git": None}, "no git commit"),
        ({"data_digest": "0" * 64}, "data .0000000000"),
        ({"tokenizer_digest": "0" * 64}, "data"),
        ({"versions": {"torch": "2.99"}}, "torch .2.13.0, 2.99"),
        ({"signatures": {"prefix/bleu": "tok:other"}}, "BLEU signatures"),
    ],
)
def test_runs_of_different_kinds_are_refused_unless_asked_for(tmp_path, change, words):
    lab = study_at(tmp_path, "seed=1,2")
    fill(lab, skip=[("zero_fill", 2)])
    odd = lab.runs["zero_fill", 2]
    empty = [""] * len(corpus_of(odd.config.data).test.tgt)
    write_run(odd, {"final/dev/nll": 0.7, "final/dev/prefix_nll": 9.0}, translations=empty, **change)
    with pytest.raises(UserError, match=f"{words}.*--allow-mixed"):
        made(lab)
    shown = render.markdown(made(lab, allow_mixed=True))
    assert re.search(f"- MIXED: .*{words}", shown)


def test_a_run_resumed_under_another_commit_is_mixed_too(lab):
    fill(lab)
    folder = folder_of(lab.runs["correct", 1].config)
    earlier = folder.read_provenance()
    folder.save_provenance({**earlier, "git": {"commit": "b" * 40, "dirty": False}})
    folder.save_provenance({key: value for key, value in earlier.items() if key != "earlier"})
    with pytest.raises(UserError, match="bbbbbbbbbb"):
        made(lab)


def test_commits_that_share_the_deciding_sources_are_one_code(tmp_path):
    lab = study_at(tmp_path, "seed=1,2")
    fill(lab, skip=[("zero_fill", 2)], code_digest="c" * 64)
    later = lab.runs["zero_fill", 2]
    empty = [""] * len(corpus_of(later.config.data).test.tgt)
    results = {"final/dev/nll": 0.7, "final/dev/prefix_nll": 9.0}
    commit = {"commit": "b" * 40, "dirty": True}
    write_run(later, results, translations=empty, git=commit, code_digest="c" * 64)
    shown = render.markdown(made(lab))
    assert (
        "- code: sources cccccccccc\n- commits: aaaaaaaaaa | bbbbbbbbbb with uncommitted changes\n" in shown
    )
    write_run(later, results, translations=empty, code_digest="d" * 64)
    with pytest.raises(UserError, match=r"code .sources cccccccccc, sources dddddddddd"):
        made(lab)
    write_run(later, results, translations=empty)  # an older run has the commit alone
    with pytest.raises(UserError, match=r"code .aaaaaaaaaa, sources cccccccccc"):
        made(lab)


def test_impossible_cells_stay_with_the_reason(tmp_path):
    lab = study_at(tmp_path, "seed=1", "attention=correct", "model.heads=3,4")
    fill(lab)
    built = made(lab)
    shown = render.markdown(built)
    assert re.search(r"\| correct model\.heads=3 \| 0/0 \|.*invalid: .*divisor of d_model", shown)
    assert next(row for row in csv_rows(built) if row["settings"] == "model.heads=3")["problem"]
    assert "correct model.heads=3" in render.latex(built)


def test_the_same_runs_give_the_same_bytes_wherever_they_lie(lab, tmp_path):
    fill(lab)
    first = [path.read_bytes() for path in table.write(made(lab), tmp_path / "a")]
    shutil.copytree(tmp_path / "outputs", tmp_path / "copied")
    there = study_at(tmp_path / "copied", "seed=1,2,3")
    shutil.rmtree(tmp_path / "outputs")
    assert [path.read_bytes() for path in table.write(made(there), tmp_path / "b")] == first


def no_corpus(data):
    raise AssertionError("the text was read")


def test_references_in_the_run_folders_make_the_same_table_without_the_text(lab, tmp_path, monkeypatch):
    fill(lab)
    with_text = [path.read_bytes() for path in table.write(made(lab), tmp_path / "a")]
    for planned in lab.runs.values():
        folder_of(planned.config).save_translations("test.reference", corpus_of(planned.config.data).test.tgt)
    monkeypatch.setattr("attnlab.data.corpus.load_corpus", no_corpus)
    assert [path.read_bytes() for path in table.write(made(lab), tmp_path / "b")] == with_text


def test_a_table_names_no_path_of_the_machine(lab, tmp_path):
    fill(lab)
    lab.items.append(f"data.dir={tmp_path}/text")
    for path in table.write(made(lab), tmp_path / "a"):
        text = path.read_text()
        assert str(tmp_path) not in text
        if path.suffix == ".md":
            assert "data.dir=FOLDER" in text


def test_partial_makes_a_table_of_what_is_there_and_says_on_top_what_is_missing(
    lab, capsys, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    fill(lab, skip=[("zero_fill", 2), ("zero_fill", 3)])
    assert main(["table", "--partial", *lab.items]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line]
    assert lines[0] == "# Study demo"
    assert lines[1].startswith("**PARTIAL: 2 of 6 runs are missing; `attnlab run experiment=demo")
    (row,) = [line for line in lines if line.startswith("| zero_fill | 1/3 |")]
    assert "missing 2 (seed 2, 3)" in row
    fill(lab)
    assert main(["table", "--partial", *lab.items]) == 0
    assert "PARTIAL" not in capsys.readouterr().out


def test_without_any_run_there_is_no_partial_table(lab, capsys):
    assert main(["table", "--partial", *lab.items]) == 2
    assert "got 0 of its 6 runs" in capsys.readouterr().err


def test_other_data_than_the_study_s_own_has_a_folder_of_its_own():
    from attnlab.study.grid import expand

    beside = Path("experiments/demo")
    for items, folder in (
        (["data=multi30k", "attention=correct"], "results-multi30k"),
        (["data=files", "data.dir=x", "data.name=news"], "results-news"),
        (["output=elsewhere", "track=none"], "results"),
    ):
        assert expand(["experiment=demo", *items]).tables(partial=False) == beside / folder


@pytest.mark.parametrize(
    ("items", "partial"),
    [(["data.test_pairs=20"], False), (["seed=1,2"], False), (["data=multi30k"], True), ([], True)],
)
def test_other_runs_than_the_registered_ones_do_not_take_the_place_of_their_table(items, partial):
    from attnlab.study.grid import expand

    study = expand(["experiment=demo", "output=elsewhere", *items])
    assert study.tables(partial) == Path("elsewhere/tables/demo")


def test_translations_that_do_not_give_the_stored_bleu_are_refused(lab):
    fill(lab)
    folder = folder_of(lab.runs["correct", 2].config)
    folder.save_translations("test.prefix", ["edited"] * len(folder.read_translations("test.prefix")))
    with pytest.raises(UserError, match=rf"{folder.path.name}: got translations with .* BLEU, allowed"):
        made(lab)


def test_without_the_text_there_is_a_table_and_a_note(lab, monkeypatch):
    fill(lab)

    def gone(data):
        raise UserError("data.dir: got nothing")

    monkeypatch.setattr("attnlab.data.corpus.load_corpus", gone)
    built = made(lab)
    assert all(row.both is None for row in built.rows)
    assert (
        "no sentence-level bootstrap, the references cannot be read: data.dir: got nothing"
        in render.markdown(built)
    )


def test_the_footer_says_where_the_numbers_come_from(lab):
    fill(lab)
    shown = render.markdown(made(lab))
    for words in (
        "attnlab table experiment=demo", "code: aaaaaaaaaa", "torch 2.13.0", "devices: a processor", "seeds: 1, 2, 3",
        "1000 steps of", "protocols prefix; beam 1", "tok:13a", "data: grammar ",
    ):  # fmt: skip
        assert words in shown
    assert "output=" not in shown


def test_checks_are_listed_and_counted_apart_from_claims(lab):
    fill(lab)
    lower = claim(
        "difference", "below", 0.0, cells=["zero_fill"], control=["correct"], metric="final/dev/nll"
    )
    claims = [lower, replace(lower, id="Y", direction=Direction.above), replace(lower, id="Z", check=True)]
    shown = render.markdown(table.build(lab.study, lab.items, claims))
    predicted, _, checks = shown.partition("## Checks")
    assert "\n2: 1 confirmed, 1 refuted, 0 inconclusive.\n" in predicted
    assert "\n1: 1 confirmed, 0 refuted, 0 inconclusive.\n" in checks
    assert ("| X |" in predicted, "| Y |" in predicted, "| Z |" in predicted) == (True, True, False)
    assert "| Z |" in checks


def test_what_rounds_to_zero_has_no_minus_and_pages_print_as_tables_do(lab):
    from attnlab.report import values

    for seed in (1, 2, 3):
        loss = {"final/dev/nll": -1e-7 * seed, "final/dev/prefix_nll": 1.0}
        write_run(lab.runs["correct", seed], loss)
        write_run(lab.runs["zero_fill", seed], loss | {"final/dev/nll": -3e-7 * seed})
    shown = render.markdown(made(lab))
    assert "| correct | 3/3 | 0.000 ± 0.000 [0.000, 0.000] |" in shown
    assert "| +0.000 ± 0.000 [0.000, 0.000]" in shown
    assert "-0.0" not in re.sub("sd_|seed", "", shown.split("## Sentences")[0])
    for number in (-1e-7, -0.0004999, -0.0006, 2.5, float("nan")):
        assert values.text(number, 3, "+") == render.fixed(number, 3, "+")
    assert render.fixed(-0.0006, 3) == "-0.001"


def test_the_interval_of_a_share_ends_where_a_share_does(lab):
    fill(lab)
    for seed, every in ((1, 1), (2, 2), (3, 3)):
        planned = lab.runs["correct", seed]
        references = corpus_of(planned.config.data).test.tgt
        lines = ["" if i % every == 0 else line for i, line in enumerate(references)]
        write_run(planned, {"final/dev/nll": 2.0, "final/dev/prefix_nll": 2.0}, translations=lines)
    row = csv_row(made(lab), "correct", "test/prefix/empty")
    assert float(row["mean"]) == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert (float(row["low"]), float(row["high"])) == (0.0, 1.0)  # 0.61 ± 0.87


def cells_named(*labels):
    return [Cell(label.split()[0], tuple(label.split()[1:]), ()) for label in labels]


def test_the_control_is_the_cell_with_all_else_equal():
    cells = cells_named("correct d=1", "correct d=2", "wrong d=1", "wrong d=2", "correct", "merge where=[x]")
    named = {cell.label: cell for cell in cells}
    assert control_of(named["wrong d=2"], cells, "correct") is named["correct d=2"]
    assert control_of(named["merge where=[x]"], cells, "correct") is named["correct"]
    assert control_of(named["correct d=2"], cells, "correct") is None
    assert control_of(named["wrong d=2"], cells, "d=1") is named["wrong d=1"]
    assert control_of(named["wrong d=2"], cells, "attention=correct d=1") is named["correct d=1"]
    assert control_of(named["wrong d=2"], cells, None) is None
    placed = cells_named(
        "correct d=1 attention.where.sites=[encoder]", "wrong d=1 attention.where.sites=[cross]"
    )
    assert control_of(placed[1], placed, "correct") is placed[0]
    assert control_of(replace(named["wrong d=2"], problem="no"), cells, "correct") is None


def test_a_cell_is_an_arm_and_settings_over_its_seeds(lab):
    fill(lab)
    cells = read_cells(lab.study, lab.items)
    assert [(cell.label, [run.seed for run in cell.runs]) for cell in cells] == [
        ("correct", [1, 2, 3]), ("zero_fill", [1, 2, 3]),
    ]  # fmt: skip


def test_the_command_prints_the_table_and_writes_three_files(lab, tmp_path, monkeypatch, capsys):
    fill(lab)
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "experiments" / "demo"
    folder.mkdir(parents=True)
    (folder / "expected.yaml").write_text(
        "claims: [{id: A, statement: It leaks., metric: final/dev/nll, kind: difference, cell: zero_fill, "
        "control: correct, direction: below, bounds: [0.0], source: us}]\n"
    )
    assert main(["table", *lab.items]) == 0
    shown = capsys.readouterr()
    assert "confirmed: the interval lies inside" in shown.out
    assert "1: 1 confirmed, 0 refuted, 0 inconclusive." in shown.out
    assert "## Checks" not in shown.out
    results = tmp_path / "outputs" / "tables" / "demo"  # smaller runs than the registered ones
    assert (results / "table.md").read_text() in shown.out
    assert sorted(path.name for path in results.iterdir()) == [
        "table.csv",
        "table.md",
        "table.tex",
    ]
    assert main(["table", *lab.items, "--out", str(tmp_path / "there")]) == 0
    assert (tmp_path / "there" / "table.tex").read_text() == (results / "table.tex").read_text()


def test_a_missing_run_on_the_command_line_is_one_sentence(lab, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["table", *lab.items]) == 2
    assert capsys.readouterr().err.startswith("attnlab: study demo: got 0 of its 6 runs")

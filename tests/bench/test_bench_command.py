"""The verb as its user meets it, and each section from its options to its table."""

import argparse
import json

import pytest
from small_work import small

from attnlab.bench import arguments, command
from attnlab.bench.options import Options, Section
from attnlab.bench.rounds import Spread
from attnlab.bench.sections import gpu, memory, sweep, training
from attnlab.bench.spawn import Ended
from attnlab.bench.systems import Builtin, builtin, peer
from attnlab.bench.work import Environment
from attnlab.cli import main
from attnlab.compose import load
from attnlab.errors import UserError
from attnlab.run import read_text


def parsed(*words):
    parser = argparse.ArgumentParser()
    arguments.add(parser)
    return parser.parse_args(words)


def options(output, **changes) -> Options:
    usual = {
        "work": small(output), "rounds": 1, "steps": 2, "warmup": 1, "threads": (1,), "precisions": ("fp32",),
        "environments": (Environment.shipped,), "systems": (builtin(Builtin.ours, ()),), "overrides": (), "runs": (1, 2),
        "seconds": 0.2, "device": "cpu",
    }  # fmt: skip
    return Options(**usual | changes)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["speed"],
            "bench: got section 'speed', allowed: training, memory, decoding, probes, sweep, gpu, all",
        ),
        (["--precisions", "int8"], "--precisions: got 'int8', allowed: fp32, bf16"),
        (["--rounds", "0"], "--rounds: got 0, allowed: 1 or more"),
        (["--warmup", "0"], "--warmup: got 0, allowed: 1 or more"),
        (["--threads", "1,x"], "--threads: got '1,x', allowed: whole numbers from 1 on, comma-separated"),
        (["--environments", "fast"], "--environments: got 'fast', allowed: shipped, tuned"),
        (["--seconds", "0"], "--seconds: got 0, allowed: more than 0"),
        (
            ["--systems", "fairseq"],
            "--systems: got 'fairseq', allowed: all or ours, plain, plain_buckets, marian, marian_eager",
        ),
        (["--peer", "eole"], "--peer: got 'eole', allowed: name='command'"),
        (["--variant", "x="], "--variant: got 'x=', allowed: name='key=value key=value'"),
        (["--peer", "ours=sh x"], "bench: got two systems named 'ours', allowed: one row of a name"),
    ],
)
def test_a_wrong_option_is_one_sentence(words, sentence, capsys):
    assert main(["bench", *words]) == 2
    assert capsys.readouterr().err.strip() == f"attnlab: {sentence}"


def test_a_folder_without_the_files_is_one_sentence(tmp_path, capsys):
    assert main(["bench", "--data", str(tmp_path), "--output", str(tmp_path)]) == 2
    shown = capsys.readouterr().err.strip()
    assert shown.startswith("attnlab: ")
    assert "\n" not in shown
    assert str(tmp_path) in shown
    assert "train" in shown


def test_a_gpu_that_is_not_there_is_one_sentence(tmp_path, capsys):
    assert main(["bench", "gpu", "--device", "cuda:99", "--output", str(tmp_path)]) == 2
    shown = capsys.readouterr().err.strip()
    assert shown.startswith("attnlab: device: got 'cuda:99'")
    assert "\n" not in shown


def test_sections_run_once_in_their_order():
    assert command.sections_of(["sweep", "training", "sweep"]) == [Section.training, Section.sweep]
    assert Section.gpu not in command.sections_of(["all"])
    assert command.sections_of(["gpu", "all"]) == list(Section)


def test_options_come_from_the_words(tmp_path):
    made = command.options_of(
        parsed(
            "--data", str(tmp_path), "--threads", "1,2", "--environments", "shipped,tuned", "--set", "seed=4"
        )
    )
    assert made.work.data == str(tmp_path)
    assert made.threads == (1, 2)
    assert len(made.jobs()) == 2 * 2 * 2
    assert made.systems[0].settings == ("seed=4",)
    assert command.options_of(parsed()).work.data == "grammar"


@pytest.mark.slow
def test_training_has_a_row_for_each_system_whatever_happens_to_it(tmp_path):
    systems = (
        builtin(Builtin.ours, ()),
        peer("steady=for i in 1 2 3; do echo tokens_per_second 50; done"),
        peer("broken=echo no such option >&2; exit 2"),
    )
    table = training.run(options(tmp_path, systems=systems))
    ours, steady, broken, limit, onednn = table.rows
    assert ours["system"] == "ours"
    assert isinstance(ours["tokens/s"], Spread)
    assert ours["ours / it"] == Spread(1.0, 1.0, 1.0)
    assert ours["share of the limit"].median > 0
    assert ours["first step after s"].median > 0
    assert ours["peak MB"].median > 50
    assert steady["tokens/s"] == Spread(50.0, 50.0, 50.0)
    assert steady["ours / it"].median == ours["tokens/s"].median / 50
    assert broken["tokens/s"].startswith("no such option")
    assert broken["ours / it"] is None
    assert limit["tokens/s"].median > 0
    assert onednn["system"] == "matrix products alone, oneDNN"  # a speed, or why this processor has none
    share = ours["share of the limit"].median
    bounds = [row["tokens/s"].median for row in (limit, onednn) if isinstance(row["tokens/s"], Spread)]
    assert share == pytest.approx(ours["tokens/s"].median / max(bounds))


@pytest.mark.slow
def test_runs_side_by_side_add_up(tmp_path):
    one, two = gpu.run(options(tmp_path)).rows
    assert (one["runs"], two["runs"]) == (1, 2)
    assert one["total over one run"] == 1.0
    assert two["tokens/s in total"] == pytest.approx(two["tokens/s a run"].low + two["tokens/s a run"].high)
    assert two["total over one run"] == pytest.approx(two["tokens/s in total"] / one["tokens/s in total"])


def test_runs_that_do_not_fit_into_the_time_say_so(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu, "BUDGET", 0.0)
    assert [row["tokens/s in total"] for row in gpu.run(options(tmp_path)).rows] == ["the time was up"] * 2


def test_runs_side_by_side_of_which_one_fails_are_a_row_with_its_reason(tmp_path):
    (row,) = gpu.run(options(tmp_path, runs=(2,), overrides=("model.heads=3",))).rows
    assert "model.heads" in row["tokens/s in total"]


@pytest.mark.slow
def test_memory_is_told_by_quarters_of_the_steps(tmp_path):
    (row,) = memory.run(options(tmp_path)).rows
    peaks = [row[f"after {part}/4, MB"].median for part in (1, 2, 3, 4)]
    assert peaks == sorted(peaks)
    assert row["4/4 over 2/4"].median == pytest.approx(peaks[3] / peaks[1])


def test_workers_are_compared_over_runs_of_one_length(tmp_path, monkeypatch):
    # seconds of a whole sweep, by steps a run and workers
    walls = {(10, 1): 40.0, (10, 2): 25.0, (90, 1): 200.0, (90, 2): 110.0}

    def measured(children, rounds):
        seconds = [walls[child.job.steps, int(child.job.settings[1])] for child in children]
        return [[Ended({"training": 9.0, "tracked": 0.0}, None, 0.0, wall)] for wall in seconds]

    monkeypatch.setattr(sweep, "LENGTHS", {10: 4, 90: 2})
    monkeypatch.setattr(sweep, "run_child", lambda *_: None)
    monkeypatch.setattr(sweep, "measure", measured)
    rows = sweep.run(options(tmp_path)).rows
    assert [row["runs"] for row in rows] == [4, 4, 2, 2]
    assert [row["over 1 worker"].median for row in rows] == [1, 40 / 25, 1, 200 / 110]
    hourly = [3600 * 4 / 40, 3600 * 4 / 25, 3600 * 2 / 200, 3600 * 2 / 110]
    assert [row["runs/h"].median for row in rows] == hourly
    assert [row["beside it s a run"].median for row in rows] == [1, 25 * 2 / 4 - 9, 91, 101]


@pytest.mark.slow
def test_a_sweep_counts_runs_an_hour(tmp_path, monkeypatch):
    monkeypatch.setattr(sweep, "LENGTHS", {12: 2})
    one, two = sweep.run(
        options(tmp_path, overrides=("data.train_pairs=300", "data.tokenizer.vocab_size=300", "track=none"))
    ).rows
    cells = [(row["steps a run"], row["runs"], row["workers"]) for row in (one, two)]
    assert cells == [(12, 2, 1), (12, 2, 2)]
    assert two["over 1 worker"].median == pytest.approx(two["runs/h"].median / one["runs/h"].median)
    assert one["beside it s a run"].median > 0
    assert one["training s a run"].median > 0


@pytest.mark.slow
def test_the_verb_prints_json_and_writes_the_document(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(command, "Work", lambda data, output: small(output))
    document = tmp_path / "performance.md"
    words = ["--systems", "ours", "--precisions", "fp32", "--rounds", "1", "--steps", "2", "--json"]
    assert main(["bench", "decoding", *words, "--output", str(tmp_path), "--write", str(document)]) == 0
    made = json.loads(capsys.readouterr().out)
    (section,) = made["sections"]
    assert section["name"] == "decoding"
    assert {row["protocol"] for row in section["rows"]} == {"cached", "prefix"}
    shares = {(row["system"], row["lengths"]): row["share of the cached limit"] for row in section["rows"]}
    assert shares["matrix products alone", "forced"]["median"] == 1
    assert 0 < shares["ours", "forced"]["median"] < 1
    assert shares["ours", "natural"] is None
    assert "<!-- bench:decoding -->\n### Decoding" in document.read_text()


def test_the_text_is_named_with_its_size(tmp_path):
    pairs = len(read_text(load(small(tmp_path).overrides("fp32", 1, 2))).train)
    assert command.prepare(options(tmp_path), "cpu") == f"grammar, {pairs} training pairs, vocabulary 300"


def test_a_failed_preparation_is_the_user_s_sentence(tmp_path):
    with pytest.raises(UserError, match="vocab_size: got 5"):
        command.prepare(options(tmp_path, overrides=("data.tokenizer.vocab_size=5",)), "cpu")

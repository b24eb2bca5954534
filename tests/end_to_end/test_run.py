"""One run from the command line's overrides to its folder: finished, reused, stopped, resumed, refused."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from attnlab.compose import load
from attnlab.errors import UserError
from attnlab.run import run
from attnlab.tracking.folder import folder_of
from attnlab.tracking.records import read_metrics
from attnlab.tracking.status import State
from attnlab.training import checkpoint


def timeless(records):
    return [{name: value for name, value in record.items() if "speed" not in name} for record in records]


def test_a_run_leaves_a_complete_folder(small):
    outcome = run(load(small), bar=False)
    folder = outcome.folder.path
    status = json.loads((folder / "status.json").read_text())
    assert status["state"] == "done"
    names = {
        "final/dev/nll",
        "final/dev/prefix_nll",
        "test/prefix/bleu",
        "test/cached/bleu",
        "final/probe/entropy/decoder",
    }
    assert names <= set(status["results"])
    provenance = json.loads((folder / "provenance.json").read_text())
    assert provenance["data_digest"]
    assert "tok:13a" in provenance["signatures"]["prefix/bleu"]
    assert (
        len((folder / "translations" / "test.prefix.txt").read_bytes().split(b"\n")) == 11
    )  # 10 lines, each ended
    steps = [record["step"] for record in read_metrics(folder / "metrics.jsonl")]
    assert steps == sorted(steps)
    assert set(steps) == {0, 2, 4, 6, 8, 10, 12}
    assert (folder / "images" / "test" / "attention" / "decoder").is_dir()


def test_correct_arm_does_not_leak_and_both_protocols_agree(small):
    results = run(load(small), bar=False).status.results
    assert results["final/dev/leak_gap"] == pytest.approx(0, abs=1e-5)
    assert results["test/prefix/bleu"] == results["test/cached/bleu"]
    assert results["final/probe/future_mass/decoder"] == 0


def test_a_finished_run_is_returned_and_not_trained_again(small):
    first = run(load(small), bar=False)
    again = run(load([*small, "measure.log_every=5", "threads=2"]), bar=False)
    assert again.run_id == first.run_id
    assert again.status == first.status


def test_force_trains_afresh_to_the_same_numbers_and_keeps_the_old_folder(small):
    first = run(load(small), bar=False)
    again = run(load([*small, "force=true"]), bar=False)
    assert again.status.results == first.status.results
    assert (first.folder.path.parent / f"{first.run_id}.aside-1" / "status.json").exists()


def test_probes_off_trains_the_same_weights_bit_for_bit(small):
    weights = []
    for more in (["measure.enabled=true"], ["measure.enabled=false", "force=true", "measure.every=1"]):
        weights.append(checkpoint.load(run(load([*small, *more]), bar=False).folder.checkpoint)["model"])
    assert all(torch.equal(weights[0][name], tensor) for name, tensor in weights[1].items())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_R44_R54_a_run_that_is_stopped_goes_on_to_the_numbers_of_one_that_was_not(small, tmp_path, number):
    longer = [
        *small,
        "train.steps=60",
        "train.checkpoint_every=10",
        "measure.evaluate_every=30",
        "measure.every=30",
    ]
    straight = run(load([*longer, f"output={tmp_path / 'straight'}"]), bar=False)
    config = load(longer)
    folder = folder_of(config)
    log = tmp_path / "stderr"
    with log.open("w") as stderr:
        process = subprocess.Popen([sys.executable, "-m", "attnlab", "run", *longer], stderr=stderr, stdout=subprocess.DEVNULL)  # fmt: skip
    deadline = time.monotonic() + 120
    while not folder.checkpoint.exists():
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(number)
    code = process.wait(timeout=60)
    expected = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}
    if folder.state() is not State.done:  # it may have been faster than the signal
        assert code == expected[number]
        assert folder.state() is State.interrupted
        told = log.read_text().endswith("; the same command goes on from the last checkpoint\n")
        assert told is (number != signal.SIGKILL)
    resumed = run(load(longer), bar=False)
    assert resumed.status.results == straight.status.results
    records = read_metrics(resumed.folder.path / "metrics.jsonl")
    assert timeless(records) == timeless(read_metrics(straight.folder.path / "metrics.jsonl"))
    assert [r["step"] for r in records if "train/lr" in r] == list(range(2, 61, 2))


def test_divergence_is_a_result(small):
    outcome = run(load([*small, "train.lr=1e30", "train.clip=null", "train.warmup=0"]), bar=False)
    assert outcome.status.state is State.diverged
    assert "non-finite" in outcome.status.error
    assert f"at step {outcome.status.step}" in outcome.status.error


def test_a_failure_is_in_the_status_and_the_next_call_tries_again(small, monkeypatch):
    config = load(small)

    def broken(*_, **__):
        raise RuntimeError("boom")

    with monkeypatch.context() as patch:
        patch.setattr("attnlab.run.dev_metrics", broken)
        with pytest.raises(RuntimeError, match="boom"):
            run(config, bar=False)
    assert folder_of(config).state() is State.failed
    assert "boom" in folder_of(config).read_status().error
    assert run(config, bar=False).status.state is State.done


def test_a_run_that_was_trained_but_not_finished_is_scored_again(small):
    first = run(load(small), bar=False)
    (first.folder.path / "status.json").unlink()
    assert run(load(small), bar=False).status.results == first.status.results


def test_a_run_of_no_steps_that_was_not_finished_keeps_what_it_saw_before_the_first(small):
    config = load([*small, "train.steps=0", "train.warmup=0"])
    folder = run(config, bar=False).folder
    records, media = timeless(folder.read_metrics()), folder.media.path.read_bytes()
    (folder.path / "status.json").unlink()
    run(config, bar=False)
    assert timeless(folder.read_metrics()) == records
    assert folder.media.path.read_bytes() == media


def test_another_vocabulary_is_refused_on_resuming(small):
    first = run(load(small), bar=False)
    (first.folder.path / "status.json").unlink()
    first.folder.note_provenance(tokenizer_digest="0" * 64)
    with pytest.raises(UserError, match="another vocabulary"):
        run(load(small), bar=False)


def test_more_heads_than_a_tracker_takes_pictures_of(small):
    outcome = run(
        load([*small, "model.heads=120", "model.d_k=2", "model.d_v=2", "train.steps=0", "train.warmup=0"]),
        bar=False,
    )
    assert outcome.status.state is State.done


def write_text(folder: Path, word: str) -> Path:
    folder.mkdir()
    for stem, count in (("train", 60), ("val", 8), ("test_2016_flickr", 8)):
        for language in ("en", "de"):
            lines = [f"{language} {word} {stem} number {i} of {i % 7}" for i in range(count)]
            (folder / f"{stem}.{language}").write_text("\n".join(lines) + "\n")
    return folder


def test_another_text_under_the_same_name_is_refused(small, tmp_path):
    base = [
        *small,
        "data=files",
        "data.train_pairs=null",
        "data.dev_pairs=null",
        "data.test_pairs=null",
        "data.tokenizer.vocab_size=60",
    ]
    run(load([*base, f"data.dir={write_text(tmp_path / 'a', 'cat')}"]), bar=False)
    run(load([*base, f"data.dir={write_text(tmp_path / 'same', 'cat')}"]), bar=False)
    with pytest.raises(UserError, match=r"data\.name"):
        run(load([*base, f"data.dir={write_text(tmp_path / 'b', 'dog')}"]), bar=False)


def test_what_is_not_trained_on_is_said(small, tmp_path, capsys):
    folder = write_text(tmp_path / "text", "cat")
    for language in ("en", "de"):
        train = (folder / f"train.{language}").read_text().splitlines()
        dev = (folder / f"val.{language}").read_text().splitlines()
        blank = "" if language == "en" else "ein Satz"
        (folder / f"train.{language}").write_text("\n".join([*train, dev[0], dev[1], blank]) + "\n")
    text = [
        "data=files",
        f"data.dir={folder}",
        "data.train_pairs=null",
        "data.dev_pairs=null",
        "data.test_pairs=null",
    ]
    config = load([*small, *text, "data.tokenizer.vocab_size=60"])
    assert run(config).status.state is State.done
    said = "training pairs left out: 1 with a blank side, 2 that stand in dev or test\n"
    assert said in capsys.readouterr().err


def test_a_run_that_could_not_start_leaves_no_folder(small, tmp_path):
    config = load([*small, "data=files", f"data.dir={tmp_path / 'nowhere'}"])
    with pytest.raises(UserError, match="nowhere"):
        run(config, bar=False)
    assert not folder_of(config).path.exists()


def test_a_busy_run_is_left_alone(small):
    config = load(small)
    with folder_of(config).locked():
        script = f"from attnlab.cli import main; raise SystemExit(main({['run', *small]!r}))"
        other = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert other.returncode == 2
    assert "being worked on" in other.stderr
    assert "Traceback" not in other.stderr


@pytest.mark.slow
def test_R28_the_default_recipe_learns_the_grammar(tmp_path):
    results = run(load([f"output={tmp_path}", "track=none", "train.steps=1200"]), bar=False).status.results
    assert results["test/prefix/bleu"] > 30
    assert results["test/prefix/distinct"] > 0.9
    assert 0.9 < results["test/prefix/length_ratio"] < 1.1
    assert os.environ.get("OMP_NUM_THREADS") == "1"

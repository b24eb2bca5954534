"""Configs: one clear sentence for what is wrong, one id for what is the same."""

import dataclasses
import math
import shutil
import subprocess
import sys

import pytest

from attnlab.compose import conf_dir, groups, load
from attnlab.errors import UserError
from attnlab.identity import identity, plain, run_id


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("attention=nope", ["attention", "'nope'", "zero_fill"]),
        ("model.dk=3", ["model.dk", "d_k"]),
        ("+model.foo=1", ["model.foo"]),
        ("modle=tiny", ["modle"]),
        ("model.heads=four", ["model.heads", "'four'", "whole number"]),
        ("model.heads=", ["model.heads", "whole number"]),
        ("model.heads='8'", ["model.heads", "'8'", "number"]),
        ("train.clip=None", ["train.clip", "'None'", "null"]),
        ("train.steps=true", ["train.steps", "true"]),
        ("seed=1.5", ["seed", "1.5", "whole number"]),
        ("model.tie_embeddings='false'", ["model.tie_embeddings", "true or false"]),
        ("model.tie_embeddings=maybe", ["model.tie_embeddings", "maybe", "true or false"]),
        ("attention.mask=[a,b]", ["attention.mask", "before_softmax"]),
        ("attention.scale=maybe", ["attention.scale", "'maybe'", "sqrt_d_k"]),
        ("model.heads=2,4", ["model.heads", "experiment"]),
        ("model.heads=3", ["model.heads", "3", "64", "divisor"]),
        ("model.d_model=63", ["model.d_model", "even"]),
        ("model.dropout=1.5", ["model.dropout", "1.5"]),
        ("model.heads=0", ["model.heads", "0"]),
        ("model.encoder_layers=0", ["model.encoder_layers", "at least 1"]),
        ("train.warmup=5000", ["train.warmup", "5000", "2000"]),
        ("train.lr=0", ["train.lr", "above 0"]),
        ("train.betas=[0.9]", ["train.betas", "two numbers"]),
        ("train.label_smoothing=1", ["train.label_smoothing"]),
        ("data=files", ["data.dir", "attnlab run data=files"]),
        ("data=hub", ["data.repository"]),
        ("data.tgt=en", ["data.tgt", "two different"]),
        ("data.test_pairs=0", ["data.test_pairs"]),
        ("attention.mask_fill=nan", ["attention.mask_fill"]),
        ("attention.qk_norm=true", ["attention.scale", "none"]),
        ("attention.where.layers=[3]", ["attention.where.layers", "1 to 2"]),
        ("attention.where.sites=[]", ["attention.where.sites", "decoder"]),
        ("decode.beam=0", ["decode.beam", "at least 1"]),
        ("device=tpu", ["device", "tpu", "cuda"]),
        ("threads=0", ["threads"]),
        ("seed=-1", ["seed"]),
        ("data.corpus_seed=-3", ["data.corpus_seed", "-3", "0 or more"]),
        ("~decode", ["decode"]),
        ("data=null", ["group"]),
        ("data.tokenizer=5", ["data.tokenizer", "5", "group"]),
        ("train.lr=inf", ["train.lr", "finite"]),
        ("decode.max_length_factor=inf", ["decode.max_length"]),
    ],
)
def test_R50_a_wrong_setting_is_one_sentence_with_key_value_and_what_is_allowed(override, words):
    with pytest.raises(UserError) as caught:
        load([override])
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 400
    for word in words:
        assert word in message, message


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["attention=zero_fill", "attention.where.sites=[encoder]"], ["attention.where.sites", "decoder"]),
        (["attention=wrong_split", "attention.where.heads=[1]"], ["attention.where.heads", "split"]),
        (
            ["attention=mask_after_softmax", "attention.mask_fill=0"],
            ["attention.mask_fill", "before_softmax"],
        ),
        (["model.heads=3", "model.d_k=7"], ["model.heads", "model.d_v"]),
        (["attention=additive", "attention.qk_norm=true"], ["qk_norm", "dot"]),
    ],
)
def test_an_impossible_combination_is_one_sentence(overrides, words):
    with pytest.raises(UserError) as caught:
        load(overrides)
    for word in words:
        assert word in str(caught.value)


def test_R18_sizes_of_heads_are_free_of_the_width():
    model = load(["model.heads=3", "model.d_k=7", "model.d_v=5"]).model
    assert (model.key_size, model.value_size) == (7, 5)


def test_R50_values_have_the_type_that_was_meant():
    config = load(["train.lr=1e-4", "train.clip=null", "attention.mask_fill=-inf", "track.tags=[a,b]"])
    assert config.train.lr == pytest.approx(1e-4)
    assert isinstance(config.train.lr, float)
    assert config.train.clip is None
    assert config.attention.mask_fill == -math.inf
    assert config.track.tags == ["a", "b"]


@pytest.mark.parametrize(
    "path",
    [path for group in groups() for path in sorted(group.glob("*.yaml"))],
    ids=lambda path: f"{path.parent.name}={path.stem}",
)
def test_every_file_of_every_group_composes(path):
    extra = {"files": ["data.dir=x"], "hub": ["data.repository=a/b", "data.revision=c"]}
    load(
        [f"{path.parent.name}={path.stem}", *(extra.get(path.stem, []) if path.parent.name == "data" else [])]
    )


def test_an_arm_differs_from_correct_in_what_it_names_alone():
    correct = plain(load([]))["attention"]
    for path in (conf_dir() / "attention").glob("*.yaml"):
        arm = plain(load([f"attention={path.stem}"]))["attention"]
        changed = {key for key in arm if arm[key] != correct[key]} - {"name"}
        assert arm["name"] == path.stem
        assert len(changed) == (
            0 if path.stem == "correct" else 2 if path.stem in ("wrong_split", "additive", "qk_norm") else 1
        )


def test_no_omegaconf_object_is_left_past_load():
    def walk(value):
        assert type(value).__module__.split(".")[0] != "omegaconf"
        if dataclasses.is_dataclass(value):
            value = vars(value)
        for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
            walk(item)

    walk(load(["experiment=demo"]))


SAME = [
    ["output=elsewhere"], ["track=none"], ["launch=serial"], ["threads=2"], ["measure.every=7"], ["measure.log_every=3"],
    ["measure.images=false"], ["measure.evaluate_every=9"], ["attention.where.layers=[1,2]"], ["attention.where.heads=[4,3,2,1]"], ["attention.where.layers=[1]"], ["device=cpu"], ["force=true"], ["model.d_k=16"],
    ["attention.where.sites=[cross,encoder,decoder]"], ["attention.name=other"], ["track.tags=[x]"],
]  # fmt: skip
OTHER = [
    ["seed=2"], ["model.d_k=8"], ["attention=no_scale"], ["train.lr=1e-3"], ["train.precision=bf16"], ["data.name=x"],
    ["data.corpus_seed=2"], ["decode.beam=2"], ["train.patience=3"], ["measure.prefix_sentences=5"],
    ["measure.enabled=false"], ["attention=zero_fill", "attention.where.layers=[1]"],
]  # fmt: skip


@pytest.mark.parametrize("overrides", SAME, ids=" ".join)
def test_id_is_blind_to_what_cannot_change_the_result(overrides):
    assert run_id(load(overrides)) == run_id(load([]))


@pytest.mark.parametrize("overrides", OTHER, ids=" ".join)
def test_id_sees_what_can_change_the_result(overrides):
    assert run_id(load(overrides)) != run_id(load([]))


def test_a_mistake_at_every_place_is_the_mistake_and_the_order_of_protocols_is_nothing():
    arm = ["attention=zero_fill"]
    assert run_id(load(arm)) == run_id(
        load([*arm, "attention.where.layers=[2,1]", "attention.where.heads=[1,2,3,4]"])
    )
    both = ["decode.protocols=[prefix,cached]"], ["decode.protocols=[cached,prefix]"]
    assert run_id(load(both[0])) == run_id(load(both[1]))


def test_cadence_of_evaluation_counts_once_it_can_stop_the_run():
    patient = ["train.patience=3"]
    assert run_id(load(patient)) != run_id(load([*patient, "measure.evaluate_every=9"]))


def test_id_is_the_same_in_every_process():
    code = "from attnlab.compose import load; from attnlab.identity import run_id; print(run_id(load([])))"
    ids = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("0", "7")
    }
    assert ids == {run_id(load([]))}


def test_the_whole_config_is_in_the_identity_but_for_what_is_named():
    left_out = set(plain(load([]))) - set(identity(load([])))
    assert left_out == {
        "output",
        "track",
        "launch",
        "study",
        "threads",
        "device",
        "force",
        "retry",
        "fail_fast",
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# @package _global_\nstudy: [mine\n", ["mine.yaml line 3", "expected ',' or ']'", "allowed: YAML"]),
        ("train:\n  steps: 10\n", ["experiment: got a study", "'# @package _global_'"]),
        ("defaults:\n  - override /train: study\n", ["experiment: got a study", "'# @package _global_'"]),
    ],
)
def test_a_study_file_that_cannot_be_read_is_one_sentence(text, words, tmp_path, monkeypatch):
    shutil.copytree(conf_dir(), tmp_path / "conf")
    monkeypatch.setattr("attnlab.compose.conf_dir", lambda: tmp_path / "conf")
    (tmp_path / "conf" / "experiment" / "mine.yaml").write_text(text)
    with pytest.raises(UserError) as caught:
        load(["experiment=mine"])
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)

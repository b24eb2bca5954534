"""Plain values to dataclasses. Oracle for what is right: OmegaConf's structured configs; what is wrong is refused."""

import copy

import pytest
from omegaconf import OmegaConf

from attnlab.compose import compose, load, resolved
from attnlab.config import Config
from attnlab.convert import convert
from attnlab.errors import UserError
from attnlab.identity import plain


@pytest.fixture(scope="module")
def raw():
    return resolved(compose([]))


@pytest.mark.parametrize(
    "overrides",
    [
        ["experiment=mask_placement", "attention=zero_fill", "attention.where.layers=[1]"],
        ["data=multi30k", "model=base", "train=paper", "launch=slurm"],
        ["data=files", "data.dir=x", "launch=ray", "track=none", "train.clip=null"],
    ],
    ids=" ".join,
)
def test_what_is_right_is_what_omegaconf_makes_of_it(overrides):
    composed = compose(overrides)
    theirs = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(Config), composed))
    assert convert(resolved(composed)) == theirs


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("train.steps", 10.0, "train.steps: got 10.0, allowed: a whole number"),
        ("train.steps", True, "train.steps: got true, allowed: a whole number"),
        ("train.steps", "???", "train.steps: got nothing, allowed: a whole number"),
        ("train.lr", "1e-3", "train.lr: got '1e-3', allowed: a number"),
        ("train.lr", None, "train.lr: got null, allowed: a number"),
        ("train.betas", 0.9, "train.betas: got 0.9, allowed: a list, each a number"),
        ("train.betas", [0.9, "x"], "train.betas: got 'x', allowed: a list, each a number"),
        ("data.name", True, "data.name: got true, allowed: text"),
        ("attention.scale", None, "attention.scale: got null, allowed: sqrt_d_k, none"),
        ("attention.where", 3, "attention.where: got 3, allowed: a group of settings"),
        ("attention.where.site", [], "attention.where.site: there is no 'site' in attention.where, allowed: sites, layers"),
        ("model.tie_embeddings", 1, "model.tie_embeddings: got 1, allowed: true or false"),
        ("study.grid", [1], "study.grid: got [1], allowed: a group of settings"),
        ("nothing", 1, "nothing: there is no 'nothing', allowed: data, model"),
    ],
)  # fmt: skip
def test_R50_what_is_wrong_is_one_sentence(raw, key, value, words):
    changed = copy.deepcopy(raw)
    *parents, last = key.split(".")
    node = changed
    for part in parents:
        node = node[part]
    node[last] = value
    with pytest.raises(UserError) as caught:
        convert(changed)
    assert str(caught.value).startswith(words)


def test_a_whole_number_is_a_number_and_a_number_is_a_text(raw):
    changed = copy.deepcopy(raw)
    changed["train"]["lr"] = 1
    changed["output"] = 2026
    made = convert(changed)
    assert (made.train.lr, type(made.train.lr)) == (1.0, float)
    assert made.output == "2026"


def test_a_stored_config_may_lack_settings_that_are_newer_than_it(raw):
    older = copy.deepcopy(raw)
    del older["launch"]["plugin"], older["launch"]["options"]
    assert convert(older).launch == load([]).launch
    del older["train"]["lr"]  # no value of its own
    with pytest.raises(UserError, match=r"train\.lr: got nothing"):
        convert(older)


def test_a_config_survives_being_stored(raw):
    config = convert(raw)
    assert convert(plain(config)) == config

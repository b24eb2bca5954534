"""Configs laid over one composition. Oracle: Hydra, which composes each of them anew."""

import pytest

from attnlab.compose import compose, conf_dir, load
from attnlab.errors import UserError
from attnlab.study import variants
from attnlab.study.grid import expand
from attnlab.study.variants import Variants

FIXED = ["experiment=demo", "seed=3", "attention.init=normal_002", "train.steps=700"]


@pytest.fixture(scope="module")
def demo():
    return Variants(FIXED, compose(FIXED))


@pytest.fixture
def hydra_is_not_asked(monkeypatch):
    def asked(overrides):
        raise AssertionError(f"Hydra was asked to compose {overrides}")

    monkeypatch.setattr(variants, "load", asked)


CELLS = [
    [],
    ["attention=zero_fill"],
    ["model.d_k=8", "attention=wrong_split", "attention.where.sites=[encoder,cross]"],
    ["attention.init=xavier", "attention=qk_norm"],  # values after groups, in whatever order they stand
    ["model=tiny", "train=multi30k", "attention=no_scale"],
    ["data.name='quoted, name'", "train.clip=null", "train.lr=1e-4", "attention.mask_fill=-1e4"],
]


@pytest.mark.parametrize("cell", CELLS, ids=" ".join)
def test_a_cell_is_what_hydra_makes_of_it(demo, cell, hydra_is_not_asked):
    assert demo.config(cell) == load([*FIXED, *cell])


@pytest.mark.parametrize(
    "cell",
    [["++train.steps=900"], ["model.d_k=${model.heads}"], ["attention.where={layers: [1]}"]],
    ids=" ".join,
)
def test_what_needs_more_of_hydra_is_composed_by_it(demo, cell):
    assert demo.config(cell) == load([*FIXED, *cell])


@pytest.mark.parametrize(
    "cell",
    [
        ["model.dk=3"], ["nope=1"], ["attention=nope"], ["model.heads=four"], ["model.heads=3"], ["model.d_k.x=1"],
        ["attention=zero_fill", "attention.where.sites=[encoder]"], ["model.heads="], ["model.heads='8'"],
        ["attention=null"], ["~decode"], ["model.d_k=[1"], ["train=nano", "train.steps=1.5"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_R50_a_cell_that_cannot_exist_is_the_same_sentence(demo, cell):
    with pytest.raises(UserError) as hydras:
        load([*FIXED, *cell])
    with pytest.raises(UserError) as ours:
        demo.config(cell)
    assert str(ours.value) == str(hydras.value)


def test_a_reference_between_settings_leaves_everything_to_hydra():
    fixed = ["experiment=demo", "model.d_v=${model.d_k}"]
    made = Variants(fixed, compose(fixed))
    assert made.config(["model.d_k=8"]).model.d_v == 8


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.stem for path in (conf_dir() / "experiment").glob("*.yaml")))
def test_every_cell_of_every_study_is_what_hydra_makes_of_it(name, hydra_is_not_asked):
    study = expand([f"experiment={name}"])
    first_seeds = [run for run in study.runs if run.config.seed == study.runs[0].config.seed]
    for run in first_seeds:
        assert run.config == load([*study.fixed, *run.overrides]), run.overrides

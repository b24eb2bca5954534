"""Grids: which runs a study has, and what the command line changes about them."""

import pytest

from attnlab.compose import load
from attnlab.errors import UserError
from attnlab.identity import run_id
from attnlab.study.grid import Impossible, expand


def test_demo_is_the_product_of_its_axes():
    study = expand(["experiment=demo"])
    assert (study.name, study.control) == ("demo", "correct")
    assert [run.config.attention.name for run in study.runs] == [
        "correct",
        "no_scale",
        "mask_after_softmax",
        "zero_fill",
    ]
    assert study.cells == study.runs


def test_a_run_of_a_study_is_the_single_run_with_the_same_settings():
    (run,) = expand(["experiment=demo", "attention=correct"]).runs
    single = load(["train.steps=1000", "train.warmup=300", "train.checkpoint_every=100"])
    assert run_id(run.config) == run_id(single)


def test_the_command_line_narrows_and_widens_axes():
    study = expand(["experiment=demo", "seed=1,2,3", "attention=no_scale"])
    assert [(run.config.attention.name, run.config.seed) for run in study.runs] == [
        ("no_scale", s) for s in (1, 2, 3)
    ]
    assert len(expand(["experiment=demo", "model.heads=2,4"]).runs) == 8


def test_R50_cells_that_are_the_same_run_stand_once():
    study = expand(
        ["experiment=demo", "attention=correct", "model.d_k=16,null,8"]
    )  # nano: d_model / heads = 16
    assert len(study.runs) == 2


def test_R18_impossible_cells_are_named_with_the_reason_before_anything_trains():
    study = expand(["experiment=demo", "attention=correct", "model.heads=3,4"])
    impossible, possible = study.cells
    assert isinstance(impossible, Impossible)
    assert "divisor of d_model" in impossible.problem
    assert study.runs == [possible]


def test_an_override_that_no_cell_can_have_is_an_error_at_once():
    with pytest.raises(UserError, match=r"model\.dk"):
        expand(["experiment=demo", "model.dk=3"])


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ("seed=1,x", "seed: got 'x', allowed: a whole number"),
        ("attention=correct,no_scal", "attention: got 'no_scal', allowed: additive, correct"),
        ("model.d_kk=8,16", "there is no 'd_kk' in model"),
        ("study.cells=[{attention: zero_fill, train.lrr: 1}]", "there is no 'lrr' in train"),
        ("study.control=foo", "study.control: attention: got 'foo', allowed: additive, correct"),
        ('study.control="model.headss=4"', "study.control: model.headss: there is no 'headss' in model"),
    ],
)
def test_a_name_or_value_that_no_cell_can_have_is_no_impossible_cell(item, words):
    with pytest.raises(UserError) as error:
        expand(["experiment=demo", item])
    assert words in str(error.value)


def test_a_part_of_a_study_may_be_without_its_control():
    assert len(expand(["experiment=demo", "attention=no_scale"]).runs) == 1
    three_heads = 'study.control="model.heads=3"'  # no divisor of 64
    assert len(expand(["experiment=demo", three_heads]).runs) == 4


def test_listed_cells_stand_beside_the_product_and_run_through_the_seeds():
    cells = "study.cells=[{attention: wrong_merge, attention.where.sites: [encoder]}]"
    study = expand(["experiment=demo", "attention=correct", "seed=1,2", cells])
    assert [(r.config.attention.name, r.config.seed) for r in study.runs] == [
        ("correct", 1), ("correct", 2), ("wrong_merge", 1), ("wrong_merge", 2),
    ]  # fmt: skip
    assert [str(site) for site in study.runs[-1].config.attention.where.sites] == ["encoder"]


def test_without_a_study_there_is_no_grid():
    with pytest.raises(UserError, match="experiment=demo"):
        expand(["seed=2"])


@pytest.mark.parametrize("broken", ["study.grid.seed=3", "study.cells=[5]"])
def test_a_grid_of_another_form_is_one_sentence(broken):
    with pytest.raises(UserError, match="allowed: "):
        expand(["experiment=demo", broken])


def test_R47_a_changed_base_config_is_other_runs_and_leaves_the_old_ones_alone():
    before = {run.run_id for run in expand(["experiment=demo"]).runs}
    assert before.isdisjoint({run.run_id for run in expand(["experiment=demo", "train.lr=1e-3"]).runs})
    # The state of a run hangs on what it is, not on its place: a wider grid has the old runs in it.
    assert before <= {run.run_id for run in expand(["experiment=demo", "seed=3,2,1"]).runs}

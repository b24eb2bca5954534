"""Every study's file and claims: cells that exist, metrics that runs have, labels that the table uses."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from made_cells import claim
from scipy import stats

from attnlab.compose import load
from attnlab.model.initialise import build
from attnlab.run import run
from attnlab.study.claims import Effect, Kind
from attnlab.study.expected import load_claims
from attnlab.study.grid import Impossible, expand
from attnlab.study.metric import Metric
from attnlab.study.statistics import Interval

ROOT = Path(__file__).parents[2]
STUDIES = sorted(path.stem for path in (ROOT / "conf" / "experiment").glob("*.yaml"))
TRAINED = [name for name in STUDIES if name not in ("demo", "initialisation")]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """What a run has: the names of its results and those of the records of its two steps."""
    small = ["data.train_pairs=300", "data.dev_pairs=8", "data.test_pairs=4", "data.tokenizer.vocab_size=300"]
    tiny = ["model.d_model=16", "model.d_ff=16", "train.steps=1", "train.warmup=0", "measure.images=false"]
    decode = ["decode.protocols=[prefix,cached]", "decode.max_length_factor=0", "track=none"]
    output = tmp_path_factory.mktemp("claims")
    outcome = run(load([*small, *tiny, *decode, f"output={output}"]), bar=False)
    steps = {0: set(), 1: set()}
    for record in outcome.folder.read_metrics():
        steps[record["step"]] |= set(record)
    return {None: set(outcome.status.results)} | steps


@pytest.fixture(scope="module", params=STUDIES)
def study(request):
    return expand([f"experiment={request.param}"])


def label_of(planned, arm):
    """As in a table: the arm, this one unless it is named, then what else the grid or the listed cell sets."""
    settings = dict(item.split("=", 1) for item in planned.overrides)
    settings.pop("seed", None)
    named = settings.pop("attention", arm)
    return " ".join([named, *(f"{key}={value}" for key, value in settings.items())])


def labels(study):
    return {label_of(planned, study.base.attention.name) for planned in study.cells}


def test_every_cell_of_every_study_can_be_run(study):
    assert [cell.problem for cell in study.cells if isinstance(cell, Impossible)] == []
    assert len(study.runs) >= 4


def test_every_claim_is_about_cells_and_metrics_that_there_are(study, recorded):
    claims = load_claims(ROOT / "experiments" / study.name / "expected.yaml")
    assert len(claims) >= 6
    known = labels(study)
    for one in claims:
        assert set(one.labels) <= known, one.id
        for text in (one.metric, one.choose, one.against):
            if isinstance(text, str):
                metric = Metric.parse(text)
                for term in (metric.first, metric.second):
                    if term is not None:
                        assert term.name in recorded[term.step], f"{one.id}: {term}"
                        assert term.step in (None, 0) or study.name == "initialisation", one.id


def test_every_claim_names_a_source_and_has_a_region_with_an_edge(study):
    for one in load_claims(ROOT / "experiments" / study.name / "expected.yaml"):
        assert one.region.low < one.region.high
        assert math.isfinite(one.region.low) or math.isfinite(one.region.high)
        assert len(one.source) > 2


def test_that_an_arm_without_a_leak_has_no_gap_is_a_check_and_no_prediction(study):
    """Both losses are the same sum there, so such a claim can only fail by a mistake in the code."""
    for one in load_claims(ROOT / "experiments" / study.name / "expected.yaml"):
        if (one.metric, one.region) == ("final/dev/leak_gap", Interval(-0.001, 0.001)):
            assert one.check, one.id


def test_most_of_what_a_study_registers_can_be_wrong(study):
    claims = load_claims(ROOT / "experiments" / study.name / "expected.yaml")
    assert sum(one.check for one in claims) <= len(claims) / 5


def test_a_lower_best_setting_is_a_claim_that_equality_does_not_confirm():
    claims = {one.id: one for one in load_claims(ROOT / "experiments" / "learning_rate" / "expected.yaml")}
    assert claims["L4"].region.high <= 1.0


def test_shares_of_the_cost_of_no_scale_say_that_it_is_a_cost():
    claims = load_claims(ROOT / "experiments" / "learning_rate" / "expected.yaml")
    assert [one.effect for one in claims if one.kind is Kind.share] == [Effect.rise, Effect.rise]


POWER = {"key_size": ("K1", "K2", "K7", "K8", "K9"), "learning_rate": ("L1",), "heads": ("H1",)}


@pytest.mark.parametrize("name", POWER)
def test_claims_of_equality_have_the_seeds_that_can_confirm_them(name):
    """Half of the interval at an sd of the differences of 0.0125, measured by the study `seeds`, fits into the region."""
    claims = {one.id: one for one in load_claims(ROOT / "experiments" / name / "expected.yaml")}
    seeds = {}
    for planned in expand([f"experiment={name}"]).runs:
        seeds.setdefault(label_of(planned, "correct"), set()).add(planned.config.seed)
    for one in (claims[id] for id in POWER[name]):
        middle = [label for label in one.labels if not label.endswith(("lr=0.0003", "lr=0.03"))]
        n = len(set.intersection(*(seeds[label] for label in middle)))
        half = stats.t.ppf(0.975, n - 1) * 0.0125 / n**0.5
        assert 2 * half < one.region.high - one.region.low, one.id


def test_every_study_has_a_page_with_its_command(study):
    text = (ROOT / "experiments" / study.name / "README.md").read_text()
    assert f"attnlab run experiment={study.name}" in text
    assert f"attnlab table experiment={study.name}" in text


@pytest.mark.parametrize("name", TRAINED)
def test_studies_share_what_they_do_not_study(name):
    """One cell in several studies is one run only where everything else is equal."""
    control = load(["train=study", "measure=study", "decode=study"])
    for planned in expand([f"experiment={name}"]).runs:
        config = planned.config
        assert (config.data, config.decode, config.measure) == (control.data, control.decode, control.measure)
        if name != "learning_rate":
            assert config.train == control.train


def test_matched_keys_have_as_many_parameters():
    def parameters(config):
        model = build(config.model, config.attention, 2000, seed=1)
        return sum(one.numel() for one in model.parameters())

    base = parameters(load([]))
    matched = [run for run in expand(["experiment=key_size"]).runs if run.config.model.d_ff != 256]
    assert {run.config.model.key_size for run in matched} == {4, 8, 32}
    for planned in matched:
        assert parameters(planned.config) == pytest.approx(base, rel=1e-3)


def test_what_is_measured_is_said_in_words():
    share = claim("share", "below", 0.5, cells="ab", control="c", of=("w", "c"), choose="n")
    assert share.quantity == "share of m, a, b to c of w to c, each at its lowest n of the other seeds"
    rise = replace(share, effect=Effect.rise, choose=None)
    assert rise.quantity == "share of m, a, b to c of w to c (a rise)"
    assert (
        claim("slope", "below", 0.5, cells="ab", against=(8.0, 0.003)).quantity
        == "slope of m, a, b over 8, 0.003"
    )
    assert share.labels == ("a", "b", "c", "w", "c")

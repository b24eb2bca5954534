"""Every study's file and claims: cells that exist, metrics that runs have, labels that the table uses."""

import math
from pathlib import Path

import pytest
from made_cells import claim

from attnlab.compose import load
from attnlab.model.initialise import build
from attnlab.run import run
from attnlab.study.expected import load_claims
from attnlab.study.grid import Impossible, expand
from attnlab.study.metric import Metric

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


def labels(study):
    """As in a table: the arm, then what else the grid or the listed cell sets."""
    found = set()
    for planned in study.cells:
        settings = dict(item.split("=", 1) for item in planned.overrides)
        settings.pop("seed", None)
        arm = settings.pop("attention", study.base.attention.name)
        found.add(" ".join([arm, *(f"{key}={value}" for key, value in settings.items())]))
    return found


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


def test_every_claim_says_where_it_comes_from_and_can_fail(study):
    for one in load_claims(ROOT / "experiments" / study.name / "expected.yaml"):
        assert one.region.low < one.region.high
        assert math.isfinite(one.region.low) or math.isfinite(one.region.high)
        assert len(one.source) > 2


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
    assert share.quantity == "share of m, a, b to c of w to c, each at its lowest n"
    assert (
        claim("slope", "below", 0.5, cells="ab", against=(8.0, 0.003)).quantity
        == "slope of m, a, b over 8, 0.003"
    )
    assert share.labels == ("a", "b", "c", "w", "c")

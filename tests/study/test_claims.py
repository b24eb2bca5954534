"""Claims: what expected.yaml may hold, and the verdict by where the interval lies."""

import math
from pathlib import Path

import pytest

from attnlab.compose import load
from attnlab.errors import UserError
from attnlab.study.cells import Cell, SeedRun
from attnlab.study.claims import Claim, Direction, Kind, Verdict, judge, load_claims
from attnlab.study.grid import expand
from attnlab.tracking.folder import RunFolder
from attnlab.tracking.status import State, Status

ROOT = Path(__file__).parents[2]
LINES = {
    "id": "X1", "statement": "It is so.", "metric": "final/dev/nll", "kind": "difference", "cell": "zero_fill",
    "control": "correct", "direction": "below", "bounds": "[0.0]", "source": "nowhere",
}  # fmt: skip


def written(tmp_path, **changes):
    """An expected.yaml with one claim, which differs from LINES."""
    lines = {**LINES, **changes}
    path = tmp_path / "expected.yaml"
    path.write_text(
        "claims:\n  - " + "\n    ".join(f"{key}: {value}" for key, value in lines.items() if value) + "\n"
    )
    return path


def cell(name, values, diverged=(), metric="m", **more):
    """A cell with these values by seed, and seeds that diverged."""
    done = {seed: Status(State.done, results={metric: value}) for seed, value in values.items()}
    for seed in values:
        done[seed].results.update({key.replace("_", "/"): float(value) for key, value in more.items()})
    ended = done | {seed: Status(State.diverged) for seed in diverged}
    folder, config = RunFolder(Path("nowhere")), load([])
    return Cell(name, (), tuple(SeedRun(seed, config, folder, ended[seed], {}) for seed in sorted(ended)))


def claim(kind, direction, *bounds, cells=("a",), control=None, metric="m"):
    return Claim("X", "s", metric, Kind(kind), tuple(cells), control, Direction(direction), bounds, "src")


def test_a_claim_is_read(tmp_path):
    (found,) = load_claims(written(tmp_path))
    assert found == Claim(
        "X1", "It is so.", "final/dev/nll", Kind.difference, ("zero_fill",), "correct", Direction.below, (0.0,), "nowhere",
    )  # fmt: skip
    assert (found.region.low, found.region.high) == (-math.inf, 0.0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "sum"}, "kind: got 'sum', allowed: value, difference, ratio, ordering"),
        ({"direction": "up"}, "direction: got 'up', allowed: below, above, within"),
        ({"control": "null"}, "control: got nothing, allowed for kind difference: the label of a cell"),
        ({"kind": "value"}, "control: got 'correct', allowed for kind value: null"),
        ({"direction": "within"}, r"bounds: got '\[0.0\]', allowed for direction within: \[low, high\]"),
        ({"direction": "within", "bounds": "[2, 1]"}, r"bounds: got '\[2, 1\]'"),
        ({"bounds": "[.nan]"}, "bounds"),
        ({"bounds": "['a']"}, "bounds"),
        ({"cell": "[zero_fill, correct]"}, "cell.*the label of one cell"),
        ({"kind": "ordering", "control": "null"}, "cell.*a list of two labels"),
        ({"source": ""}, "allowed: exactly bounds, cell, control"),
        ({"size": "3"}, "got .*size, allowed: exactly"),
        ({"id": "7"}, "id: got '7', allowed: text"),
        ({"metric": "[1"}, "allowed: YAML"),
    ],
)
def test_each_wrong_claim_is_one_sentence(tmp_path, changes, words):
    with pytest.raises(UserError, match=words) as caught:
        load_claims(written(tmp_path, **changes))
    assert "\n" not in str(caught.value)
    assert "expected.yaml" in str(caught.value)


def test_files_that_are_no_claims_and_ids_that_stand_twice(tmp_path):
    path = written(tmp_path)
    path.write_text(path.read_text() + path.read_text().removeprefix("claims:\n"))
    with pytest.raises(UserError, match="'X1' 2 times"):
        load_claims(path)
    path.write_text("- 1\n")
    with pytest.raises(UserError, match="one key `claims`"):
        load_claims(path)
    with pytest.raises(UserError, match="cannot be read"):
        load_claims(tmp_path / "none.yaml")


# Values 1, 2, 3: mean 2, sd 1, interval 2 ± 4.3027 / sqrt(3) = [-0.4841, 4.4841].
@pytest.mark.parametrize(
    ("direction", "bounds", "verdict"),
    [
        ("below", [5.0], Verdict.confirmed),
        ("below", [4.0], Verdict.inconclusive),
        ("below", [-0.5], Verdict.refuted),
        ("above", [-1.0], Verdict.confirmed),
        ("above", [0.0], Verdict.inconclusive),
        ("above", [4.5], Verdict.refuted),
        ("within", [-1.0, 5.0], Verdict.confirmed),
        ("within", [-1.0, 4.0], Verdict.inconclusive),
        ("within", [5.0, 6.0], Verdict.refuted),
        ("within", [1.9, 2.1], Verdict.inconclusive),
    ],
)
def test_the_verdict_is_where_the_interval_lies(direction, bounds, verdict):
    found = judge(claim("value", direction, *bounds), {"a": cell("a", {1: 1.0, 2: 2.0, 3: 3.0})})
    assert found.verdict is verdict
    assert found.estimates[0].mean == 2.0
    assert found.estimates[0].interval.high == pytest.approx(4.4841, abs=1e-4)


def test_difference_and_ratio_are_paired_with_the_control():
    cells = {"a": cell("a", {1: 11.0, 2: 21.1, 7: 0.0}), "c": cell("c", {1: 10.0, 2: 20.0, 8: 99.0})}
    found = judge(claim("difference", "above", 0.0, control="c"), cells)
    assert (found.verdict, found.estimates[0].n) == (
        Verdict.confirmed,
        2,
    )  # 1.05 ± 0.64; unpaired it is far off
    assert found.estimates[0].mean == pytest.approx(1.05)
    found = judge(claim("ratio", "within", 0.5, 2.0, control="c"), cells)
    assert found.verdict is Verdict.confirmed
    assert found.estimates[0].mean == pytest.approx(math.sqrt(1.1 * 1.055))


def test_an_ordering_needs_every_step():
    cells = {
        "a": cell("a", {1: 1.0, 2: 2.0}), "b": cell("b", {1: 2.0, 2: 3.01}), "d": cell("d", {1: 0.0, 2: 1.01}),
        "e": cell("e", {1: 0.0, 2: 9.0}),
    }  # fmt: skip
    assert judge(claim("ordering", "above", 0.0, cells=["a", "b"]), cells).verdict is Verdict.confirmed
    assert judge(claim("ordering", "above", 0.0, cells=["a", "b", "d"]), cells).verdict is Verdict.refuted
    assert (
        judge(claim("ordering", "above", 0.0, cells=["a", "b", "e"]), cells).verdict is Verdict.inconclusive
    )
    assert judge(claim("ordering", "below", 0.0, cells=["b", "a", "d"]), cells).verdict is Verdict.confirmed


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({}, "no cell `a`"),
        ({"a": Cell("a", (), (), "heads: no divisor")}, "invalid: heads: no divisor"),
        ({"a": cell("a", {})}, "no finished seed of `a` has m"),
        ({"a": cell("a", {1: 5.0})}, "one seed"),
        ({"a": cell("a", {1: 5.0, 2: math.nan})}, "not finite"),
        ({"a": cell("a", {1: 5.0, 2: 5.1}, diverged=[3])}, "1 of 3 seeds of `a` diverged"),
    ],
)
def test_what_has_no_interval_is_inconclusive_with_the_reason(cells, reason):
    found = judge(claim("value", "above", 0.0), cells)
    assert found.verdict is Verdict.inconclusive
    assert reason in found.reason


def test_what_cannot_be_compared_says_why():
    cells = {"a": cell("a", {1: 0.0}), "c": cell("c", {1: 2.0}), "d": cell("d", {2: 2.0})}
    for kind, control, reason in (("ratio", "c", "not above 0"), ("difference", "d", "no seed that all")):
        found = judge(claim(kind, "below", 1.0, control=control), cells)
        assert (found.verdict, found.estimates) == (Verdict.inconclusive, ())
        assert reason in found.reason


def test_a_metric_that_no_run_has_is_named():
    found = judge(claim("value", "below", 1.0, metric="final/dev/nl"), {"a": cell("a", {1: 0.0, 2: 1.0})})
    assert found.reason == "no finished seed of `a` has final/dev/nl"


def test_seeds_that_are_all_equal_say_so_beside_the_verdict():
    found = judge(claim("value", "below", 1.0), {"a": cell("a", {1: 0.0, 2: 0.0, 3: 0.0})})
    assert found.verdict is Verdict.confirmed
    assert "every seed has the same number" in found.reason


def test_divergence_is_counted_exactly():
    found = judge(
        claim("value", "above", 0.2, metric="diverged"), {"a": cell("a", {1: 0.0}, diverged=[2, 3, 4, 5])}
    )
    assert found.estimates[0].mean == 0.8
    # Clopper-Pearson of 4 in 5: [0.2836, 0.9949]
    assert found.estimates[0].interval.low == pytest.approx(0.2836, abs=1e-4)
    assert found.verdict is Verdict.confirmed


def test_all_empty_in_every_seed_has_the_exact_interval_over_sentences():
    empty = "test/prefix/empty"
    cells = {"a": cell("a", {1: 1.0, 2: 1.0}, metric=empty, test_prefix_sentences=30)}
    found = judge(claim("value", "above", 0.95, metric=empty), cells)
    assert found.estimates[0].interval.low == pytest.approx(0.025 ** (1 / 60))  # 0.9404
    assert (
        found.verdict is Verdict.inconclusive
    )  # 60 sentences cannot tell 0.95; a t-interval without width would
    assert judge(claim("value", "above", 0.9, metric=empty), cells).verdict is Verdict.confirmed
    alone = {"a": cell("a", {1: 1.0}, metric=empty, test_prefix_sentences=1000)}
    assert judge(claim("value", "above", 0.9, metric=empty), alone).verdict is Verdict.inconclusive


def test_the_demo_s_claims_name_its_cells():
    claims = load_claims(ROOT / "experiments" / "demo" / "expected.yaml")
    arms = {run.config.attention.name for run in expand(["experiment=demo"]).runs}
    named = {name for one in claims for name in (*one.cells, *([one.control] if one.control else []))}
    assert len(claims) >= 6
    assert named <= arms

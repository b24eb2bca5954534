"""expected.yaml: what it may hold, each mistake one sentence."""

import math
from pathlib import Path

import pytest

from attnlab.errors import UserError
from attnlab.study.claims import Claim, Direction, Effect, Kind
from attnlab.study.expected import load_claims, registered, without_cell
from attnlab.study.grid import expand

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


def test_claims_about_cells_that_the_grid_lacks_are_counted(tmp_path):
    study = expand(["experiment=demo", "model.d_k=8,16"])
    (right,) = load_claims(written(tmp_path, cell="zero_fill model.d_k=8", control="correct model.d_k=16"))
    (wrong,) = load_claims(written(tmp_path, cell="zerofill model.d_k=8", control="correct model.d_k=16"))
    assert without_cell(study, [right]) is None
    line = "claims: 1 of 2 name a cell that this grid lacks, X1 `zerofill model.d_k=8`"
    assert without_cell(study, [right, wrong]) == line


@pytest.mark.parametrize(
    "name", sorted(path.parent.name for path in ROOT.glob("experiments/*/expected.yaml"))
)
def test_the_shipped_claims_are_about_cells_of_their_grid(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    study = expand([f"experiment={name}"])
    assert without_cell(study, registered(study)) is None


def test_a_claim_is_read(tmp_path):
    (found,) = load_claims(written(tmp_path))
    assert found == Claim(
        "X1", "It is so.", "final/dev/nll", Kind.difference, ("zero_fill",), ("correct",), Direction.below, (0.0,),
        "nowhere",
    )  # fmt: skip
    assert (found.region.low, found.region.high) == (-math.inf, 0.0)


def test_what_a_kind_adds_is_read(tmp_path):
    row = {"cell": "[a, b]", "control": "null", "kind": "rank"}
    (numbers,) = load_claims(written(tmp_path, **row, against="[1, 8]"))
    assert (numbers.cells, numbers.controls, numbers.against) == (("a", "b"), (), (1.0, 8.0))
    (other,) = load_claims(written(tmp_path, **row, against="test/prefix/bleu"))
    assert other.against == "test/prefix/bleu"
    (slope,) = load_claims(written(tmp_path, kind="slope", cell="[a, b]", control="[c, d]", against="[1, 8]"))
    assert slope.controls == ("c", "d")
    (share,) = load_claims(written(tmp_path, kind="share", of="[c, d]", cell="[a, b]", choose="m@0"))
    assert (share.cells, share.controls, share.of, share.choose) == (
        ("a", "b"),
        ("correct",),
        ("c", "d"),
        "m@0",
    )
    assert (share.effect, share.check) == (None, False)
    (rise,) = load_claims(written(tmp_path, kind="share", of="[c, d]", effect="rise", check="true"))
    assert (rise.effect, rise.check) == (Effect.rise, True)


ROW = {"cell": "[a, b]", "control": "null"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "sum"}, "kind: got 'sum', allowed: value, difference, ratio, share, ordering, slope"),
        ({"direction": "up"}, "direction: got 'up', allowed: below, above, within"),
        ({"control": "null"}, "control: got nothing, allowed for kind difference: the label of one cell"),
        ({"control": "[a, b]"}, "control: .* allowed for kind difference: the label of one cell"),
        ({"kind": "value"}, "control: got 'correct', allowed for kind value: null"),
        ({"kind": "sd"}, "control: got 'correct', allowed for kind sd: null"),
        ({"direction": "within"}, r"bounds: got '\[0.0\]', allowed for direction within: \[low, high\]"),
        ({"direction": "within", "bounds": "[2, 1]"}, r"bounds: got '\[2, 1\]'"),
        ({"bounds": "[.nan]"}, "bounds"),
        ({"bounds": "['a']"}, "bounds"),
        ({"cell": "[zero_fill, correct]"}, "cell.*the label of one cell"),
        ({"kind": "ordering", "control": "null"}, "cell.*a list of two labels"),
        ({"source": ""}, "allowed: bounds, cell, control"),
        ({"size": "3"}, "got .*size, allowed for kind difference: exactly .*, and choose, check"),
        ({"of": "[a, b]"}, "got .*of, allowed for kind difference: exactly"),
        ({"kind": "share"}, "allowed for kind share: exactly .*of"),
        ({"kind": "share", "of": "[a, b, c]"}, "of: got 3 labels, allowed: two"),
        ({"kind": "slope", **ROW}, "allowed for kind slope: exactly against"),
        ({"kind": "slope", **ROW, "against": "[1]"}, "against: .* allowed for kind slope: 2 numbers above 0"),
        (
            {"kind": "slope", **ROW, "against": "[0, 1]"},
            "against: .* allowed for kind slope: 2 numbers above 0",
        ),
        ({"kind": "slope", **ROW, "against": "m"}, "against: got 'm', allowed for kind slope: 2 numbers"),
        ({"kind": "rank", **ROW, "against": "m n"}, "against: got 'm n', allowed: name, name@step"),
        (
            {"kind": "rank", "cell": "[a, b]", "control": "[c, d, e]", "against": "m"},
            "got 3 labels, allowed: as many",
        ),
        (
            {"kind": "optimum", **ROW, "against": "[1, 2]"},
            "control: got nothing, allowed for kind optimum: a list",
        ),
        ({"kind": "ratio", "choose": "3"}, "choose: got '3', allowed: a metric"),
        (
            {"kind": "value", "control": "null", "choose": "m"},
            "got .*choose, allowed for kind value: exactly",
        ),
        (
            {"kind": "share", "of": "[a, b]", "effect": "up"},
            "effect: got 'up', allowed: rise, fall",
        ),
        ({"effect": "rise"}, "got .*effect, allowed for kind difference: exactly"),
        ({"check": "1"}, "check: got '1', allowed: true, false"),
        ({"metric": "a b"}, "metric: got 'a b', allowed: name, name@step"),
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

"""Checkpoints: whole or not at all, plain types only, averages by hand."""

import pickle

import pytest
import torch

from attnlab.errors import UserError
from attnlab.training import checkpoint


class Foreign:
    """What an attacker's or another tool's pickle would hold."""


def test_round_trip(tmp_path):
    content = {"model": {"w": torch.arange(6.0).view(2, 3)}, "step": 3, "words": [1, 2**63]}
    checkpoint.save(tmp_path / "checkpoint.pt", content)
    back = checkpoint.load(tmp_path / "checkpoint.pt")
    assert torch.equal(back["model"]["w"], content["model"]["w"])
    assert (back["step"], back["words"]) == (3, [1, 2**63])
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.pt"]


@pytest.mark.parametrize("break_it", ["foreign", "pickle", "truncated", "text", "empty"])
def test_R55_anything_but_tensors_and_plain_types_is_one_sentence(tmp_path, break_it):
    path = tmp_path / "checkpoint.pt"
    match break_it:
        case "foreign":
            torch.save({"config": Foreign()}, path)
        case "pickle":
            path.write_bytes(pickle.dumps({"a": 1}))
        case "truncated":
            checkpoint.save(path, {"model": {"w": torch.zeros(1000)}})
            path.write_bytes(path.read_bytes()[:2000])
        case "text":
            path.write_text("no checkpoint")
        case "empty":
            path.touch()
    with pytest.raises(UserError, match="force=true") as caught:
        checkpoint.load(path)
    assert "\n" not in str(caught.value)


def test_a_kill_while_saving_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint.pt"
    checkpoint.save(path, {"step": 1})

    def cut(content, file):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(torch, "save", cut)
    with pytest.raises(KeyboardInterrupt):
        checkpoint.save(path, {"step": 2})
    assert checkpoint.load(path)["step"] == 1


def test_average_is_the_mean():
    snapshots = [
        {"w": torch.tensor([1.0, 2.0])},
        {"w": torch.tensor([2.0, 4.0])},
        {"w": torch.tensor([6.0, 0.0])},
    ]
    assert torch.equal(checkpoint.average(snapshots)["w"], torch.tensor([3.0, 2.0]))
    with pytest.raises(ValueError, match="no checkpoints"):
        checkpoint.average([])


def test_clone_is_not_changed_by_later_steps():
    weight = torch.nn.Parameter(torch.zeros(2))
    copy = checkpoint.clone({"w": weight})
    with torch.no_grad():
        weight += 1
    assert copy["w"].sum() == 0

"""Checkpoints: whole or not at all, plain types only, averages by hand."""

import hashlib
import os
import pickle
import zipfile

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

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


@pytest.mark.parametrize("break_it", ["foreign", "a list", "pickle", "truncated", "text", "empty"])
def test_R55_anything_but_tensors_and_plain_types_is_one_sentence(tmp_path, break_it):
    path = tmp_path / "checkpoint.pt"
    match break_it:
        case "foreign":
            torch.save({"config": Foreign()}, path)
        case "a list":
            torch.save([torch.zeros(2)], path)
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


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A checkpoint of every kind of content, its content and a place for a damaged copy."""
    path = tmp_path_factory.mktemp("saved") / "checkpoint.pt"
    content = {"model": {"w": torch.arange(40.0), "b": torch.ones(2)}, "step": 3, "device": "cpu", "lr": 0.25}
    checkpoint.save(path, content)
    return path.read_bytes(), content, path.with_name("damaged.pt")


@given(place=st.floats(0, 1, exclude_max=True), bits=st.integers(1, 255), length=st.integers(1, 64))
def test_damaged_bytes_are_refused_before_anything_is_read(saved, place, bits, length):
    data, content, path = saved
    start = int(place * len(data))
    path.write_bytes(
        bytes(byte ^ bits if start <= i < start + length else byte for i, byte in enumerate(data))
    )
    refused_or_the_same(path, content)


def test_every_flipped_bit_is_refused_but_those_of_the_seals_name(saved):
    data, content, path = saved
    name = range(data.index(b"attnlab sha256:"), len(data) - 32)
    for place in range(0, len(data), 5):
        path.write_bytes(data[:place] + bytes([data[place] ^ (1 << place % 8)]) + data[place + 1 :])
        assert refused_or_the_same(path, content) or place in name


def refused_or_the_same(path, content):
    """Whether it is refused, in one sentence; if it is not, it holds what was saved."""
    told = None
    try:
        loaded = checkpoint.load(path)
    except UserError as error:
        told = str(error)
    if told is not None:
        assert "\n" not in told
        return True
    assert loaded["model"].keys() == content["model"].keys()
    assert all(torch.equal(loaded["model"][name], tensor) for name, tensor in content["model"].items())
    assert {**loaded, "model": 0} == {**content, "model": 0}
    return False


def test_the_file_is_one_that_torch_reads_by_itself(saved):
    data, content, path = saved
    path.write_bytes(data)
    assert torch.equal(torch.load(path)["model"]["w"], content["model"]["w"])
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.comment == b"attnlab sha256:" + hashlib.sha256(data[:-32]).digest()


def test_a_checkpoint_from_before_the_seal_is_read_and_watched_too(saved):
    _, content, path = saved
    torch.save(content, path)
    assert not refused_or_the_same(path, content)
    data = path.read_bytes()
    place = data.index(content["model"]["w"].numpy().tobytes())
    path.write_bytes(data[:place] + b"\x01" + data[place + 1 :])
    with pytest.raises(UserError, match=r"the checksum of .*data/0 does not fit"):
        checkpoint.load(path)


def test_a_kill_while_saving_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint.pt"
    checkpoint.save(path, {"step": 1})

    def cut(number):
        os.ftruncate(number, 100)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", cut)
    with pytest.raises(KeyboardInterrupt):
        checkpoint.save(path, {"step": 2})
    assert checkpoint.load(path)["step"] == 1
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint.pt"]


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

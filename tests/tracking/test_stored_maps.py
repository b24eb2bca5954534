"""Attention maps in a run folder: what is kept comes back, in few bytes, and equal runs write equal bytes."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from attnlab.data.batching import Batch
from attnlab.data.tokenizer import PAD
from attnlab.measure.maps import READABLE, AttentionMap, short_sentence
from attnlab.tracking.attention import FILE, read_attention, save_attention

SRC, TGT = ["▁a", "</s>"], ["<s>", "▁ein", "<script>"]


def maps(weights=None):
    shapes = {"encoder": (SRC, SRC), "decoder": (TGT, TGT), "cross": (TGT, SRC)}
    return [
        AttentionMap(f"{site}/layer1/head{head}", np.full((len(q), len(k)), 1 / len(k)) if weights is None else weights[: len(q), : len(k)], q, k)
        for site, (q, k) in shapes.items() for head in (1, 2)
    ]  # fmt: skip


@settings(max_examples=30)
@given(arrays(np.float32, (3, 3), elements=st.floats(0, 1, width=32)))
def test_weights_come_back_to_a_thousandth(tmp_path_factory, weights):
    folder = tmp_path_factory.mktemp("run")
    save_attention(folder, 7, maps(weights))
    read = read_attention(folder)
    assert (read.step, read.src, read.tgt) == (7, SRC, TGT)
    for one in maps(weights):
        np.testing.assert_allclose(read.weights[one.name], one.weights, atol=0.0005 + 1e-6)


def test_a_weight_that_is_no_number_comes_back_as_nan(tmp_path):
    weights = np.array([[np.nan, 0.5, 0], [np.inf, 0.25, 0], [0, 0, 1]])
    save_attention(tmp_path, 0, maps(weights))
    read = read_attention(tmp_path).weights["encoder/layer1/head1"]
    np.testing.assert_array_equal(read, [[np.nan, 0.5], [np.nan, 0.25]])


def test_equal_maps_are_equal_bytes(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    first = save_attention(folder, 1, maps()).read_bytes()
    assert save_attention(folder, 1, maps()).read_bytes() == first
    assert first[4:8] == bytes(4)  # RFC 1952: the time of writing, here none
    assert [path.name for path in folder.iterdir()] == [FILE]


def test_a_run_without_maps(tmp_path):
    assert read_attention(tmp_path) is None
    with pytest.raises(ValueError, match="none"):
        save_attention(tmp_path, 1, [])


def test_six_layers_of_eight_heads_stay_under_100_kb(tmp_path):
    """The longest sentence that is chosen where there is a choice, and weights as hard to pack as they come."""
    rng, tokens = np.random.default_rng(0), ["▁word"] * READABLE
    found = [
        AttentionMap(f"{site}/layer{layer}/head{head}", rng.dirichlet([0.3] * READABLE, READABLE), tokens, tokens)
        for site in ("encoder", "decoder", "cross") for layer in range(1, 7) for head in range(1, 9)
    ]  # fmt: skip
    assert save_attention(tmp_path, 1, found).stat().st_size < 100_000


def batch(*lengths):
    """Sentences of (source, target) tokens, padded."""

    def padded(sizes):
        ids = torch.full((len(sizes), max(sizes)), PAD)
        for row, size in enumerate(sizes):
            ids[row, :size] = 9
        return ids

    src, tgt = padded([a for a, _ in lengths]), padded([b for _, b in lengths])
    return Batch(src=src, tgt_in=tgt, tgt_out=tgt, indices=[], source_tokens=0, target_tokens=0)


@pytest.mark.parametrize(
    ("lengths", "row"),
    [
        ([(5, 6), (3, 3)], 0),  # the first that can be read, not the shortest
        ([(READABLE, READABLE), (3, 3)], 0),
        ([(READABLE + 1, 3), (4, READABLE)], 1),
        ([(3, READABLE + 1), (READABLE, READABLE)], 1),
        ([(60, 50), (40, 45), (30, 70)], 1),  # none can: the shortest, by its longer side
    ],
)
def test_the_sentence_is_short_and_depends_on_the_text_alone(lengths, row):
    assert short_sentence(batch(*lengths)) == row

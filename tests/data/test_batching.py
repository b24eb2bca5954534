"""Batches against plain definitions: every pair once, budgets kept, exact lengths, and tensors built the slow way."""

import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from settings import MULTI30K, data_config, needs_multi30k

from attnlab.data.batching import (
    Encoded,
    collate,
    drop_long,
    encode,
    epoch_batches,
    padding_share,
)
from attnlab.data.corpus import load_corpus
from attnlab.data.tokenizer import BOS, EOS, PAD, UNK, prepare_tokenizer
from attnlab.errors import UserError

EQUAL = pytest.mark.parametrize("equal", [True, False], ids=["equal", "unequal"])


def _made(lengths: list[tuple[int, int]]) -> Encoded:
    """Pairs of these lengths; each id tells pair and place apart."""
    src = [np.arange(4, 4 + n, dtype=np.int32) + 100 * i for i, (n, _) in enumerate(lengths)]
    return Encoded(src, [np.arange(50, 50 + m, dtype=np.int32) + 100 * i for i, (_, m) in enumerate(lengths)])


def _random(count: int, seed: int = 0) -> Encoded:
    draw = np.random.default_rng(seed)
    tgt = draw.poisson(9, count)
    return _made([(max(0, int(n + draw.normal(0, 3))), int(n)) for n in tgt])


def _padded(encoded: Encoded, batch: list[int]) -> tuple[int, int]:
    """Positions a batch takes up on each side, by definition."""
    return tuple(len(batch) * (max(len(side[i]) for i in batch) + 1) for side in (encoded.src, encoded.tgt))


pairs = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=60)


@settings(max_examples=200, deadline=None)
@given(lengths=pairs, budget=st.integers(1, 200), seed=st.integers(0, 5), equal=st.booleans())
def test_every_pair_once_and_the_budget_kept(lengths, budget, seed, equal):
    encoded = _made(lengths)
    batches = epoch_batches(encoded, budget, seed, 0, equal)
    assert sorted(i for batch in batches for i in batch) == list(range(len(encoded)))
    for batch in batches:
        assert max(_padded(encoded, batch)) <= budget or len(batch) == 1
        assert not equal or len({len(encoded.tgt[i]) for i in batch}) == 1


@EQUAL
def test_R53_the_order_is_a_function_of_seed_and_epoch(equal):
    encoded = _random(500)

    def of(seed: int, epoch: int) -> list[list[int]]:
        return epoch_batches(encoded, 400, seed, epoch, equal)

    assert of(3, 7) == of(3, 7)
    orders = [of(seed, epoch) for seed in (-1, 0, 1) for epoch in range(3)]
    assert len({str(order) for order in orders}) == len(orders)
    # not only the turn of the batches differs: which pairs stand together does too
    assert len({str(sorted(map(sorted, order))) for order in orders}) == len(orders)


SHOW = """
import sys
sys.path.insert(0, sys.argv[1])
from test_batching import _random, epoch_batches
print([epoch_batches(_random(300), 300, 5, 2, equal) for equal in (True, False)])
"""


def test_R53_threads_and_hash_seeds_have_no_part_in_the_order(request):
    env = {**os.environ, "PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": "2", "OMP_NUM_THREADS": "2"}
    command = [sys.executable, "-c", SHOW, str(request.path.parent)]
    shown = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=True).stdout
    assert shown.strip() == str([epoch_batches(_random(300), 300, 5, 2, equal) for equal in (True, False)])


@EQUAL
def test_R64_each_pair_once_per_epoch_and_epochs_differ(equal):
    encoded = _random(400)
    epochs = [epoch_batches(encoded, 300, 1, epoch, equal) for epoch in range(2)]
    for batches in epochs:
        assert Counter(i for batch in batches for i in batch) == Counter(range(400))
    assert epochs[0] != epochs[1]
    assert epochs == [epoch_batches(encoded, 300, 1, epoch, equal) for epoch in range(2)]


def test_equal_lengths_take_turns_at_random():
    """With one length for all, an epoch is a plain shuffle: each pair stands first about equally often."""
    encoded = _made([(5, 5)] * 8)
    firsts = Counter(epoch_batches(encoded, 12, seed, 0, True)[0][0] for seed in range(2000))
    assert set(firsts) == set(range(8))
    assert (
        sum((count - 250) ** 2 / 250 for count in firsts.values()) < 24.3
    )  # chi-squared, 7 degrees, p = 0.001


@EQUAL
def test_batches_take_turns_at_random(equal):
    """Each pair is a batch of its own here, so the epochs differ in nothing but the turn of the batches."""
    encoded = _made([(n, n) for n in range(8)])
    firsts = Counter(epoch_batches(encoded, 1, seed, 0, equal)[0][0] for seed in range(2000))
    assert set(firsts) == set(range(8))
    assert (
        sum((count - 250) ** 2 / 250 for count in firsts.values()) < 24.3
    )  # chi-squared, 7 degrees, p = 0.001


def test_a_bucket_is_cut_evenly():
    """101 equal pairs of 10 positions with room for 50: three batches, and not 50 + 50 + 1."""
    batches = epoch_batches(_made([(9, 9)] * 101), 500, 0, 0, True)
    assert sorted(map(len, batches)) == [33, 34, 34]


@settings(max_examples=100, deadline=None)
@given(lengths=pairs, budget=st.integers(1, 100))
def test_a_bucket_is_cut_into_as_few_batches_as_can_be(lengths, budget):
    """Against the shortest way by dynamic programming over all places to cut."""
    encoded = _made([(n, 6) for n, _ in lengths])
    sizes = sorted(max(n, 6) + 1 for n, _ in lengths)
    fewest = [0] + [len(sizes)] * len(sizes)
    for end in range(1, len(sizes) + 1):
        for start in range(end):
            if (end - start) * max(sizes[start:end]) <= budget or end - start == 1:
                fewest[end] = min(fewest[end], fewest[start] + 1)
    assert len(epoch_batches(encoded, budget, 0, 0, True)) == fewest[-1]


@settings(max_examples=100, deadline=None)
@given(lengths=pairs)
def test_tensors_equal_those_built_by_pad_sequence(lengths):
    encoded = _made(lengths)
    batch = collate(encoded, list(range(len(lengths))))

    def padded(rows: list[list[int]]) -> torch.Tensor:
        tensors = [torch.tensor(row, dtype=torch.int64) for row in rows]
        return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=PAD)

    src, tgt = ([ids.tolist() for ids in side] for side in (encoded.src, encoded.tgt))
    assert batch.src.dtype == torch.int64
    assert torch.equal(batch.src, padded([[*ids, EOS] for ids in src]))
    assert torch.equal(batch.tgt_in, padded([[BOS, *ids] for ids in tgt]))
    assert torch.equal(batch.tgt_out, padded([[*ids, EOS] for ids in tgt]))
    assert batch.target_tokens == int((batch.tgt_out != PAD).sum())
    assert batch.indices == list(range(len(lengths)))
    moved = batch.to("cpu")
    assert torch.equal(moved.tgt_out, batch.tgt_out)


def test_R23_no_batch_is_all_padding():
    """A pair of nothing still has its EOS on both sides, and a batch of no pairs is refused."""
    batch = collate(_made([(0, 0), (3, 2)]), [0])
    assert (batch.src.tolist(), batch.tgt_in.tolist(), batch.tgt_out.tolist()) == ([[EOS]], [[BOS]], [[EOS]])
    assert batch.target_tokens == 1
    with pytest.raises(ValueError, match="at least one"):
        collate(_made([(1, 1)]), [])


def test_padding_share_by_counting_pads():
    encoded = _random(200)
    batches = epoch_batches(encoded, 300, 0, 0, False)
    tensors = [collate(encoded, batch) for batch in batches]
    for share, name in zip(padding_share(encoded, batches), ("src", "tgt_out"), strict=True):
        ids = torch.cat([getattr(batch, name).flatten() for batch in tensors])
        assert share == pytest.approx((ids == PAD).double().mean().item(), abs=1e-12)
    assert padding_share(_made([(3, 3)] * 4), [[0, 1], [2, 3]]) == (0.0, 0.0)


def test_R31_pairs_with_a_longer_side_are_dropped_and_counted():
    encoded = _made([(3, 3), (3_000, 2), (4, 5), (2, 6), (5, 5)])
    kept, dropped = drop_long(encoded, 5)
    assert dropped == 2
    assert [len(ids) for ids in kept.src] == [3, 4, 5]
    assert [ids[0] for ids in kept.tgt] == [50, 250, 450]
    with pytest.raises(UserError, match=r"data\.max_pieces=2: each of the 5 .* shortest has 3 pieces"):
        drop_long(encoded, 2)


def test_unknown_pieces_are_counted_by_side():
    arrays = [np.array([4, UNK, UNK], np.int32), np.array([], np.int32)]
    assert Encoded(arrays, arrays[::-1]).unknown() == (2, 2)
    assert Encoded(arrays, [np.array([UNK], np.int32)] * 2).unknown() == (2, 2)
    assert Encoded(arrays[1:], [np.array([UNK], np.int32)]).unknown() == (0, 1)


@needs_multi30k
def test_multi30k_pads_less_than_8_percent(tmp_path):
    config = data_config("files", dir=str(MULTI30K))
    corpus = load_corpus(config)
    encoded, dropped = drop_long(
        encode(corpus.train, prepare_tokenizer(corpus, config.tokenizer, tmp_path)), config.max_pieces
    )
    assert dropped == 0
    for equal in (True, False):
        batches = epoch_batches(encoded, 4096, 1, 0, equal)
        assert sorted(i for batch in batches for i in batch) == list(range(29_000))
        source, target = padding_share(encoded, batches)
        positions = [sum(_padded(encoded, batch)[side] for batch in batches) for side in (0, 1)]
        overall = (source * positions[0] + target * positions[1]) / sum(positions)
        assert overall < 0.08
        assert target == 0.0 or not equal

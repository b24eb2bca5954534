"""Batches by token budget: which sentences go together, in which order, and the padded tensors they become.

The order is a pure function of (seed, epoch): no thread, worker or state has a part in it, so a resumed run goes on
exactly where it stopped and every arm of a seed sees the same batches. By default a batch holds targets of exactly
equal length: an arm that mixes positions would otherwise read target padding, and the ablation would measure that.

Axes: B sentences, S source positions (with EOS), T target positions (BOS before, EOS after).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from attnlab.data.corpus import Split
from attnlab.data.tokenizer import BOS, EOS, PAD, UNK, Tokenizer
from attnlab.errors import UserError

# In batches of unequal targets: targets of so many lengths form one band, within which sources run up, then down.
BAND = 3


@dataclass(frozen=True)
class Encoded:
    """Ids of each pair, without special pieces: int32 arrays, `src[i]` and `tgt[i]` belong together."""

    src: list[np.ndarray]
    tgt: list[np.ndarray]

    def __len__(self) -> int:
        return len(self.src)

    def lengths(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions that pair i takes up in a batch, [N] source and [N] target: its pieces and one special each."""
        count = len(self)
        src = np.fromiter((len(ids) + 1 for ids in self.src), np.int64, count)
        return src, np.fromiter((len(ids) + 1 for ids in self.tgt), np.int64, count)

    def unknown(self) -> tuple[int, int]:
        """How many UNK stand on the source and on the target side."""
        src, tgt = (sum(int(np.count_nonzero(ids == UNK)) for ids in side) for side in (self.src, self.tgt))
        return src, tgt


@dataclass(frozen=True)
class Batch:
    """`src` [B, S], its EOS last and then PAD; `tgt_in` [B, T], BOS first; `tgt_out` [B, T], EOS last.

    `indices`: which pairs they are. `source_tokens`, `target_tokens`: real positions in `src` and `tgt_out`, counted
    here so that nobody has to wait for the device to count them.
    """

    src: torch.Tensor
    tgt_in: torch.Tensor
    tgt_out: torch.Tensor
    indices: list[int]
    source_tokens: int
    target_tokens: int

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on `device`."""
        src, tgt_in, tgt_out = (ids.to(device) for ids in (self.src, self.tgt_in, self.tgt_out))
        return Batch(src, tgt_in, tgt_out, self.indices, self.source_tokens, self.target_tokens)


def encode(split: Split, tokenizer: Tokenizer) -> Encoded:
    """Ids of every pair of the split."""
    src, tgt = (
        [np.asarray(ids, dtype=np.int32) for ids in tokenizer.encode(side)] for side in (split.src, split.tgt)
    )
    return Encoded(src, tgt)


def drop_long(train: Encoded, max_pieces: int) -> tuple[Encoded, int]:
    """The training pairs with at most `max_pieces` pieces on either side, and how many were dropped.

    For training alone: dev and test never shrink. Raises UserError if none is left.
    """
    longest = np.maximum(*train.lengths()) - 1  # without the special piece
    kept = np.flatnonzero(longest <= max_pieces).tolist()
    if not kept:
        raise UserError(
            f"data.max_pieces={max_pieces}: each of the {len(train)} training pairs has a longer side; the shortest "
            f"has {longest.min()} pieces."
        )
    return Encoded([train.src[i] for i in kept], [train.tgt[i] for i in kept]), len(train) - len(kept)


def epoch_batches(
    encoded: Encoded, batch_tokens: int, seed: int, epoch: int, equal_target_lengths: bool
) -> list[list[int]]:
    """The batches of one epoch, each pair in exactly one of them.

    A batch takes at most `batch_tokens` positions on either side, padding included; a single pair longer than that
    is a batch of its own. Equal lengths are shuffled before they are cut, so epochs differ in the batches and not
    only in their order.
    """
    src, tgt = encoded.lengths()
    bits = _bits(seed, epoch)
    ties = bits.random_raw(len(encoded))
    if equal_target_lengths:
        buckets = _by_target_length(np.lexsort((ties, src, tgt)), tgt)
    else:
        band = tgt // BAND
        buckets = [np.lexsort((ties, np.where(band % 2, -src, src), band))]
    longest = np.maximum(src, tgt)
    batches = [batch for bucket in buckets for batch in _cut(bucket, longest[bucket], batch_tokens)]
    turns = np.argsort(bits.random_raw(len(batches)), kind="stable")
    return [batches[i].tolist() for i in turns]


def collate(encoded: Encoded, indices: Sequence[int]) -> Batch:
    """The padded tensors of the pairs at `indices`, in that order. An empty batch is a ValueError."""
    if not len(indices):
        raise ValueError("a batch needs at least one pair")
    rows = np.arange(len(indices))
    src, src_lengths = _pad([encoded.src[i] for i in indices])
    src[rows, src_lengths] = EOS
    tgt_out, tgt_lengths = _pad([encoded.tgt[i] for i in indices])
    tgt_in = np.empty_like(tgt_out)
    tgt_in[:, 0] = BOS
    tgt_in[:, 1:] = tgt_out[:, :-1]  # before EOS is set: the shifted input has none
    tgt_out[rows, tgt_lengths] = EOS
    src_ids, tgt_in_ids, tgt_out_ids = (torch.from_numpy(ids) for ids in (src, tgt_in, tgt_out))
    real = [int(lengths.sum()) + len(rows) for lengths in (src_lengths, tgt_lengths)]
    return Batch(src_ids, tgt_in_ids, tgt_out_ids, list(indices), *real)


def padding_share(encoded: Encoded, batches: list[list[int]]) -> tuple[float, float]:
    """Share of the positions in these batches that are padding, in [0, 1): (source, target)."""
    shares = []
    for lengths in encoded.lengths():
        real = sum(int(lengths[batch].sum()) for batch in batches)
        padded = sum(len(batch) * int(lengths[batch].max()) for batch in batches)
        shares.append(1.0 - real / padded)
    return shares[0], shares[1]


def _bits(seed: int, epoch: int) -> np.random.PCG64:
    """The random bits of one epoch's order.

    Raw bits and stable sorts, since numpy promises the stream of a bit generator for all platforms and versions, but
    not what its `shuffle` makes of it.
    """
    return np.random.PCG64(int.from_bytes(hashlib.sha256(f"{seed}/order/{epoch}".encode()).digest()))


def _by_target_length(order: np.ndarray, tgt: np.ndarray) -> list[np.ndarray]:
    """`order`, sorted by target length, cut where that length changes."""
    return np.split(order, np.flatnonzero(np.diff(tgt[order])) + 1)


def _cut(bucket: np.ndarray, longest: np.ndarray, budget: int) -> list[np.ndarray]:
    """Cuts a bucket, in its order, into as few batches as the budget allows, and those as even as can be.

    A full batch beside a tiny one would make one very noisy step. `longest[i]`: positions of the longer side.
    """
    fewest = len(_edges(longest, budget))
    low, high = 1, budget
    while low < high:
        middle = (low + high) // 2
        if len(_edges(longest, middle)) <= fewest:
            high = middle
        else:
            low = middle + 1
    return np.split(bucket, _edges(longest, low)[:-1])


def _edges(longest: np.ndarray, budget: int) -> list[int]:
    """Ends of the batches when each takes as many sentences as fit."""
    edges, start = [], 0
    while start < len(longest):
        window = longest[start : start + budget]
        cost = np.maximum.accumulate(window) * np.arange(1, len(window) + 1)
        start += max(1, int(np.searchsorted(cost, budget, side="right")))
        edges.append(start)
    return edges


def _pad(sides: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """[B, longest + 1] ids with PAD behind each, and the lengths [B]."""
    lengths = np.fromiter(map(len, sides), np.int64, len(sides))
    padded = np.full((len(sides), int(lengths.max()) + 1), PAD, dtype=np.int64)
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = np.concatenate(sides)
    return padded, lengths

"""Attention maps of one sentence, cut to its tokens: pictures for a tracker or a report."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from attnlab.config import Site
from attnlab.data.batching import Batch
from attnlab.data.tokenizer import PAD
from attnlab.measure.probes import quiet
from attnlab.model.recorder import AttentionRecord, Recorder
from attnlab.model.transformer import Transformer

READABLE = 24  # tokens: of a longer sentence neither the labels can be read nor the maps kept small


class AttentionMap(NamedTuple):
    """One head. In an arm with wrong axes a row is no token, and its label is only where it stands."""

    name: str  # <site>/layer<l>/head<h>
    weights: np.ndarray  # [queries, keys] in [0,1], as used on the values, before dropout
    queries: list[str]
    keys: list[str]


def short_sentence(batch: Batch) -> int:
    """The row whose maps are kept: the batch's first with at most READABLE tokens on either side, else its shortest.

    It depends on the text and the vocabulary alone, so all arms of a study show the same sentence.
    """
    lengths = torch.maximum((batch.src != PAD).sum(dim=1), (batch.tgt_in != PAD).sum(dim=1)).tolist()
    return next(
        (row for row, length in enumerate(lengths) if length <= READABLE), lengths.index(min(lengths))
    )


def attention_maps(
    records: list[AttentionRecord], sentence: int, src: list[str], tgt: list[str]
) -> list[AttentionMap]:
    """All heads of all records, for row `sentence` of the batch; src and tgt (from BOS on) are its
    tokens without padding.

    Raises ValueError for more tokens than the records have positions.
    """
    maps = []
    for record in records:
        queries = src if record.site is Site.encoder else tgt
        keys = tgt if record.site is Site.decoder else src
        weights = record.weights[sentence].detach().float().cpu().numpy()
        if len(queries) > weights.shape[1] or len(keys) > weights.shape[2]:
            raise ValueError(f"{len(queries)} queries and {len(keys)} keys for weights {weights.shape[1:]}")
        maps += [
            AttentionMap(f"{record.site}/layer{record.layer}/head{head}", one[: len(queries), : len(keys)], queries, keys)
            for head, one in enumerate(weights, start=1)
        ]  # fmt: skip
    return maps


def sentence_maps(
    model: Transformer, batch: Batch, sentence: int, pieces: Callable[[list[int]], list[str]]
) -> list[AttentionMap]:
    """Run the model on one sentence of `batch`, its padding cut off, and return its maps.

    `pieces` names token ids, e.g. Tokenizer.pieces. Leaves no trace, like a probe.
    """
    src, tgt_in = (ids[sentence : sentence + 1] for ids in (batch.src, batch.tgt_in))
    src, tgt_in = src[:, src[0] != PAD], tgt_in[:, tgt_in[0] != PAD]
    recorder = Recorder()
    with quiet(model), torch.no_grad():
        model.decode(tgt_in, model.encode(src, src != PAD, recorder), src != PAD, recorder=recorder)
    return attention_maps(recorder.records, 0, pieces(src[0].tolist()), pieces(tgt_in[0].tolist()))

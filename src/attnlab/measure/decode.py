"""Translation by both protocols, in batches of sources of like length, returned in input order.

Neither encoder nor decoder sees padding (`model.incremental`), so that no translation depends on its neighbours, not
even in an arm whose axes are wrong and whose numbers depend on the length.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from attnlab.config import DecodeConfig, Precision, Protocol
from attnlab.data.tokenizer import BOS, EOS, Tokenizer
from attnlab.device import autocast
from attnlab.measure.beam import beam_search
from attnlab.measure.evaluate import argmax, equal_lengths, eval_mode, read_source
from attnlab.measure.scorers import Scorer, next_logits, scorers
from attnlab.model.transformer import Transformer

LEAVE = 1 / 4  # share of a batch that must be done before it is made smaller


def greedy(scorer: Scorer, limits: Sequence[int], device: torch.device | str) -> list[list[int]]:
    """The likeliest token at each step, until EOS or the sentence's limit of pieces; pieces without BOS and EOS."""
    width = max(limits)
    tokens = torch.full((len(limits), width + 1), EOS, device=device)  # what is written, of all sentences
    prefix = torch.full_like(
        tokens, BOS
    )  # [R,width+1], of the sentences still in the batch, t tokens of them filled
    owner = torch.arange(len(limits), device=device)  # [R]
    limit = torch.tensor(limits, device=device)  # [R]
    done = limit < 1  # [R], in the batch until enough others are done too: moving the caches costs a step
    for t in range(1, width + 1):
        prefix[:, t] = token = argmax(next_logits(scorer, prefix[:, :t]))
        done = done | (token == EOS) | (limit <= t)
        count = int(done.sum())
        if count == len(done):
            break
        if count >= LEAVE * len(done):
            tokens[owner] = prefix
            rows = (~done).nonzero()[:, 0]
            scorer.reorder(rows)
            prefix, owner, limit, done = prefix[rows], owner[rows], limit[rows], done[rows]
    tokens[owner] = prefix
    pieces = (row[1 : n + 1] for row, n in zip(tokens.tolist(), limits, strict=True))
    return [row[: row.index(EOS)] if EOS in row else row for row in pieces]


# Not inference mode: the position table may grow here, and an inference tensor must not stay in the model.
@torch.no_grad()
def decode(
    model: Transformer, sources: Sequence[Sequence[int] | np.ndarray], config: DecodeConfig, protocol: Protocol,
    precision: Precision = Precision.fp32,
) -> list[list[int]]:  # fmt: skip
    """Source pieces (no specials) -> target pieces (no specials), in input order, on the model's device.

    A translation has at most max_length_factor * source pieces + max_length_extra pieces. beam 1 is greedy. The
    model is put into eval mode and back; `config.sentences` and `config.protocols` are the caller's business.
    """
    device = next(model.parameters()).device
    limits = [int(config.max_length_factor * len(source)) + config.max_length_extra for source in sources]
    outputs: dict[int, list[int]] = {}
    with eval_mode(model), autocast(precision, device):
        scorer_for = scorers(protocol, model)
        for batch in _batches([len(source) for source in sources], config):
            scorer = scorer_for(read_source(model, [sources[i] for i in batch]))
            longest = [limits[i] for i in batch]
            if config.beam == 1:
                pieces = greedy(scorer, longest, device)
            else:
                found = beam_search(
                    scorer, len(batch), config.beam, config.length_penalty, longest[0], device
                )  # fmt: skip
                pieces = [hypothesis.pieces for hypothesis in found]
            outputs |= zip(batch, pieces, strict=True)
    return [outputs[i] for i in range(len(sources))]


def _batches(lengths: list[int], config: DecodeConfig) -> list[list[int]]:
    """Shortest sources first; a beam has one limit of pieces, so that its sentences are of one length."""
    if config.beam > 1:
        return equal_lengths(lengths, config.batch_sentences)
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    size = config.batch_sentences
    return [order[start : start + size] for start in range(0, len(order), size)]


def translate(
    model: Transformer, tokenizer: Tokenizer, texts: Sequence[str], config: DecodeConfig, protocol: Protocol,
    precision: Precision = Precision.fp32,
) -> list[str]:  # fmt: skip
    """One line of text each, in input order."""
    sources = tokenizer.encode(list(texts))
    return tokenizer.decode(decode(model, sources, config, protocol, precision))

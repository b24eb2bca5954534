"""Greedy translation by both protocols, in batches of exactly equal source length, returned in input order.

Equal lengths leave no padding, so no translation depends on its neighbours, not even in an arm whose axes are wrong
and which therefore sees the padded length.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from attnlab.config import DecodeConfig, Precision, Protocol
from attnlab.data.tokenizer import BOS, EOS, Tokenizer
from attnlab.device import autocast
from attnlab.measure.beam import beam_search
from attnlab.measure.evaluate import equal_lengths, eval_mode
from attnlab.measure.scorers import Scorer, next_logits, scorer_of
from attnlab.model.transformer import Transformer


def greedy(scorer: Scorer, sentences: int, max_length: int, device: torch.device | str) -> list[list[int]]:
    """The likeliest token at each step, until EOS or `max_length` pieces; pieces without BOS and EOS."""
    prefix = torch.full((sentences, 1), BOS, device=device)  # [R,t], the sentences not done yet
    owner = torch.arange(sentences, device=device)  # [R]
    done: dict[int, list[int]] = {}
    for _ in range(max_length):
        token = next_logits(scorer, prefix).argmax(dim=-1)
        ended = token == EOS
        if bool(ended.any()):
            done |= zip(owner[ended].tolist(), prefix[ended, 1:].tolist(), strict=True)
            if len(done) == sentences:
                break
            rows = (~ended).nonzero()[:, 0]
            scorer.reorder(rows)
            prefix, owner, token = prefix[rows], owner[rows], token[rows]
        prefix = torch.cat([prefix, token[:, None]], dim=1)
    else:
        done |= zip(owner.tolist(), prefix[:, 1:].tolist(), strict=True)
    return [done[i] for i in range(sentences)]


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
    outputs: dict[int, list[int]] = {}
    with eval_mode(model), autocast(precision, device):
        for batch in equal_lengths([len(source) for source in sources], config.batch_sentences):
            src = torch.tensor([[*sources[i], EOS] for i in batch], dtype=torch.long, device=device)
            max_length = int(config.max_length_factor * (src.shape[1] - 1)) + config.max_length_extra
            scorer = scorer_of(protocol, model, src)
            if config.beam == 1:
                pieces = greedy(scorer, len(batch), max_length, device)
            else:
                found = beam_search(
                    scorer, len(batch), config.beam, config.length_penalty, max_length, device
                )  # fmt: skip
                pieces = [hypothesis.pieces for hypothesis in found]
            outputs |= zip(batch, pieces, strict=True)
    return [outputs[i] for i in range(len(sources))]


def translate(
    model: Transformer, tokenizer: Tokenizer, texts: Sequence[str], config: DecodeConfig, protocol: Protocol,
    precision: Precision = Precision.fp32,
) -> list[str]:  # fmt: skip
    """One line of text each, in input order."""
    sources = tokenizer.encode(list(texts))
    return tokenizer.decode(decode(model, sources, config, protocol, precision))

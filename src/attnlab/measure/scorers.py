"""Two ways to score the next token: the arm's own code on the whole prefix, or a key-value cache.

Shapes: R rows (one prefix each; a beam has several rows of one sentence), S source tokens, t prefix tokens, V vocabulary.
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from attnlab.config import Protocol
from attnlab.data.tokenizer import BOS, PAD
from attnlab.model.incremental import DecoderState, JoinedDecoder, Source, decode_prefix
from attnlab.model.transformer import Transformer


class Scorer(typing.Protocol):
    """What greedy and beam search ask of a model. Each call sees the prefixes of the last one, a token longer."""

    def logits(self, prefix: Tensor) -> Tensor:
        """From prefix [R,t], BOS first, the logits [R,V] of the next token; the caller may write to them."""

    def reorder(self, rows: Tensor) -> None:
        """Go on with `rows` [R'] in that order: beams are copied, finished sentences leave."""


class PrefixScorer:
    """Protocol `prefix`: re-runs the arm's decoder on the whole prefix, as code without a cache would."""

    def __init__(self, model: Transformer, source: Source) -> None:
        self.model, self.source = model, source

    def logits(self, prefix: Tensor) -> Tensor:
        """See `Scorer`; only the last position is projected to the vocabulary."""
        return self.model.project(decode_prefix(self.model, prefix, self.source, last_only=True)[:, 0])

    def reorder(self, rows: Tensor) -> None:
        """See `Scorer`."""
        self.source = self.source.rows(rows)


class CachedScorer:
    """Protocol `cached`: one position at a time. No future exists there, so the mask is right in every arm."""

    def __init__(self, decoder: JoinedDecoder, source: Source) -> None:
        self.state = DecoderState(decoder, source)

    def logits(self, prefix: Tensor) -> Tensor:
        """See `Scorer`; all but the last token is in the cache."""
        if self.state.position != prefix.shape[1] - 1:
            raise ValueError(f"a cache of {self.state.position} tokens cannot go on from {prefix.shape[1]}")
        return self.state.step(prefix[:, -1])

    def reorder(self, rows: Tensor) -> None:
        """See `Scorer`."""
        self.state.reorder(rows)


def scorers(protocol: Protocol, model: Transformer) -> Callable[[Source], Scorer]:
    """What makes a scorer of a decode protocol for each batch of sources, read by the arm's own encoder.

    To be asked for anew where the weights have changed, or autocast's precision.
    """
    match protocol:
        case Protocol.prefix:
            return partial(PrefixScorer, model)
        case Protocol.cached:
            return partial(CachedScorer, JoinedDecoder(model))


def next_logits(scorer: Scorer, prefix: Tensor) -> Tensor:
    """logits [R,V] of the next token, in fp32 at least; PAD and BOS cannot be chosen.

    Half precision is widened here: it makes ties, and on the CPU argmax over bfloat16 is slower than the cast.
    Raises ValueError for logits that are not a number, of which an argmax would make some token.
    """
    logits = scorer.logits(prefix)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    logits[:, PAD] = logits[:, BOS] = -torch.inf
    if bool(logits.amax(dim=-1).isnan().any()):
        raise ValueError("the model's logits are not a number")
    return logits

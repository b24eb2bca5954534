"""Results S33-S67 about trained weights: one sentence and its translation, seen through our own attention.

The same code looks at the page's released model, at any Marian model and at our own runs; `marian.py` and
`own_run.py` fill the `Views`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from attnlab.config import AttentionConfig, Axes, Scale, Site
from attnlab.model.attention import MultiHeadAttention, attend, merge_heads, split_heads
from attnlab.model.recorder import Recorder
from attnlab.theory.factors import CORRECT
from attnlab.theory.page.rules import Ours

IT, KATZE = 7, 2  # positions of "it" in the source and of "Katze" in the decoder input, from 0


@dataclass(frozen=True)
class Block:
    """The attention block of one site in layer 1, on the input that it had in the model."""

    ours: MultiHeadAttention  # correct factors, the model's weights
    x_q: Tensor  # [1,Q,D]
    x_kv: Tensor  # [1,K,D]
    keep: Tensor | None  # [Q,K]
    library: Tensor  # [1,Q,D], the output by code that is not ours

    def forward(self, factors: AttentionConfig = CORRECT) -> tuple[Tensor, Tensor]:
        """Output [1,Q,D] and weights [1,H,Q,K] of our block with these factors and the same weights."""
        recorder = Recorder()
        block = self.ours if factors is CORRECT else with_weights(self.ours, factors)
        return block(self.x_q, self.x_kv, self.keep, recorder=recorder), recorder.records[0].weights

    def paper_layout(self) -> Tensor:
        """Output [1,Q,D] by x W + b with the transposed matrices, as the paper writes it: another order of sums."""
        block = self.ours

        def heads(part: torch.nn.Linear, x: Tensor) -> Tensor:
            return split_heads(x @ part.weight.T + part.bias, block.heads, Axes.heads_first)

        q, k, v = heads(block.w_q, self.x_q), heads(block.w_k, self.x_kv), heads(block.w_v, self.x_kv)
        concat = merge_heads(attend(q, k, v, self.keep).out, Axes.heads_first)
        return concat @ block.w_o.weight.T + block.w_o.bias


def with_weights(block: MultiHeadAttention, factors: AttentionConfig) -> MultiHeadAttention:
    """A block with the weights of `block` and other factors."""
    heads = block.heads
    with torch.random.fork_rng(devices=[]):  # nn.Linear draws from the global stream
        other = MultiHeadAttention(
            block.w_q.in_features,
            heads,
            block.w_q.out_features // heads,
            block.w_v.out_features // heads,
            factors,
        )
    other.load_state_dict(block.state_dict())
    return other.to(block.w_q.weight).requires_grad_(False)


@dataclass(frozen=True)
class Views:
    """What a model showed on one sentence. S source tokens, T decoder input tokens, batch 1."""

    are_the_page_s: bool  # False: new numbers, never compared with the page's
    layers: tuple[int, int]  # encoder, decoder
    blocks: dict[Site, Block]
    weights: dict[Site, list[Tensor]]  # every layer, [1,H,Q,K]
    source_tokens: list[str] | None  # None: the model came without a tokenizer
    target_tokens: list[str] | None
    translation: str | None
    missing: str = "-"  # why results about tokens are not there

    def position(self, tokens: list[str] | None, token: str, on_the_page: int, length: int) -> int:
        """Where `token` stands; on other texts the page's position, or the last."""
        if tokens is not None and token in tokens:
            return tokens.index(token)
        return min(on_the_page, length - 1)


@torch.no_grad()
def view_results(views: Views) -> Iterator[tuple[str, Ours]]:
    """(id, our value) of every result that these views allow."""
    encoder, decoder, cross = (views.blocks[site] for site in (Site.encoder, Site.decoder, Site.cross))
    yield from _sizes(views, encoder.ours)
    right, right_weights = encoder.forward()
    yield "S39.difference", largest(right - encoder.library)
    yield "S41.difference", largest(encoder.paper_layout() - encoder.library)
    yield "S45.difference", largest(cross.paper_layout() - cross.library)
    yield "S46", [largest(block.library) for block in (encoder, decoder, cross)]
    yield "S54.released", max(largest(weights.triu(1)) for weights in views.weights[Site.decoder])
    yield "S55", views.weights[Site.decoder][-1][0].mean(0)[:5, :5]
    yield "S56.difference", largest(decoder.paper_layout() - decoder.library)

    it = views.position(views.source_tokens, "▁it", IT, encoder.x_q.shape[1])
    unscaled, unscaled_weights = encoder.forward(replace(CORRECT, scale=Scale.none))
    yield "S57", [right_weights[0, 0, it].max(), unscaled_weights[0, 0, it].max()]
    yield "S58", [right_weights.max(), unscaled_weights.max()]
    yield "S59", largest(unscaled - encoder.library)
    wrong = Axes.no_transpose
    split, _ = encoder.forward(replace(CORRECT, split=wrong, merge=wrong))
    yield "S65.difference", largest(split - encoder.library)
    merge, _ = encoder.forward(replace(CORRECT, merge=wrong))
    yield "S66.difference", largest(merge - encoder.library)
    yield "S67", largest(encoder.paper_layout() - encoder.library)
    if views.source_tokens is not None and views.target_tokens is not None:
        yield from _tokens(views, views.source_tokens, views.target_tokens, it)


def _sizes(views: Views, block: MultiHeadAttention) -> Iterator[tuple[str, Ours]]:
    heads = block.heads
    sizes = [block.w_q.in_features, heads, block.w_q.out_features // heads, block.w_v.out_features // heads]
    yield "S33", [*sizes, *views.layers]
    yield "S34.released", [part.weight.shape for part in (block.w_q, block.w_k, block.w_v, block.w_o)]
    yield "S35.released", sum(p.numel() for p in block.parameters())
    cross = views.weights[Site.cross][0]
    yield "S40", [cross.shape[3], cross.shape[2]]


def _tokens(views: Views, source: list[str], target: list[str], it: int) -> Iterator[tuple[str, Ours]]:
    yield "S36", source
    yield "S37", views.translation
    yield "S43.tokens", target
    yield "S42", [top_keys(head[it], source, 2) for head in views.weights[Site.encoder][0][0]]
    layer_3 = views.weights[Site.cross][min(2, len(views.weights[Site.cross]) - 1)][0].mean(0)
    yield (
        "S44",
        [[query, top_keys(row, source, 1)] for query, row in zip(target[1:], layer_3[1:], strict=True)],
    )
    katze = views.position(target, "▁Katze", KATZE, len(target))
    yield "S47", top_keys(views.weights[Site.cross][0][0].mean(0)[katze], source, 3)


def top_keys(weights: Tensor, tokens: list[str], count: int) -> list[list[str | float]]:
    """The `count` keys with the most weight in a row [K]: [token, weight] each."""
    top = weights.topk(min(count, len(tokens)))
    return [[tokens[i], weight] for weight, i in zip(top.values.tolist(), top.indices.tolist(), strict=True)]


def largest(x: Tensor) -> float:
    """The largest absolute value."""
    return x.abs().max().item()

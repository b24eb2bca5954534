"""Decoding that repeats no work: sources read once, whole prefixes over them, and single positions from a cache.

Nothing here sees source padding: the encoder and the split of the cross-attention's heads run on sentences of exactly
equal length, and only the ready keys and values are padded, behind a mask. So sentences of all lengths share a batch
in every arm, also in one whose axes are wrong and whose numbers depend on the length.

Shapes: B sentences, S source tokens, T target tokens, D d_model, H heads, dk and dv sizes of a key and a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from attnlab.config import Axes, Score
from attnlab.model.fast import LANES
from attnlab.model.masks import causal, real_keys

if TYPE_CHECKING:
    from attnlab.model.attention import MultiHeadAttention
    from attnlab.model.transformer import DecoderLayer, Transformer


@dataclass(frozen=True)
class Source:
    """What the decoder's cross-attention reads: a key and a value tensor for each layer, and the real keys."""

    keys: list[Tensor]  # [B,H,S,dk] each
    values: list[Tensor]  # [B,H,S,dv] each
    real: Tensor | None  # [B,1,1,S], None where nothing is padded

    @classmethod
    def of(cls, model: Transformer, memory: Tensor, src_keep: Tensor) -> Source:
        """From memory [B,S,D] as it is, padded or not; src_keep [B,S] is True where it is a token."""
        blocks = [layer.cross_attention for layer in model.decoder_layers()]
        keys, values = zip(*(block.project(memory, block.w_k, block.w_v) for block in blocks), strict=True)
        return cls(list(keys), list(values), real_keys(src_keep))

    @classmethod
    def read(cls, model: Transformer, sentences: Sequence[Tensor]) -> Source:
        """Encode sentences of ids [S_i], EOS included, of any lengths; none of them sees padding."""
        groups: dict[int, list[int]] = {}
        for i, ids in enumerate(sentences):
            groups.setdefault(len(ids), []).append(i)
        parts = []
        for group in groups.values():
            src = torch.stack([sentences[i] for i in group])
            keep = torch.ones_like(src, dtype=torch.bool)
            parts.append(cls.of(model, model.encode(src, keep), keep))
        rows, layers, room = list(groups.values()), range(len(model.decoder)), _room(max(groups))
        if len(parts) == 1 and room == max(groups):
            return parts[0]
        keys = [_padded([part.keys[layer] for part in parts], rows, room) for layer in layers]
        values = [_padded([part.values[layer] for part in parts], rows, room) for layer in layers]
        real = torch.arange(room) < torch.tensor([len(ids) for ids in sentences])[:, None]
        return cls(keys, values, real[:, None, None].to(sentences[0].device))

    def rows(self, rows: Tensor | list[int] | slice) -> Source:
        """The sentences at `rows`, in that order."""
        real = None if self.real is None else self.real[rows]
        return Source([k[rows] for k in self.keys], [v[rows] for v in self.values], real)


def _room(keys: int) -> int:
    """Keys rounded up to whole registers: over 9 keys or 15 a softmax and its products take longer than over 16."""
    return -(-keys // LANES) * LANES


def _padded(parts: list[Tensor], rows: list[list[int]], room: int) -> Tensor:
    """Parts [b,H,S_part,d] of the sentences at `rows` -> [B,H,room,d], zeros behind each."""
    first = parts[0]
    whole = first.new_zeros(sum(map(len, rows)), first.shape[1], room, first.shape[3])
    for part, where in zip(parts, rows, strict=True):
        whole[where, :, : part.shape[2]] = part
    return whole


# ---------------------------------------------------------------- whole prefixes, by the arm's own code


def decode_prefix(model: Transformer, tgt_in: Tensor, source: Source, *, last_only: bool = False) -> Tensor:
    """Hidden [B,T,D] of tgt_in [B,T], as `model.decode` gives it, or its last position alone, [B,1,D].

    For the last position the top layer need not compute the others, unless its axes are wrong and mix positions.
    """
    x, keep = model.target_embedding(tgt_in), causal(tgt_in.shape[1], tgt_in.device)
    layers = list(model.decoder_layers())
    for layer, keys, values in zip(layers, source.keys, source.values, strict=True):
        y, block = layer.before(layer.norm_self, x), layer.self_attention
        if last_only and layer is layers[-1] and _keeps_positions(layer):
            k, v = block.project(y, block.w_k, block.w_v)
            (q,) = block.project(y[:, -1:], block.w_q)
            x, keep = x[:, -1:], keep[-1:]
        else:
            q, k, v = block.project(y, block.w_q, block.w_k, block.w_v)
        x = layer.after(layer.norm_self, x, block.output(block.attend(q, k, v, keep, None).out))
        block = layer.cross_attention
        (q,) = block.project(layer.before(layer.norm_cross, x), block.w_q)
        x = layer.after(
            layer.norm_cross, x, block.output(block.attend(q, keys, values, None, source.real).out)
        )
        x = layer.after(layer.norm_ff, x, layer.feed_forward(layer.before(layer.norm_ff, x)))
    return model.decoder_norm(x[:, -1:] if last_only else x)


def _keeps_positions(layer: DecoderLayer) -> bool:
    """Whether a position's output depends on the others through attention alone, query by query."""
    axes = [axes for block in (layer.self_attention, layer.cross_attention)
            for axes in (block.factors.split, block.factors.merge)]  # fmt: skip
    return all(one is Axes.heads_first for one in axes)


# ---------------------------------------------------------------- one position at a time


class JoinedLayer:
    """The weights of a decoder layer as one new position needs them: joined, cast and turned, once for all batches."""

    def __init__(self, layer: DecoderLayer, dtype: torch.dtype) -> None:
        block, cross = layer.self_attention, layer.cross_attention
        self.layer = layer
        self.qkv = _joined(dtype, block.w_q, block.w_k, block.w_v)
        self.sizes = [one.out_features for one in (block.w_q, block.w_k, block.w_v)]
        self.out, self.source_q, self.source_out, self.w_1, self.w_2 = (
            _joined(dtype, one)
            for one in (block.w_o, cross.w_q, cross.w_o, layer.feed_forward.w_1, layer.feed_forward.w_2)
        )


class JoinedDecoder:
    """The decoder's weights for cached decoding, in the precision that autocast asks for; a copy of the model's."""

    def __init__(self, model: Transformer) -> None:
        device = model.projection.device.type
        half = torch.is_autocast_enabled(device)
        self.dtype = torch.get_autocast_dtype(device) if half else model.projection.dtype
        self.model = model
        self.layers = [JoinedLayer(layer, self.dtype) for layer in model.decoder_layers()]
        self.projection = model.projection.to(self.dtype).T.contiguous()  # [D,V]


@dataclass
class Cache:
    """Keys and values that one attention sees at one position, some of which may not be real."""

    keys: Tensor  # [B,H,K,dk]
    values: Tensor  # [B,H,K,dv]

    def rows(self, rows: Tensor) -> Cache:
        """Those rows of the batch, in that order."""
        return Cache(self.keys[rows], self.values[rows])

    def grown(self) -> Cache:
        """With room for LANES more, zeros in it: the weight of what is not real yet is 0, and 0 * NaN would be NaN."""
        return Cache(*(nn.functional.pad(one, (0, 0, 0, LANES)) for one in (self.keys, self.values)))


@dataclass(frozen=True)
class Seen:
    """Which of K keys are real, as a mask and as what is added to the scores; None where all are."""

    real: Tensor | None  # [B,1,1,K] or [1,1,1,K]
    bias: Tensor | None

    @classmethod
    def of(cls, real: Tensor | None, dtype: torch.dtype) -> Seen:
        """From the mask."""
        if real is None:
            return cls(None, None)
        return cls(real, torch.zeros_like(real, dtype=dtype).masked_fill_(~real, -torch.inf))


class CachedLayer:
    """One decoder layer for one new position a step, its keys and values kept.

    A single position has no future and no neighbours in its own heads, so that neither the mask nor the axes of an arm
    have a part here; score, scale and heads do, and the arm's own `attend` is asked where they are not plain.
    """

    def __init__(self, weights: JoinedLayer, keys: Tensor, values: Tensor, dtype: torch.dtype) -> None:
        self.weights, self.dtype = weights, dtype
        self.source = Cache(keys.to(dtype), values.to(dtype))  # [B,H,S,.]
        batch, heads, _, d_k = keys.shape
        self.past = Cache(
            self.source.keys.new_zeros(batch, heads, LANES, d_k),
            self.source.values.new_zeros(batch, heads, LANES, values.shape[3]),
        )

    def step(self, x: Tensor, position: int, past: Seen, source: Seen) -> Tensor:
        """x [B,D], the newest position -> [B,D]; its keys and values join the cache."""
        weights, layer = self.weights, self.weights.layer
        if position == self.past.keys.shape[2]:
            self.past = self.past.grown()
        keys, values = self.past.keys, self.past.values
        y = layer.before(layer.norm_self, x).to(self.dtype)
        q, k, v = _affine(weights.qkv, y).split(weights.sizes, dim=-1)
        keys[:, :, position] = k.view(*keys.shape[:2], -1)
        values[:, :, position] = v.view(*values.shape[:2], -1)
        x = layer.after(
            layer.norm_self, x, _affine(weights.out, _attend(layer.self_attention, q, self.past, past))
        )
        q = _affine(weights.source_q, layer.before(layer.norm_cross, x).to(self.dtype))
        seen = _attend(layer.cross_attention, q, self.source, source)
        x = layer.after(layer.norm_cross, x, _affine(weights.source_out, seen))
        y = layer.before(layer.norm_ff, x).to(self.dtype)
        return layer.after(layer.norm_ff, x, _affine(weights.w_2, _affine(weights.w_1, y).relu_()))

    def reorder(self, rows: Tensor) -> None:
        """Keep the given rows of the batch, in that order."""
        self.source, self.past = self.source.rows(rows), self.past.rows(rows)


class DecoderState:
    """Where a cached decoding stands. Each new position sees all earlier ones: the right mask by construction."""

    def __init__(self, decoder: JoinedDecoder, source: Source) -> None:
        self.decoder, self.position, dtype = decoder, 0, decoder.dtype
        self.source = Seen.of(source.real, dtype)
        self.layers = [
            CachedLayer(weights, keys, values, dtype)
            for weights, keys, values in zip(decoder.layers, source.keys, source.values, strict=True)
        ]

    def step(self, token: Tensor) -> Tensor:
        """token [B] at the state's position -> logits [B,V] of the next; moves the state on."""
        decoder, model = self.decoder, self.decoder.model
        real = torch.arange(_room(self.position + 1), device=token.device) <= self.position
        past = Seen.of(real[None, None, None], decoder.dtype)
        with torch.autocast(token.device.type, enabled=False):  # all is cast already
            x = model.target_embedding(token[:, None], self.position)[:, 0]
            for layer in self.layers:
                x = layer.step(x, self.position, past, self.source)
            self.position += 1
            return model.decoder_norm(x).to(decoder.dtype) @ decoder.projection

    def reorder(self, rows: Tensor) -> None:
        """Keep `rows` [B'] of the batch, in that order: beams are copied, finished sentences leave."""
        for layer in self.layers:
            layer.reorder(rows)
        if self.source.real is not None:
            self.source = Seen.of(self.source.real[rows], self.decoder.dtype)


def _joined(dtype: torch.dtype, *layers: nn.Linear) -> tuple[Tensor, Tensor]:
    """Bias [out] and weight [in,out] of layers with one input, as one layer in `dtype`, ready for addmm.

    With few rows a product takes a quarter less time with the weight in this order than in nn.Linear's.
    """
    weight, bias = torch.cat([one.weight for one in layers]), torch.cat([one.bias for one in layers])
    return bias.to(dtype), weight.to(dtype).T.contiguous()


def _affine(layer: tuple[Tensor, Tensor], x: Tensor) -> Tensor:
    return torch.addmm(layer[0], x, layer[1])


def _attend(block: MultiHeadAttention, q: Tensor, past: Cache, seen: Seen) -> Tensor:
    """q [B,H*dk] of one position against K keys [B,H,K,dk] and values [B,H,K,dv] -> [B,H*dv].

    For a single query the library's fused kernel takes half the time of two products and a softmax in half precision;
    in fp32 over whole registers of keys they take 0.6 of its time.
    """
    k, v = past.keys, past.values
    q, factors, scale = q.view(*k.shape[:2], 1, -1), block.factors, block.scale
    plain = factors.score is Score.dot and not factors.qk_norm and block.scales is None
    if not plain or isinstance(scale, Tensor):
        return block.attend(q, k, v, None, seen.real).out.flatten(1)
    if q.dtype in (torch.float16, torch.bfloat16):
        return nn.functional.scaled_dot_product_attention(q, k, v, seen.bias, scale=scale).flatten(1)
    scores = (scale * q) @ k.transpose(2, 3)
    if seen.bias is not None:
        scores += seen.bias
    return (torch.softmax(scores, dim=-1) @ v).flatten(1)

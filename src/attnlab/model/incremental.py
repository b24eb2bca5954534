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
        if len(parts) == 1:
            return parts[0]
        rows, layers = list(groups.values()), range(len(model.decoder))
        keys = [_padded([part.keys[layer] for part in parts], rows) for layer in layers]
        values = [_padded([part.values[layer] for part in parts], rows) for layer in layers]
        lengths = torch.tensor([len(ids) for ids in sentences])
        real = torch.arange(int(lengths.max())) < lengths[:, None]
        return cls(keys, values, real[:, None, None].to(sentences[0].device))

    def rows(self, rows: Tensor | list[int] | slice) -> Source:
        """The sentences at `rows`, in that order."""
        real = None if self.real is None else self.real[rows]
        return Source([k[rows] for k in self.keys], [v[rows] for v in self.values], real)


def _padded(parts: list[Tensor], rows: list[list[int]]) -> Tensor:
    """Parts [b,H,S_part,d] of the sentences at `rows` -> [B,H,S,d], zeros behind each."""
    first, longest = parts[0], max(part.shape[2] for part in parts)
    whole = first.new_zeros(sum(map(len, rows)), first.shape[1], longest, first.shape[3])
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


class CachedLayer:
    """One decoder layer for one new position a step: its weights joined and cast once, its keys and values kept.

    A single position has no future and no neighbours in its own heads, so that neither the mask nor the axes of an arm
    have a part here; score, scale and heads do, and the arm's own `attend` is asked where they are not plain.
    """

    def __init__(self, layer: DecoderLayer, keys: Tensor, values: Tensor, dtype: torch.dtype) -> None:
        block, cross = layer.self_attention, layer.cross_attention
        self.layer, self.dtype = layer, dtype
        self.qkv = _joined(dtype, block.w_q, block.w_k, block.w_v)
        self.sizes = [one.out_features for one in (block.w_q, block.w_k, block.w_v)]
        self.out, self.source_q, self.source_out, self.w_1, self.w_2 = (
            _joined(dtype, one)
            for one in (block.w_o, cross.w_q, cross.w_o, layer.feed_forward.w_1, layer.feed_forward.w_2)
        )
        self.source_keys, self.source_values = keys, values  # [B,H,S,.]
        batch, heads = keys.shape[:2]
        self.keys = keys.new_empty(batch, heads, 16, self.sizes[1] // heads)  # [B,H,capacity,.]
        self.values = values.new_empty(batch, heads, 16, self.sizes[2] // heads)

    def step(
        self, x: Tensor, position: int, source_bias: Tensor | None, source_real: Tensor | None
    ) -> Tensor:
        """x [B,D], the newest position -> [B,D]; its keys and values join the cache."""
        layer = self.layer
        if position == self.keys.shape[2]:
            grown = (torch.cat([old, torch.empty_like(old)], dim=2) for old in (self.keys, self.values))
            self.keys, self.values = grown
        y = layer.before(layer.norm_self, x).to(self.dtype)
        q, k, v = _affine(self.qkv, y).split(self.sizes, dim=-1)
        self.keys[:, :, position] = k.view(*self.keys.shape[:2], -1)
        self.values[:, :, position] = v.view(*self.values.shape[:2], -1)
        keys, values = self.keys[:, :, : position + 1], self.values[:, :, : position + 1]
        seen = _attend(layer.self_attention, q, keys, values, None, None)
        x = layer.after(layer.norm_self, x, _affine(self.out, seen))
        q = _affine(self.source_q, layer.before(layer.norm_cross, x).to(self.dtype))
        keys, values = self.source_keys, self.source_values
        seen = _attend(layer.cross_attention, q, keys, values, source_bias, source_real)
        x = layer.after(layer.norm_cross, x, _affine(self.source_out, seen))
        y = layer.before(layer.norm_ff, x).to(self.dtype)
        return layer.after(layer.norm_ff, x, _affine(self.w_2, _affine(self.w_1, y).relu_()))

    def reorder(self, rows: Tensor) -> None:
        """Keep the given rows of the batch, in that order."""
        self.source_keys, self.source_values = self.source_keys[rows], self.source_values[rows]
        self.keys, self.values = self.keys[rows], self.values[rows]


class DecoderState:
    """Where a cached decoding stands. Each new position sees all earlier ones: the right mask by construction."""

    def __init__(self, model: Transformer, source: Source) -> None:
        device = model.projection.device.type
        half = torch.is_autocast_enabled(device)
        self.dtype = torch.get_autocast_dtype(device) if half else model.projection.dtype
        self.model, self.position = model, 0
        self.projection = model.projection.to(self.dtype).T.contiguous()  # [D,V]
        self._take(source.real)
        self.layers = [
            CachedLayer(layer, keys, values, self.dtype)
            for layer, keys, values in zip(model.decoder_layers(), source.keys, source.values, strict=True)
        ]

    def step(self, token: Tensor) -> Tensor:
        """token [B] at the state's position -> logits [B,V] of the next; moves the state on."""
        with torch.autocast(token.device.type, enabled=False):  # all is cast already
            x = self.model.target_embedding(token[:, None], self.position)[:, 0]
            for layer in self.layers:
                x = layer.step(x, self.position, self.source_bias, self.source_real)
            self.position += 1
            return self.model.decoder_norm(x).to(self.dtype) @ self.projection

    def reorder(self, rows: Tensor) -> None:
        """Keep `rows` [B'] of the batch, in that order: beams are copied, finished sentences leave."""
        for layer in self.layers:
            layer.reorder(rows)
        if self.source_real is not None:
            self._take(self.source_real[rows])

    def _take(self, real: Tensor | None) -> None:
        self.source_real, self.source_bias = real, None
        if real is not None:  # [B,1,1,S], what is added to the scores of all layers
            self.source_bias = torch.zeros_like(real, dtype=self.dtype).masked_fill_(~real, -torch.inf)


def _joined(dtype: torch.dtype, *layers: nn.Linear) -> tuple[Tensor, Tensor]:
    """Bias [out] and weight [in,out] of layers with one input, as one layer in `dtype`, ready for addmm.

    With few rows a product takes a quarter less time with the weight in this order than in nn.Linear's.
    """
    weight, bias = torch.cat([one.weight for one in layers]), torch.cat([one.bias for one in layers])
    return bias.to(dtype), weight.to(dtype).T.contiguous()


def _affine(layer: tuple[Tensor, Tensor], x: Tensor) -> Tensor:
    return torch.addmm(layer[0], x, layer[1])


def _attend(
    block: MultiHeadAttention, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, real: Tensor | None
) -> Tensor:
    """q [B,H*dk] of one position against k [B,H,K,dk] and v [B,H,K,dv] -> [B,H*dv].

    For a single query the library's fused kernel takes half the time of two products and a softmax, or less.
    """
    q, factors, scale = q.view(*k.shape[:2], 1, -1), block.factors, block.scale
    plain = factors.score is Score.dot and not factors.qk_norm and block.scales is None
    if not plain or isinstance(scale, Tensor):
        return block.attend(q, k, v, None, real).out.flatten(1)
    return nn.functional.scaled_dot_product_attention(q, k, v, bias, scale=scale).flatten(1)

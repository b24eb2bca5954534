"""The encoder-decoder Transformer of Vaswani et al. 2017, section 3, with pre-LN as an option (Xiong et al. 2020).

Shapes: B batch, S source tokens, T target tokens, D d_model, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import cast

import torch
from torch import Tensor, nn

from attnlab.config import AttentionConfig, ModelConfig, Norm, Site
from attnlab.data.tokenizer import PAD
from attnlab.model.attention import MultiHeadAttention
from attnlab.model.dropout import Dropout, DropoutStream
from attnlab.model.incremental import DecoderState, JoinedDecoder, Source
from attnlab.model.masks import causal, real_keys
from attnlab.model.places import factors_at
from attnlab.model.recorder import Recorder


def sinusoids(n: int, d_model: int) -> Tensor:
    """[n,D] positions of section 3.5: sine on even, cosine on odd dimensions, wavelengths 2 pi to 10000 * 2 pi."""
    angle = torch.arange(n)[:, None] * torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)


class Embedding(nn.Module):
    """Token embedding times sqrt(D), plus positions, then dropout (sections 3.4 and 3.5)."""

    positions: Tensor  # [N,D], grown on demand

    def __init__(self, weight: nn.Parameter, dropout: Dropout) -> None:
        super().__init__()
        self.weight, self.dropout = weight, dropout
        self.register_buffer("positions", sinusoids(64, weight.shape[1]), persistent=False)

    def forward(self, ids: Tensor, start: int = 0) -> Tensor:
        """ids [B,N] at positions start .. start + N - 1 -> [B,N,D]."""
        end = start + ids.shape[1]
        if end > len(self.positions):
            self.positions = sinusoids(2 * end, self.weight.shape[1]).to(self.positions)
        x = nn.functional.embedding(ids, self.weight) * math.sqrt(self.weight.shape[1])
        return self.dropout(x + self.positions[start:end])


class FeedForward(nn.Module):
    """max(0, x W_1 + b_1) W_2 + b_2, equation 2."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.w_1 = nn.Linear(d_model, d_ff)
        self.w_2 = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """[B,N,D] -> [B,N,D]."""
        return self.w_2(torch.relu(self.w_1(x)))


class Layer(nn.Module):
    """What encoder and decoder layers share: sublayers wrapped in residual, norm and dropout."""

    def __init__(
        self, model: ModelConfig, factors: AttentionConfig, layer: int, stream: DropoutStream
    ) -> None:
        super().__init__()
        self.model, self.factors, self.layer = model, factors, layer
        self.weights_dropout = Dropout(model.attention_dropout, stream)
        self.dropout = Dropout(model.dropout, stream)

    def attention(self, site: Site) -> MultiHeadAttention:
        """The attention block of this layer at one site, with the factors that hold there."""
        model = self.model
        return MultiHeadAttention(
            model.d_model, model.heads, model.key_size, model.value_size,
            factors_at(self.factors, site, self.layer), site, self.layer, self.weights_dropout,
        )  # fmt: skip

    def before(self, norm: nn.LayerNorm, x: Tensor) -> Tensor:
        """The sublayer's input: normalised first in pre-LN."""
        return norm(x) if self.model.norm is Norm.pre else x

    def after(self, norm: nn.LayerNorm, x: Tensor, sublayer: Tensor) -> Tensor:
        """The residual sum: normalised last in post-LN, the paper's LayerNorm(x + Sublayer(x))."""
        x = x + self.dropout(sublayer)
        return x if self.model.norm is Norm.pre else norm(x)


class EncoderLayer(Layer):
    """Self-attention, then feed-forward."""

    def __init__(
        self, model: ModelConfig, factors: AttentionConfig, layer: int, stream: DropoutStream
    ) -> None:
        super().__init__(model, factors, layer, stream)
        self.self_attention = self.attention(Site.encoder)
        self.feed_forward = FeedForward(model.d_model, model.d_ff)
        self.norm_self, self.norm_ff = nn.LayerNorm(model.d_model), nn.LayerNorm(model.d_model)

    def forward(self, x: Tensor, real: Tensor | None, recorder: Recorder | None) -> Tensor:
        """x [B,S,D], real [B,1,1,S] -> [B,S,D]."""
        y = self.before(self.norm_self, x)
        x = self.after(self.norm_self, x, self.self_attention(y, y, real=real, recorder=recorder))
        return self.after(self.norm_ff, x, self.feed_forward(self.before(self.norm_ff, x)))


class DecoderLayer(Layer):
    """Masked self-attention, cross-attention to the encoder's output, then feed-forward."""

    def __init__(
        self, model: ModelConfig, factors: AttentionConfig, layer: int, stream: DropoutStream
    ) -> None:
        super().__init__(model, factors, layer, stream)
        self.self_attention = self.attention(Site.decoder)
        self.cross_attention = self.attention(Site.cross)
        self.feed_forward = FeedForward(model.d_model, model.d_ff)
        self.norm_self, self.norm_cross, self.norm_ff = (nn.LayerNorm(model.d_model) for _ in range(3))

    def forward(
        self, x: Tensor, memory: Tensor, keep: Tensor, real: Tensor | None, source_real: Tensor | None,
        recorder: Recorder | None,
    ) -> Tensor:  # fmt: skip
        """x [B,T,D], memory [B,S,D], keep [T,T], real [B,1,1,T], source_real [B,1,1,S] -> [B,T,D]."""
        y = self.before(self.norm_self, x)
        x = self.after(self.norm_self, x, self.self_attention(y, y, keep, real, recorder))
        y = self.before(self.norm_cross, x)
        x = self.after(self.norm_cross, x, self.cross_attention(y, memory, None, source_real, recorder))
        return self.after(self.norm_ff, x, self.feed_forward(self.before(self.norm_ff, x)))


class Transformer(nn.Module):
    """Encoder, decoder and projection to the vocabulary; initial weights are set by `initialise`, not here."""

    def __init__(
        self, model: ModelConfig, attention: AttentionConfig, vocab_size: int, stream: DropoutStream
    ) -> None:
        super().__init__()
        self.config, self.stream = model, stream
        size = (vocab_size, model.d_model)
        source = nn.Parameter(torch.empty(size))
        # section 3.4: one matrix for both embeddings and the projection where they are tied
        target = source if model.tie_embeddings else nn.Parameter(torch.empty(size))
        self.source_embedding = Embedding(source, Dropout(model.dropout, stream))
        self.target_embedding = Embedding(target, Dropout(model.dropout, stream))
        self.projection = target if model.tie_embeddings else nn.Parameter(torch.empty(size))
        layers = range(1, model.encoder_layers + 1)
        self.encoder = nn.ModuleList(EncoderLayer(model, attention, layer, stream) for layer in layers)
        layers = range(1, model.decoder_layers + 1)
        self.decoder = nn.ModuleList(DecoderLayer(model, attention, layer, stream) for layer in layers)
        final = nn.LayerNorm if model.norm is Norm.pre else lambda _: nn.Identity()
        self.encoder_norm, self.decoder_norm = final(model.d_model), final(model.d_model)

    def encode(self, src: Tensor, src_keep: Tensor, recorder: Recorder | None = None) -> Tensor:
        """src [B,S] ids, src_keep [B,S] True = real -> memory [B,S,D]."""
        x, real = self.source_embedding(src), real_keys(src_keep)
        for layer in self.encoder:
            x = layer(x, real, recorder)
        return self.encoder_norm(x)

    def decode(
        self, tgt_in: Tensor, memory: Tensor, src_keep: Tensor, tgt_keep: Tensor | None = None,
        recorder: Recorder | None = None,
    ) -> Tensor:  # fmt: skip
        """tgt_in [B,T] ids from BOS on, memory [B,S,D] -> hidden [B,T,D], by the arm's own code."""
        return self.decode_embedded(self.target_embedding(tgt_in), memory, src_keep, tgt_keep, recorder)

    def decode_embedded(
        self, x: Tensor, memory: Tensor, src_keep: Tensor, tgt_keep: Tensor | None = None,
        recorder: Recorder | None = None,
    ) -> Tensor:  # fmt: skip
        """`decode` from the embedded tokens x [B,T,D] on: a probe asks for the gradient to x."""
        keep = causal(x.shape[1], x.device)
        real = None if tgt_keep is None else real_keys(tgt_keep)
        source_real = real_keys(src_keep)
        for layer in self.decoder:
            x = layer(x, memory, keep, real, source_real, recorder)
        return self.decoder_norm(x)

    def project(self, hidden: Tensor) -> Tensor:
        """hidden [...,D] -> logits [...,V]."""
        return nn.functional.linear(hidden, self.projection)

    def hidden(
        self, src: Tensor, tgt_in: Tensor, src_keep: Tensor | None = None, tgt_keep: Tensor | None = None,
        recorder: Recorder | None = None,
    ) -> Tensor:  # fmt: skip
        """src [B,S], tgt_in [B,T] -> hidden [B,T,D]; tokens that are not PAD are real where no mask is given."""
        src_keep = src != PAD if src_keep is None else src_keep
        tgt_keep = tgt_in != PAD if tgt_keep is None else tgt_keep
        memory = self.encode(src, src_keep, recorder)
        return self.decode(tgt_in, memory, src_keep, tgt_keep, recorder)

    def forward(
        self, src: Tensor, tgt_in: Tensor, src_keep: Tensor | None = None, tgt_keep: Tensor | None = None,
        recorder: Recorder | None = None,
    ) -> Tensor:  # fmt: skip
        """src [B,S], tgt_in [B,T] -> logits [B,T,V]: the projection of `hidden`."""
        return self.project(self.hidden(src, tgt_in, src_keep, tgt_keep, recorder))

    def decoder_layers(self) -> Iterator[DecoderLayer]:
        """The decoder's layers with their type, which nn.ModuleList forgets."""
        return cast("Iterator[DecoderLayer]", iter(self.decoder))

    def start(self, memory: Tensor, src_keep: Tensor) -> DecoderState:
        """Begin a cached decoding of memory [B,S,D], src_keep [B,S] True = real."""
        return DecoderState(JoinedDecoder(self), Source.of(self, memory, src_keep))

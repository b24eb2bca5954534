"""Initial weights. The attention initialiser is a factor: it sets how saturated an unscaled softmax starts.

Each parameter draws from a stream named after it, so two arms with one seed share every parameter of equal name and
shape, whatever else differs between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from attnlab.config import AttentionConfig, Init, ModelConfig, Scale
from attnlab.data.tokenizer import PAD
from attnlab.model.attention import MultiHeadAttention
from attnlab.model.dropout import DropoutStream
from attnlab.model.transformer import Transformer
from attnlab.streams import stream_seed

Draw = Callable[[str, Tensor, float], None]  # name of the stream, weight to fill, standard deviation


def query_key_std(init: Init, d_model: int) -> float:
    """Standard deviation of the entries of W_Q, W_K and W_V.

    With LayerNorm inputs (|x|^2 = d_model) the unscaled logit has sd gamma^2 sqrt(d_k), gamma^2 = d_model std^2:
    1, 1/2, 1/3 and 4e-4 d_model in the order below. `xavier` is the square case for every d_k, so that a sweep of
    d_k moves the logit's variance by d_k alone, as in footnote 4.
    """
    match init:
        case Init.xavier:
            return math.sqrt(1 / d_model)
        case Init.xavier_packed:  # nn.MultiheadAttention: one (3 d_model, d_model) matrix
            return math.sqrt(1 / (2 * d_model))
        case Init.torch_linear:  # nn.Linear: uniform on +-1/sqrt(d_model)
            return math.sqrt(1 / (3 * d_model))
        case Init.normal_002:  # BERT, GPT-2
            return 0.02


@torch.no_grad()
def initialise(model: Transformer, attention: AttentionConfig, seed: int) -> None:
    """Fill every parameter of `model` in place; biases are 0 and norms the identity."""

    def generator(name: str) -> torch.Generator:
        return torch.Generator().manual_seed(stream_seed(seed, f"init/{name}"))

    def uniform(name: str, weight: Tensor, std: float) -> None:
        bound = math.sqrt(3) * std
        weight.copy_(torch.empty(weight.shape).uniform_(-bound, bound, generator=generator(name)))

    def normal(name: str, weight: Tensor, std: float) -> None:
        weight.copy_(torch.empty(weight.shape).normal_(0, std, generator=generator(name)))

    for name, parameter in model.named_parameters():
        match parameter.ndim:
            case 2 if name.endswith(("embedding.weight", "projection")):
                normal(name, parameter, parameter.shape[1] ** -0.5)
                parameter[PAD] = 0
            case 2:  # Glorot and Bengio 2010
                uniform(name, parameter, math.sqrt(2 / sum(parameter.shape)))
            case _:
                parameter.zero_()
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.weight.fill_(1)
    for name, block in model.named_modules():
        if isinstance(block, MultiHeadAttention):
            _initialise_attention(name, block, attention.init, uniform, normal)


def _initialise_attention(
    name: str, block: MultiHeadAttention, init: Init, uniform: Draw, normal: Draw
) -> None:
    d_model = block.w_q.in_features
    draw = normal if init is Init.normal_002 else uniform
    for part in ("w_q", "w_k", "w_v"):
        draw(f"{name}.{part}.weight", getattr(block, part).weight, query_key_std(init, d_model))
    fan_in = block.w_o.in_features
    draw(f"{name}.w_o.weight", block.w_o.weight, query_key_std(init, fan_in))
    if block.factors.scale is Scale.folded:
        _fold_scale(block)
    if hasattr(block, "v_score"):  # variance 1/d_k: the logit's variance then does not grow with d_k
        normal(f"{name}.v_score", block.v_score, block.v_score.shape[1] ** -0.5)
    if hasattr(block, "gain"):  # Henry et al. 2020: g_0 = log2(L^2 - L), L a long sentence's length
        length = block.factors.qk_norm_length
        block.gain.fill_(math.log2(length**2 - length))


def _fold_scale(block: MultiHeadAttention) -> None:
    """Divide W_Q by sqrt(d_k) where the scale is off, so that step 0 computes the scaled function (T5)."""
    weight: Tensor = block.w_q.weight
    d_k = len(weight) // block.heads
    by_head = weight.view(block.heads, d_k, -1)
    marked = slice(None) if block.marked is None else block.marked.flatten()
    by_head[marked] = by_head[marked] / math.sqrt(d_k)


def build(model: ModelConfig, attention: AttentionConfig, vocab_size: int, seed: int) -> Transformer:
    """The model of a run with its initial weights; the seed's streams "init/..." and "dropout" are used."""
    transformer = Transformer(model, attention, vocab_size, DropoutStream(stream_seed(seed, "dropout")))
    initialise(transformer, attention, seed)
    return transformer

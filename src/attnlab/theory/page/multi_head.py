"""Results S25-S39, S41, S65, S66, S68 and S69 that need no weights: multi-head attention, its shapes and its axes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.config import AttentionConfig, Axes
from attnlab.model.attention import MultiHeadAttention, merge_heads, split_heads
from attnlab.model.masks import causal
from attnlab.model.recorder import Recorder
from attnlab.theory.factors import CORRECT
from attnlab.theory.page.rules import Ours


def results() -> Iterator[tuple[str, Ours]]:
    """(id, our value) of every result of the section."""
    yield from _parameters()
    yield from _small_block()
    yield from _axes()
    yield "S69", _conventions()


def random_block(d_model: int, heads: int, factors: AttentionConfig = CORRECT) -> MultiHeadAttention:
    """Our block with weights of variance 1/d_model and small biases, d_k = d_v = d_model / heads."""
    generator = torch.Generator().manual_seed(1)
    with torch.random.fork_rng(devices=[]):  # nn.Linear draws from the global stream before we overwrite it
        block = MultiHeadAttention(d_model, heads, d_model // heads, d_model // heads, factors)
    for parameter in block.parameters():
        scale = d_model**-0.5 if parameter.ndim == 2 else 0.1
        nn.init.normal_(parameter, std=scale, generator=generator)
    return block.requires_grad_(False)


def library_block(block: MultiHeadAttention) -> nn.MultiheadAttention:
    """`nn.MultiheadAttention` with the weights of `block`, which must have d_k = d_v = d_model / heads."""
    with torch.random.fork_rng(devices=[]):
        library = nn.MultiheadAttention(block.w_q.in_features, block.heads, batch_first=True)
    library.requires_grad_(False)
    library.in_proj_weight.copy_(torch.cat([block.w_q.weight, block.w_k.weight, block.w_v.weight]))
    library.in_proj_bias.copy_(torch.cat([block.w_q.bias, block.w_k.bias, block.w_v.bias]))
    library.out_proj.weight.copy_(block.w_o.weight)
    library.out_proj.bias.copy_(block.w_o.bias)
    return library


def _parameters() -> Iterator[tuple[str, Ours]]:
    block = random_block(512, 8)
    projections = [block.w_q, block.w_k, block.w_v, block.w_o]
    one_head = [
        part.weight.view(8, 64, 512)[0].T.shape for part in projections[:3]
    ]  # nn.Linear stores (out, in)
    yield "S25", [*one_head, block.w_o.weight.T.shape]
    yield "S26", [sum(part.weight.numel() for part in projections[:3]), 3 * 512 * 512]
    yield "S34", [part.weight.shape for part in projections]
    yield "S35", [sum(p.numel() for p in block.parameters()), 4 * 512**2 + 4 * 512]


def _small_block() -> Iterator[tuple[str, Ours]]:
    batch, n, d_model, heads, d_k = 2, 5, 16, 4, 4
    block = random_block(d_model, heads)
    x = torch.randn(batch, n, d_model, generator=torch.Generator().manual_seed(2))
    shapes = [x.shape]

    def step(tensor: Tensor) -> Tensor:
        shapes.append(tensor.shape)
        return tensor

    # The steps written out, against the block that does them in one call: the same products in the same order.
    projections = (block.w_q, block.w_k, block.w_v)
    weight, bias = (
        torch.cat([part.weight for part in projections]),
        torch.cat([part.bias for part in projections]),
    )
    q, k, v = F.linear(x, weight, bias).split(d_model, dim=-1)
    q = step(step(step(q).view(batch, n, heads, d_k)).transpose(1, 2))
    k, v = (part.view(batch, n, heads, d_k).transpose(1, 2) for part in (k, v))
    step(k)
    weights = step(torch.softmax(step(q @ k.transpose(-2, -1) / math.sqrt(d_k)), dim=-1))
    merged = step(step(weights @ v).transpose(1, 2))
    output = step(block.w_o(step(merged.reshape(batch, n, heads * d_k))))
    yield "S27", shapes
    yield "S28", [batch * heads, *weights.shape[2:], d_model, *shapes[2][2:]]
    recorder = Recorder()
    ours = block(x, x, recorder=recorder)
    yield "S29", (ours - output).abs().max()

    library = library_block(block)
    theirs, their_weights = library(x, x, x, average_attn_weights=False)
    yield "S30", [theirs.shape, their_weights.shape]
    yield "S31.output", (ours - theirs).abs().max()
    yield "S31.weights", (recorder.records[0].weights - their_weights).abs().max()
    keep = causal(n)
    yield "S31.causal", (block(x, x, keep) - library(x, x, x, attn_mask=~keep)[0]).abs().max()
    yield "S32", [sum(p.numel() for p in library.parameters()), 4 * d_model**2 + 4 * d_model]


def _axes() -> Iterator[tuple[str, Ours]]:
    n, heads, width = 12, 8, 512
    columns = split_heads(torch.arange(1, width + 1).view(1, 1, width), heads, Axes.heads_first)[0, :, 0]
    yield "S38", [columns[0].min(), columns[0].max(), columns[1].min(), columns[1].max()]

    block, recorder = random_block(width, heads), Recorder()
    x = torch.randn(1, n, width, generator=torch.Generator().manual_seed(2))
    output = block(x, x, recorder=recorder)
    record = recorder.records[0]
    attended = block.attend(record.q, record.k, record.v, None, None)
    concat = merge_heads(attended.out, Axes.heads_first)
    parts = (x, record.q, record.weights, attended.out, concat, output)
    yield "S39.shape", [part.shape[1:] for part in parts]
    yield "S41.shape", [x.shape, record.weights.shape]

    wrong = split_heads(block.w_q(x), heads, Axes.no_transpose)
    yield "S65.shape", [wrong.shape]
    yield "S66.shape", [random_block(width, heads, replace(CORRECT, merge=Axes.no_transpose))(x, x).shape]

    labels = torch.arange(n * heads).view(1, n, heads)  # piece t mod h of token t // h, one number a piece
    head_1 = split_heads(labels, heads, Axes.no_transpose)[0, 0, :, 0]
    tokens, pieces = head_1 // heads + 1, head_1 % heads + 1
    rows = []
    for token in (1, 2):
        at = (tokens == token).nonzero().flatten()
        rows += [token, at.min() + 1, at.max() + 1, pieces[at].min(), pieces[at].max()]
    yield "S68", rows


def _conventions() -> str:
    """What True means to each library, seen from where the weight goes."""
    n = 4
    future = ~causal(n)
    x = torch.randn(1, n, 8, generator=torch.Generator().manual_seed(0))
    eye = torch.eye(n)[None]
    sdpa = F.scaled_dot_product_attention(x, x, eye, attn_mask=causal(n))[
        0
    ]  # values = identity: output = weights
    _, mha = library_block(random_block(8, 2))(x, x, x, attn_mask=future)
    words = {True: "may look", False: "may not look"}
    sdpa_true_is_seen = bool((sdpa[future] == 0).all())
    mha_true_is_seen = not bool((mha[0][future] == 0).all())
    return f"{words[sdpa_true_is_seen]}, {words[mha_true_is_seen]}"

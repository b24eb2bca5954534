"""Views of a trained run of ours: the page's measurements on our own weights, as new numbers."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from attnlab.config import Axes, Protocol, Score, Site
from attnlab.data.tokenizer import BOS, EOS, Tokenizer
from attnlab.errors import UserError
from attnlab.measure.decode import greedy
from attnlab.measure.evaluate import read_source
from attnlab.measure.scorers import scorers
from attnlab.model.attention import MultiHeadAttention, merge_heads, split_heads
from attnlab.model.masks import causal
from attnlab.model.recorder import Recorder
from attnlab.model.transformer import DecoderLayer, EncoderLayer, Transformer
from attnlab.theory.factors import CORRECT
from attnlab.theory.page.printed import SOURCE_SENTENCE
from attnlab.theory.page.views import Block, Views, with_weights

LoadRun = Callable[[str], tuple[Transformer, Tokenizer]]  # a run's id or folder -> its model and tokenizer


@torch.no_grad()
def views_of_run(model: Transformer, tokenizer: Tokenizer, source: str = SOURCE_SENTENCE) -> Views:
    """Translate `source` greedily with the arm's own code and look at the three blocks of layer 1.

    Weights of all layers are the arm's own. The blocks are the correct code on the trained weights; the library
    beside them is `scaled_dot_product_attention`. Raises UserError for an arm whose score is no dot product.
    """
    first, layer = _first_layers(model)
    factors = first.self_attention.factors, layer.self_attention.factors
    if any(part.score is not Score.dot or part.qk_norm for part in factors):
        raise UserError("run: got an arm with score additive or qk_norm, allowed: arms whose score is q.k")
    model.eval()
    (pieces,) = tokenizer.encode([source])
    src = torch.tensor([[*pieces, EOS]])
    scorer = scorers(Protocol.prefix, model)(read_source(model, [pieces]))
    (translated,) = greedy(scorer, [2 * len(pieces) + 10], src.device)
    tgt = torch.tensor([[BOS, *translated]])
    recorder = Recorder()
    model(src, tgt, recorder=recorder)
    weights = {site: [record.weights for record in recorder.records if record.site is site] for site in Site}
    return Views(
        False, (len(model.encoder), len(model.decoder)), _blocks(model, src, tgt), weights,
        tokenizer.pieces(src[0].tolist()), tokenizer.pieces(tgt[0].tolist()), tokenizer.decode([translated])[0],
    )  # fmt: skip


def _first_layers(model: Transformer) -> tuple[EncoderLayer, DecoderLayer]:
    first, layer = model.encoder[0], model.decoder[0]
    assert isinstance(first, EncoderLayer)
    assert isinstance(layer, DecoderLayer)
    return first, layer


def _blocks(model: Transformer, src: Tensor, tgt: Tensor) -> dict[Site, Block]:
    """The inputs of the three blocks of layer 1, by the layers' own steps."""
    real = torch.ones_like(src, dtype=torch.bool)
    memory, keep = model.encode(src, real), causal(tgt.shape[1])
    first, layer = _first_layers(model)
    x = first.before(first.norm_self, model.source_embedding(src))
    y = model.target_embedding(tgt)
    y_self = layer.before(layer.norm_self, y)
    y = layer.after(layer.norm_self, y, layer.self_attention(y_self, y_self, keep))
    y_cross = layer.before(layer.norm_cross, y)
    return {
        Site.encoder: _block(first.self_attention, x, x, None),
        Site.decoder: _block(layer.self_attention, y_self, y_self, keep),
        Site.cross: _block(layer.cross_attention, y_cross, memory, None),
    }


def _block(attention: MultiHeadAttention, x_q: Tensor, x_kv: Tensor, keep: Tensor | None) -> Block:
    ours = with_weights(attention, CORRECT)

    def heads(part: torch.nn.Linear, x: Tensor) -> Tensor:
        return split_heads(part(x), ours.heads, Axes.heads_first)

    q, k, v = heads(ours.w_q, x_q), heads(ours.w_k, x_kv), heads(ours.w_v, x_kv)
    library = F.scaled_dot_product_attention(q, k, v, attn_mask=keep)
    return Block(ours, x_q, x_kv, keep, ours.w_o(merge_heads(library, Axes.heads_first)))

"""One sentence and its translation through a trained run: what each use of attention looks at."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attnlab.config import Axes, Protocol, Site
from attnlab.data.tokenizer import BOS, EOS, READ_AS_SPACE
from attnlab.errors import UserError
from attnlab.inspection.words import bare, word_pieces
from attnlab.measure.decode import decode
from attnlab.measure.probes import quiet
from attnlab.model.places import factors_at
from attnlab.model.recorder import AttentionRecord, Recorder
from attnlab.theory.page.views import top_keys
from attnlab.translate import Trained

TOP_KEYS = 3
DECODER_ROWS = 5

TokenWeight = list[str | float]  # [token, weight]


@dataclass(frozen=True)
class View:
    """What a run showed. S source tokens with </s>, T decoder input tokens from <s> on, H heads."""

    run: str  # what it is, in a line
    source: str
    translation: str
    source_tokens: list[str]  # S
    target_tokens: list[str]  # T
    records: list[AttentionRecord]  # of every layer and site, batch 1
    next_tokens: list[str]  # T: the token that stands after each, the last is </s>
    query: str
    query_rows: list[int]  # encoder positions of its pieces
    not_tokens: list[str]  # places, <site>/layer<l>, where the arm splits heads wrongly

    def layers(self, site: Site) -> list[Tensor]:
        """Weights [H,Q,K] of each layer."""
        return [record.weights[0] for record in self.records if record.site is site]

    def shapes(self) -> dict[Site, dict[str, tuple[int, ...]]]:
        """Shapes of q, k, v and weights at each use; they are the same in every layer."""
        first = {record.site: record for record in self.records if record.layer == 1}
        return {
            site: {name: tuple(getattr(first[site], name).shape) for name in ("q", "k", "v", "weights")}
            for site in Site
        }

    def query_weights(self) -> Tensor:
        """[H,S] of encoder layer 1: the query's row, the mean over its pieces."""
        return self.layers(Site.encoder)[0][:, self.query_rows].mean(1)

    def top_keys(self) -> list[list[TokenWeight]]:
        """Per head, the keys with the most weight in the query's row."""
        return [top_keys(row, self.source_tokens, TOP_KEYS) for row in self.query_weights()]

    def alignment(self) -> list[list[TokenWeight]]:
        """Per layer and target token, the source token with the most weight in the mean of heads."""
        return [
            [top_keys(row, self.source_tokens, 1)[0] for row in weights.mean(0)]
            for weights in self.layers(Site.cross)
        ]

    def decoder_table(self) -> Tensor:
        """The corner of first rows and columns of the last decoder layer's self-attention, mean of heads."""
        return self.layers(Site.decoder)[-1].mean(0)[:DECODER_ROWS, :DECODER_ROWS]


@torch.no_grad()
def view(trained: Trained, source: str, query: str | None) -> View:
    """Translate `source` as the run does, with the arm's own code, and read all attention of one forward pass.

    `query` is a word of the source; None takes "it", or else the longest word. Raises UserError for an empty source
    and a query that is not in it.
    """
    for sign in READ_AS_SPACE:  # as the tokenizer does, so that both count the same words
        source = source.replace(sign, " ")
    source = " ".join(source.split())
    if not source:
        raise UserError("--source: got no word, allowed: a sentence in the run's source language")
    config, model, tokenizer = trained
    words = source.split()
    place = _place(words, query)
    (pieces,) = tokenizer.encode([source])
    (translated,) = decode(model, [pieces], config.decode, Protocol.prefix)
    src, tgt, recorder = torch.tensor([[*pieces, EOS]]), torch.tensor([[BOS, *translated]]), Recorder()
    with quiet(model):
        model.hidden(src, tgt, recorder=recorder)
    return View(
        run=_title(trained),
        source=source,
        translation=tokenizer.decode([translated])[0],
        source_tokens=tokenizer.pieces([*pieces, EOS]),
        target_tokens=tokenizer.pieces([BOS, *translated]),
        next_tokens=tokenizer.pieces([*translated, EOS]),
        records=recorder.records,
        query=words[place],
        query_rows=word_pieces(tokenizer.pieces(pieces))[place],
        not_tokens=_not_tokens(trained, recorder.records),
    )


def _place(words: list[str], query: str | None) -> int:
    """Which word is the query; the first of equal ones."""
    known = [bare(word) for word in words]
    if query is None:
        return known.index("it") if "it" in known else max(range(len(known)), key=lambda i: len(known[i]))
    wanted = bare(query)
    if not wanted or wanted not in known:
        raise UserError(f"--query: got '{query}', allowed: a word of the source ({', '.join(words)})")
    return known.index(wanted)


def _title(trained: Trained) -> str:
    config, model = trained.config, trained.config.model
    return (
        f"{config.attention.name}, seed {config.seed}, {config.data.name} {config.data.src}-{config.data.tgt}, "
        f"{model.encoder_layers} + {model.decoder_layers} layers of {model.heads} heads, d_model {model.d_model}, "
        f"d_k {model.key_size}, d_v {model.value_size}"
    )


def _not_tokens(trained: Trained, records: list[AttentionRecord]) -> list[str]:
    """Where a row of weights is no token but a piece of the block, so that a label tells its place alone."""
    factors = trained.config.attention
    return [
        f"{record.site}/layer{record.layer}"
        for record in records
        if factors_at(factors, record.site, record.layer).split is Axes.no_transpose
    ]

"""Results S43, S45, S54 and S56 that need no weights: the three uses of attention in a model of the paper's shapes."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from attnlab.config import ModelConfig, Norm, Site
from attnlab.model.initialise import build
from attnlab.model.recorder import AttentionRecord, Recorder
from attnlab.theory.factors import CORRECT
from attnlab.theory.page.rules import Ours

SOURCE_TOKENS, TARGET_TOKENS = 12, 14


def results() -> Iterator[tuple[str, Ours]]:
    """(id, our value) of every result of the section."""
    size = ModelConfig(
        name="page", d_model=512, heads=8, d_k=None, d_v=None, d_ff=64, encoder_layers=6, decoder_layers=6,
        dropout=0.0, attention_dropout=0.0, norm=Norm.post, tie_embeddings=True,
    )  # fmt: skip
    with torch.random.fork_rng(
        devices=[]
    ):  # nn.Linear draws from the global stream before `build` overwrites it
        model = build(size, CORRECT, vocab_size=64, seed=0).eval()
    generator = torch.Generator().manual_seed(0)
    src, tgt = (torch.randint(4, 64, (1, n), generator=generator) for n in (SOURCE_TOKENS, TARGET_TOKENS))
    recorder = Recorder()
    with torch.no_grad():
        model(src, tgt, recorder=recorder)
    records = {site: [record for record in recorder.records if record.site is site] for site in Site}
    yield "S43.shape", [shape_of_all_layers(records[site]) for site in Site]
    cross, decoder = records[Site.cross][0], records[Site.decoder][0]
    yield "S45.shape", [block_input(cross.q), block_input(cross.k), cross.weights.shape, block_input(cross.q)]
    yield "S56.shape", [block_input(decoder.q), decoder.weights.shape]
    yield "S54", max(record.weights.triu(1).max() for record in records[Site.decoder])


def shape_of_all_layers(records: list[AttentionRecord]) -> torch.Size:
    """The one shape that the weights of every layer have."""
    (shape,) = {record.weights.shape for record in records}
    return shape


def block_input(heads: torch.Tensor) -> tuple[int, int, int]:
    """Heads [B,H,N,dk] -> the shape [B,N,H*dk] of the table that was split into them."""
    batch, count, n, size = heads.shape
    return (batch, n, count * size)

"""How large logits are: dot products of random vectors, and the logits of freshly built layers."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
import torch.nn.functional as F

from attnlab.config import AttentionConfig, Init, ModelConfig, Norm, Scale, Score
from attnlab.model.initialise import build
from attnlab.model.recorder import Recorder
from attnlab.model.transformer import EncoderLayer
from attnlab.theory import moments
from attnlab.theory.factors import CORRECT
from attnlab.theory.moments import Entries
from attnlab.theory.results.table import Table, Value
from attnlab.theory.softmax_laws import freezing_point

DRAWS = 100_000
CHUNK = 10_000  # pairs at a time: all of them at 1,024 numbers each would take 800 MB
KEY_SIZES = (4, 16, 64, 128, 256, 512, 1024)
MODEL_SIZES = ((128, 4), (512, 8))  # d_model, heads: Transformer-Tiny and the paper's base
LAYERS, TOKENS = 6, 64
SENTENCE = 14  # keys of a mean sentence, for the freezing point

ARMS = {
    "scaled": CORRECT,
    "no_scale": replace(CORRECT, scale=Scale.none),
    "no_scale_folded": replace(CORRECT, scale=Scale.folded),
    "additive": replace(CORRECT, scale=Scale.none, score=Score.additive),
    "qk_norm": replace(CORRECT, scale=Scale.none, qk_norm=True),
}


def variance_table() -> Table:
    """Moments of q.k for three laws of the entries (claim C01)."""
    rows: list[dict[str, Value]] = []
    for entries in Entries:
        for d_k in KEY_SIZES:
            generator = torch.Generator().manual_seed(d_k)
            chunks = [
                moments.draw_dot_products(d_k, CHUNK, entries, generator) for _ in range(DRAWS // CHUNK)
            ]
            s = torch.cat(chunks).double()
            exact = moments.dot_product(d_k, entries)
            of_mean, of_variance, _ = moments.standard_errors(exact, DRAWS)
            rows.append({
                "entries": entries.value, "d_k": d_k, "mean": s.mean().item(), "se_mean": of_mean,
                "variance": s.var().item(), "variance_exact": exact.variance, "se_variance": of_variance,
                "scaled_sd": s.std().item() / math.sqrt(d_k),
                "excess_kurtosis": ((s - s.mean()) / s.std()).pow(4).mean().item() - 3,
                "excess_kurtosis_exact": exact.excess_kurtosis,
            })  # fmt: skip
    note = (
        f"q.k of {DRAWS:,} pairs of vectors with d_k independent entries of mean 0 and variance 1 (footnote 4 of the "
        "paper). se: standard error of the column before it; scaled_sd: sd of q.k/sqrt(d_k)."
    )
    return Table("variance", note, rows)


def logit_table() -> Table:
    """Logit sd of built layers by initialiser and score (claim C02)."""
    rows: list[dict[str, Value]] = []
    for d_model, heads in MODEL_SIZES:
        for init in Init:
            for arm, factors in ARMS.items():
                exact = exact_logit_sd(replace(factors, init=init), d_model, d_model // heads)
                rows.append({
                    "d_model": d_model, "heads": heads, "d_k": d_model // heads, "init": init.value, "arm": arm,
                    "sd_exact": exact, "sd_measured": measured_logit_sd(replace(factors, init=init), d_model, heads),
                    "sd_over_freezing_point": exact / freezing_point(SENTENCE),
                })  # fmt: skip
    note = (
        f"Standard deviation (nats) of the logits of freshly built layers, {LAYERS} of them, on random inputs that "
        f"leave a LayerNorm; freezing point sqrt(2 ln n) for n = {SENTENCE} keys: above 1 the softmax starts condensed."
    )
    return Table("logits", note, rows)


def exact_logit_sd(factors: AttentionConfig, d_model: int, d_k: int) -> float:
    """The closed form that holds for these factors."""
    match factors.score:
        case Score.additive:
            return moments.additive_logit_sd(factors.init, d_model)
        case Score.dot if factors.qk_norm:
            return moments.qk_norm_logit_sd(factors.qk_norm_length, d_k)
        case Score.dot:
            return moments.logit_sd(factors.init, factors.scale, d_model, d_k)


def measured_logit_sd(factors: AttentionConfig, d_model: int, heads: int) -> float:
    """The sd of the encoder's scores in a built model, on random normalised inputs."""
    size = ModelConfig(
        name="theory", d_model=d_model, heads=heads, d_k=None, d_v=None, d_ff=8, encoder_layers=LAYERS,
        decoder_layers=1, dropout=0.0, attention_dropout=0.0, norm=Norm.pre, tie_embeddings=True,
    )  # fmt: skip
    model, recorder = build(size, factors, vocab_size=8, seed=0), Recorder()
    x = F.layer_norm(torch.randn(4, TOKENS, d_model, generator=torch.Generator().manual_seed(1)), (d_model,))
    with torch.no_grad():
        for layer in model.encoder:
            assert isinstance(layer, EncoderLayer)
            layer.self_attention(x, x, recorder=recorder)
    return torch.stack([record.scores for record in recorder.records]).std().item()

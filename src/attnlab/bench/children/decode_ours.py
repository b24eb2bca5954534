"""Our greedy decoding by both protocols, at a forced length and at natural ones."""

from __future__ import annotations

import time
from dataclasses import replace

import torch

from attnlab.bench.child import Values, main
from attnlab.bench.environment import prepare_torch
from attnlab.bench.systems.ours import ready
from attnlab.bench.work import Job
from attnlab.config import Precision, Protocol
from attnlab.data.tokenizer import EOS
from attnlab.measure.decode import decode
from attnlab.model.transformer import Transformer

SENTENCES = 1000
BATCH = 64  # sentences
FORCED = 16  # pieces


@torch.no_grad()
def never_end(model: Transformer) -> None:
    """Change the weights so that EOS cannot be the likeliest token: lengths are then the limit that is asked for.

    After the last norm a position is w n + b with |n| <= sqrt(D) and w = 1. With b of length 2 sqrt(D) and -b as the
    row of EOS in the projection its logit is -b.n - |b|^2 <= 2 D - 4 D, below that of any row of ordinary size.
    Nothing is added to what decoding computes. Raises ValueError for a post-LN model, which has no such norm.
    """
    norm = model.decoder_norm
    if not isinstance(norm, torch.nn.LayerNorm):
        raise ValueError("the model has no norm behind its last layer: it is post-LN")
    norm.bias.fill_(2.0)
    model.projection[EOS] = -norm.bias


def measure(job: Job) -> Values:
    """Sentences a second, `<protocol>/<lengths>`; natural: as many pieces as the source has."""
    prepare_torch(job)
    # Set up as an fp32 training, whatever the precision of decoding: a bf16 one would bound oneDNN's caches.
    run = ready(replace(job, precision="fp32"), 2, job.settings)
    model, sources = run.trainer.model, run.text.test.src[:SENTENCES]
    never_end(model)
    base = replace(run.config.decode, beam=1, batch_sentences=BATCH)
    lengths = {
        "forced": replace(base, max_length_factor=0.0, max_length_extra=FORCED),
        "natural": replace(base, max_length_factor=1.0, max_length_extra=0),
    }
    values: Values = {"sentences": len(sources)}
    for protocol in Protocol:
        for name, config in lengths.items():
            decode(model, sources[:BATCH], config, protocol, Precision(job.precision))
            began = time.perf_counter()
            decode(model, sources, config, protocol, Precision(job.precision))
            values[f"{protocol.value}/{name}"] = len(sources) / (time.perf_counter() - began)
    return values


if __name__ == "__main__":
    main(measure)

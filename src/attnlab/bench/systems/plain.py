"""The loop that one writes first: torch.nn.Transformer, cross-entropy, AdamW, clipping.

Two differences of work stay, since they are inside nn.Transformer: it drops attention weights too, and its packed
projections start from another distribution. The text's ids come from our reader.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from attnlab.bench.child import Values, main
from attnlab.bench.environment import prepare_torch
from attnlab.bench.meter import TokenMeter, watch_optimizer
from attnlab.bench.work import Job, Work
from attnlab.compose import load
from attnlab.config import Precision
from attnlab.data.batching import Encoded, collate
from attnlab.data.tokenizer import PAD
from attnlab.device import autocast
from attnlab.model.transformer import sinusoids
from attnlab.run import read_text


class PlainTransformer(nn.Module):
    """Embeddings (one matrix for all three), sinusoids, nn.Transformer, projection."""

    positions: Tensor

    def __init__(self, work: Work, vocab_size: int, longest: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, work.d_model)
        nn.init.normal_(self.embedding.weight, std=work.d_model**-0.5)
        self.register_buffer("positions", sinusoids(longest, work.d_model), persistent=False)
        self.dropout = nn.Dropout(work.dropout)
        self.body = nn.Transformer(
            work.d_model, work.heads, work.layers, work.layers, work.d_ff, work.dropout, batch_first=True,
            norm_first=True,
        )  # fmt: skip

    def embed(self, ids: Tensor) -> Tensor:
        """[B,N] -> [B,N,D]."""
        x = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim)
        return self.dropout(x + self.positions[: ids.shape[1]])

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """src [B,S], tgt_in [B,T] -> logits [B,T,V]."""
        length = tgt_in.shape[1]
        future = torch.ones(length, length, dtype=torch.bool).triu(
            1
        )  # True = may not attend, in nn.Transformer
        hidden = self.body(
            self.embed(src), self.embed(tgt_in), tgt_mask=future, src_key_padding_mask=src == PAD,
            tgt_key_padding_mask=tgt_in == PAD, memory_key_padding_mask=src == PAD, tgt_is_causal=True,
        )  # fmt: skip
        return nn.functional.linear(hidden, self.embedding.weight)


def batches(text: Encoded, budget: int, buckets: bool, random: np.random.Generator) -> Iterator[list[int]]:
    """One epoch, in batches of at most `budget` padded tokens on the longer side.

    Without `buckets` sentences come as they are shuffled; with them, equal target lengths lie together.
    """
    src, tgt = text.lengths()
    order = random.permutation(len(text))
    if buckets:
        order = order[np.argsort(tgt[order], kind="stable")]
    cut: list[list[int]] = []
    batch: list[int] = []
    longest = 0
    for i in order.tolist():
        longest = max(longest, int(src[i]), int(tgt[i]))
        if batch and longest * (len(batch) + 1) > budget:
            cut.append(batch)
            batch, longest = [], max(int(src[i]), int(tgt[i]))
        batch.append(i)
    cut.append(batch)
    return (cut[i] for i in random.permutation(len(cut)))


def measure(job: Job) -> Values:
    """Train warm-up and counted steps."""
    prepare_torch(job)
    torch.manual_seed(job.seed)
    work, random = job.work, np.random.default_rng(job.seed)
    config = load(work.overrides(job.precision, job.threads, 1))
    text = read_text(config)
    longest = int(max(lengths.max() for lengths in text.train.lengths()))
    model = PlainTransformer(work, text.tokenizer.vocab_size, longest)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=work.lr, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
    )
    meter, tokens = TokenMeter(job.warmup), 0
    epochs = (
        batches(text.train, work.batch_tokens, "buckets" in job.settings, random) for _ in itertools.count()
    )
    steps = itertools.islice(itertools.chain.from_iterable(epochs), job.warmup + job.steps)
    with watch_optimizer(meter, lambda: tokens):
        for indices in steps:
            batch = collate(text.train, indices)
            tokens = batch.target_tokens
            with autocast(Precision(job.precision), torch.device("cpu")):
                logits = model(batch.src, batch.tgt_in)
                loss = nn.functional.cross_entropy(
                    logits.flatten(0, 1), batch.tgt_out.flatten(), ignore_index=PAD,
                    label_smoothing=work.label_smoothing,
                )  # fmt: skip
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), work.clip)
            optimizer.step()
    return meter.values()


if __name__ == "__main__":
    main(measure)

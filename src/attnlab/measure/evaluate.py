"""Loss on held-out text, teacher-forced and from each position's own prefix.

A leaking arm has a better teacher-forced loss than a correct one. Scored from its own prefix, where the future does
not exist, it cannot cheat: the two agree for an arm that does not leak. Targets of a batch are of exactly equal
length and sources are read without padding, so that no number depends on padding or on the batch.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from attnlab.config import Precision
from attnlab.data.batching import Encoded, collate
from attnlab.data.tokenizer import EOS, PAD
from attnlab.device import autocast
from attnlab.model.incremental import Source, decode_prefix
from attnlab.model.transformer import Transformer

READ = 4  # batches of targets for which sources are read at once


@contextmanager
def eval_mode(model: nn.Module) -> Iterator[None]:
    """Dropout off inside, every module's mode as it was afterwards, also after an error."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training


def equal_lengths(lengths: Sequence[Hashable], batch_sentences: int) -> list[list[int]]:
    """Indices in batches of one length each (any sortable key), shortest first, input order within a length."""
    if batch_sentences < 1:
        raise ValueError(f"a batch needs at least 1 sentence, got {batch_sentences}")
    groups: dict[Hashable, list[int]] = {}
    for i, length in enumerate(lengths):
        groups.setdefault(length, []).append(i)
    return [
        group[start : start + batch_sentences]
        for _, group in sorted(groups.items())
        for start in range(0, len(group), batch_sentences)
    ]


def argmax(logits: Tensor) -> Tensor:
    """The first of the largest over the last axis: [...,V] -> [...]. numpy's is 5 times as fast on a CPU as torch's."""
    if logits.device.type != "cpu":
        return logits.argmax(dim=-1)
    return torch.from_numpy(logits.detach().numpy().argmax(axis=-1))


@dataclass(frozen=True)
class TokenLoss:
    """Sums over real target tokens, EOS included; add two to join two sets of sentences."""

    nll_sum: float  # nats, no label smoothing
    correct: int  # tokens whose argmax is right
    tokens: int
    eos_nll_sum: float  # nats
    sentences: int

    @classmethod
    def of(cls, logits: Tensor, target: Tensor) -> TokenLoss:
        """From logits [...,V] and target ids [...], of which PAD does not count."""
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        real, eos = target != PAD, target == EOS
        nll = -logits.log_softmax(dim=-1).gather(-1, target[..., None])[..., 0].double()
        correct = (argmax(logits) == target) & real
        return cls(
            float(nll[real].sum()), int(correct.sum()), int(real.sum()), float(nll[eos].sum()), int(eos.sum())
        )

    def __add__(self, other: TokenLoss) -> TokenLoss:
        return TokenLoss(
            self.nll_sum + other.nll_sum, self.correct + other.correct, self.tokens + other.tokens,
            self.eos_nll_sum + other.eos_nll_sum, self.sentences + other.sentences,
        )  # fmt: skip

    @property
    def nll(self) -> float:
        """Nats per token."""
        return self.nll_sum / self.tokens

    @property
    def ppl(self) -> float:
        """exp(nll); exp of more than 700 does not fit a float."""
        return math.exp(min(self.nll, 700))

    @property
    def accuracy(self) -> float:
        """Share of tokens whose argmax is right."""
        return self.correct / self.tokens

    @property
    def eos_nll(self) -> float:
        """Nats per sentence for its EOS: a leak that knows the end shows here first."""
        return self.eos_nll_sum / self.sentences


def _total(parts: Iterator[TokenLoss]) -> TokenLoss:
    total = TokenLoss(0.0, 0, 0, 0.0, 0)
    for part in parts:
        total += part
    return total


def _chosen(encoded: Encoded, indices: Sequence[int] | None) -> list[int]:
    chosen = list(range(len(encoded.src))) if indices is None else list(indices)
    if not chosen:
        raise ValueError("no sentence to score")
    return chosen


@torch.no_grad()
def teacher_forced(
    model: Transformer, encoded: Encoded, indices: Sequence[int] | None = None, batch_sentences: int = 64,
    precision: Precision = Precision.fp32,
) -> TokenLoss:  # fmt: skip
    """Loss with the whole target given, by the arm's own code. `indices` None: all sentences.

    Raises ValueError where there is no sentence. Never used alone to choose a checkpoint or a learning rate.
    """
    # sources of a part are read together, so that few lengths of them are left for the many of the targets
    chosen = sorted(_chosen(encoded, indices), key=lambda i: len(encoded.src[i]))
    device = next(model.parameters()).device

    def parts() -> Iterator[TokenLoss]:
        for part in _cut(chosen, READ * batch_sentences):
            source = read_source(model, [encoded.src[i] for i in part])
            for group in equal_lengths([len(encoded.tgt[i]) for i in part], batch_sentences):
                batch = collate(encoded, [part[i] for i in group]).to(device)
                hidden = decode_prefix(model, batch.tgt_in, source.rows(group))
                yield TokenLoss.of(model.project(hidden), batch.tgt_out)

    with eval_mode(model), autocast(precision, device):
        return _total(parts())


@torch.no_grad()
def prefix_scored(
    model: Transformer, encoded: Encoded, indices: Sequence[int] | None = None, batch_sentences: int = 64,
    precision: Precision = Precision.fp32,
) -> TokenLoss:  # fmt: skip
    """Loss with each target token scored from the tokens before it and no others, by the arm's own code.

    One forward pass of the decoder a position; the source is read once. Equal to `teacher_forced` for an arm that
    does not leak, far above for one that does. Raises ValueError where there is no sentence.
    """
    # longest target first: the sentences that still have a token at t are the first rows
    chosen = sorted(_chosen(encoded, indices), key=lambda i: -len(encoded.tgt[i]))
    device = next(model.parameters()).device

    def parts() -> Iterator[TokenLoss]:
        for rows in _cut(chosen, batch_sentences):
            batch = collate(encoded, rows).to(device)
            source = read_source(model, [encoded.src[i] for i in rows])
            left = (batch.tgt_out != PAD).sum(dim=0).tolist()
            for t, n in enumerate(left):
                hidden = decode_prefix(
                    model, batch.tgt_in[:n, : t + 1], source.rows(slice(n)), last_only=True
                )
                yield TokenLoss.of(model.project(hidden[:, 0]), batch.tgt_out[:n, t])

    with eval_mode(model), autocast(precision, device):
        return _total(parts())


def read_source(model: Transformer, pieces: Sequence[Sequence[int] | np.ndarray]) -> Source:
    """Source pieces (no specials) of any lengths, read without any padding, on the model's device."""
    device = next(model.parameters()).device
    return Source.read(model, [torch.tensor([*ids, EOS], dtype=torch.long, device=device) for ids in pieces])


def _cut(indices: list[int], size: int) -> Iterator[list[int]]:
    return (indices[start : start + size] for start in range(0, len(indices), size))


def dev_metrics(
    model: Transformer, encoded: Encoded, prefix_sentences: int, batch_sentences: int = 64,
    precision: Precision = Precision.fp32,
) -> dict[str, float]:  # fmt: skip
    """The metrics `dev/...`: teacher-forced on all sentences, prefix-scored on the first `prefix_sentences`.

    `dev/leak_gap` is prefix-scored minus teacher-forced nll on those same first sentences.
    """
    first = range(min(prefix_sentences, len(encoded.src)))
    rest = range(len(first), len(encoded.src))
    settings = (batch_sentences, precision)
    forced = teacher_forced(model, encoded, first, *settings)
    prefix = prefix_scored(model, encoded, first, *settings)
    everything = forced + teacher_forced(model, encoded, rest, *settings) if rest else forced
    return {
        "dev/nll": everything.nll,
        "dev/ppl": everything.ppl,
        "dev/accuracy": everything.accuracy,
        "dev/eos_nll": everything.eos_nll,
        "dev/prefix_nll": prefix.nll,
        "dev/prefix_accuracy": prefix.accuracy,
        "dev/prefix_eos_nll": prefix.eos_nll,
        "dev/leak_gap": prefix.nll - forced.nll,
    }

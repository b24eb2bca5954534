"""The limit: the matrix products of a training step alone, forward and backward, on the shapes of our own batches.

No embedding, mask, softmax, dropout, norm, loss or optimiser: whatever a system does, it does these products. Their
operands are there before the clock starts and stay in place, so nothing is allocated either.

Shapes: B sentences, S source positions, T target positions, H heads, D width, F feed-forward width, V vocabulary.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from attnlab.bench.child import Values, main
from attnlab.bench.environment import TRUE_FP32, fp32_by_onednn
from attnlab.bench.work import Job, Work
from attnlab.errors import UserError

P = TypeVar("P")  # a product, equal where its shape is


@dataclass(frozen=True)
class Shape:
    """A batch; `tokens` are its real target tokens, and the rows of the projection to the vocabulary."""

    sentences: int
    source: int
    target: int
    tokens: int


@dataclass(frozen=True)
class Linear:
    """x [rows, inner] W^T [inner, outer]: with its gradients to x and to W, three products."""

    rows: int
    inner: int
    outer: int

    @property
    def flops(self) -> int:
        """Multiplications and additions of the three."""
        return 3 * 2 * self.rows * self.inner * self.outer


@dataclass(frozen=True)
class Attention:
    """Scores q k^T and sums of values, with their gradients to q, k, weights and v: six products of batch matrices."""

    batch: int  # B H
    queries: int
    keys: int
    size: int  # of a query, a key and a value

    @property
    def flops(self) -> int:
        """Multiplications and additions of the six."""
        return 6 * 2 * self.batch * self.queries * self.keys * self.size


Product = Linear | Attention


def products(work: Work, shape: Shape, vocab_size: int) -> list[Product]:
    """All products of one training step; W_Q, W_K, W_V are one product where they have the same input."""
    source, target = shape.sentences * shape.source, shape.sentences * shape.target

    def attention(queries: int, keys: int) -> Attention:
        return Attention(shape.sentences * work.heads, queries, keys, work.d_model // work.heads)

    def feed_forward(rows: int) -> list[Product]:
        return [Linear(rows, work.d_model, work.d_ff), Linear(rows, work.d_ff, work.d_model)]

    def self_attention(rows: int, length: int) -> list[Product]:
        width = work.d_model
        return [Linear(rows, width, 3 * width), attention(length, length), Linear(rows, width, width)]

    cross: list[Product] = [
        Linear(target, work.d_model, work.d_model), Linear(source, work.d_model, 2 * work.d_model),
        attention(shape.target, shape.source), Linear(target, work.d_model, work.d_model),
    ]  # fmt: skip
    encoder = [*self_attention(source, shape.source), *feed_forward(source)]
    decoder = [*self_attention(target, shape.target), *cross, *feed_forward(target)]
    return [*work.layers * encoder, *work.layers * decoder, Linear(shape.tokens, work.d_model, vocab_size)]


def prepared(product: Product, dtype: torch.dtype) -> Callable[[], None]:
    """The products as one call, operands and results in place; layouts as in the model and its backward pass."""

    def drawn(*size: int) -> Tensor:
        return torch.randn(size).to(dtype)

    match product:
        case Linear(rows, inner, outer):
            x, w, y = drawn(rows, inner), drawn(outer, inner), drawn(rows, outer)
            grad_x, grad_w = drawn(rows, inner), drawn(outer, inner)

            def linear() -> None:
                torch.mm(x, w.t(), out=y)
                torch.mm(y, w, out=grad_x)
                torch.mm(y.t(), x, out=grad_w)

            return linear
        case Attention(batch, queries, keys, size):
            q, k, v = drawn(batch, queries, size), drawn(batch, keys, size), drawn(batch, keys, size)
            weights, out = drawn(batch, queries, keys), drawn(batch, queries, size)
            grad_q, grad_k, grad_v = (
                drawn(batch, queries, size),
                drawn(batch, keys, size),
                drawn(batch, keys, size),
            )

            def attend() -> None:
                torch.bmm(q, k.mT, out=weights)
                torch.bmm(weights, v, out=out)
                torch.bmm(weights.mT, out, out=grad_v)
                torch.bmm(out, v.mT, out=weights)
                torch.bmm(weights, k, out=grad_q)
                torch.bmm(weights.mT, q, out=grad_k)

            return attend


def seconds_of(listed: Sequence[P], prepare: Callable[[P], Callable[[], None]]) -> float:
    """Of all products in their order, equal ones sharing operands."""
    calls = {product: prepare(product) for product in set(listed)}
    for call in calls.values():  # oneDNN makes a kernel for a shape when it meets it first
        call()
    began = time.perf_counter()
    for product in listed:
        calls[product]()
    return time.perf_counter() - began


def shapes(job: Job) -> Iterator[tuple[Shape, int]]:
    """The batches of our own training, in its order, with the size of the vocabulary."""
    from attnlab.bench.systems.ours import ready

    run = ready(job, job.warmup + job.steps)
    batches = run.trainer.batches()
    for _ in range(job.warmup + job.steps):
        batch = next(batches)
        sentences, source = batch.src.shape
        shape = Shape(sentences, source, batch.tgt_out.shape[1], batch.target_tokens)
        yield shape, run.text.tokenizer.vocab_size


@torch.no_grad()
def measure(job: Job) -> Values:
    """Real target tokens of the counted batches over the time of their products; settings: () or ("onednn",).

    Raises UserError where oneDNN's fp32 products are not fp32 on this processor.
    """
    torch.set_num_threads(job.threads)
    if "onednn" in job.settings and (error := fp32_by_onednn()) > TRUE_FP32:
        raise UserError(f"oneDNN's fp32 products are not fp32 on this processor: relative error {error:.1e}")
    dtype = torch.bfloat16 if job.precision == "bf16" else torch.float32
    tokens, flops, seconds = 0, 0, 0.0
    for number, (shape, vocab_size) in enumerate(shapes(job)):
        listed = products(job.work, shape, vocab_size)
        spent = seconds_of(listed, lambda product: prepared(product, dtype))
        if number >= job.warmup:
            tokens += shape.tokens
            flops += sum(product.flops for product in listed)
            seconds += spent
    return {"tokens_per_second": tokens / seconds, "gflop_per_second": flops / seconds / 1e9}


if __name__ == "__main__":
    main(measure)

"""The limit of decoding: the matrix products of cached greedy decoding alone, at the forced length.

No embedding, softmax, norm, choice of a token or copying of caches: whatever a system does, it does these products, of
the encoder once and of the decoder for one position a step. Their operands are there before the clock starts and
stay in place. Each attention is two products over exactly the keys that there are; a system whose attention is one
kernel, or whose keys are filled up to whole registers, may save a part of those, which are few.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from attnlab.bench.child import Values, main
from attnlab.bench.children.decode_ours import BATCH, FORCED, SENTENCES
from attnlab.bench.environment import prepare_torch
from attnlab.bench.systems.limit import seconds_of
from attnlab.bench.work import Job, Work


@dataclass(frozen=True)
class Product:
    """[batch,rows,inner] times [batch,inner,outer], or times one [inner,outer] where `batch` is 1."""

    batch: int
    rows: int
    inner: int
    outer: int

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        return 2 * self.batch * self.rows * self.inner * self.outer


def products(work: Work, sentences: int, source: int, target: int, vocab_size: int) -> list[Product]:
    """All products for a batch of sources of one length, each translated into `target` pieces."""
    width, pairs, size = work.d_model, sentences * work.heads, work.d_model // work.heads

    def attention(queries: int, keys: int) -> list[Product]:
        return [Product(pairs, queries, size, keys), Product(pairs, queries, keys, size)]

    def linears(rows: int, *shapes: tuple[int, int]) -> list[Product]:
        return [Product(1, rows, inner, outer) for inner, outer in shapes]

    inner = [(width, width), (width, work.d_ff), (work.d_ff, width)]  # W_O and both of the feed-forward
    encoder = [*linears(sentences * source, (width, 3 * width), *inner), *attention(source, source)]
    keys_of_source = linears(sentences * source, (width, 2 * width))
    steps: list[Product] = []
    for position in range(1, target + 1):
        layer = [
            *linears(sentences, (width, 3 * width), (width, width), (width, width), *inner),
            *attention(1, position), *attention(1, source),
        ]  # fmt: skip
        steps += [*work.layers * layer, Product(1, sentences, width, vocab_size)]
    return [*work.layers * (encoder + keys_of_source), *steps]


def prepared(product: Product, dtype: torch.dtype) -> Callable[[], None]:
    """The product as a call, operands and result in place."""
    lead = () if product.batch == 1 else (product.batch,)
    x = torch.randn(*lead, product.rows, product.inner).to(dtype)
    y = torch.randn(*lead, product.inner, product.outer).to(dtype)
    out = x.new_empty(*lead, product.rows, product.outer)

    def multiply() -> None:
        torch.matmul(x, y, out=out)

    return multiply


@torch.no_grad()
def measure(job: Job) -> Values:
    """Sentences a second, `cached/forced`; each batch with the mean length of its sources."""
    from attnlab.compose import load
    from attnlab.run import read_text

    prepare_torch(job)
    text = read_text(load(job.work.overrides(job.precision, job.threads, 2)))
    lengths = sorted(len(ids) + 1 for ids in text.test.src[:SENTENCES])  # and EOS
    dtype = torch.bfloat16 if job.precision == "bf16" else torch.float32
    seconds = 0.0
    for start in range(0, len(lengths), BATCH):
        batch = lengths[start : start + BATCH]
        listed = products(job.work, len(batch), sum(batch) // len(batch), FORCED, text.tokenizer.vocab_size)
        seconds += seconds_of(listed, lambda product: prepared(product, dtype))
    return {"sentences": len(lengths), "cached/forced": len(lengths) / seconds}


if __name__ == "__main__":
    main(measure)

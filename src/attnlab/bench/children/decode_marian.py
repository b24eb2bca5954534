"""Hugging Face's `generate`: greedy, with its key-value cache, sentences sorted by length (extra: bench)."""

from __future__ import annotations

import time

from attnlab.bench.child import Values, main
from attnlab.bench.environment import prepare_torch
from attnlab.bench.systems import marian
from attnlab.bench.work import Job


def measure(job: Job) -> Values:
    """Sentences a second, `cached/<lengths>`, as in decode_ours; natural: the longest source of each batch."""
    marian.require(("transformers",))
    import torch

    from attnlab.bench.children.decode_ours import BATCH, FORCED, SENTENCES
    from attnlab.compose import load
    from attnlab.data.tokenizer import EOS, PAD
    from attnlab.run import read_text

    prepare_torch(job)
    text = read_text(load(job.work.overrides(job.precision, job.threads, 2)))
    model = marian.build(job.work, text.tokenizer.vocab_size, "sdpa").eval()
    if job.precision == "bf16":
        model = model.to(torch.bfloat16)
    sources = sorted((ids.tolist() for ids in text.test.src[:SENTENCES]), key=len)

    def translate(chosen: list[list[int]], length: int | None) -> None:
        for start in range(0, len(chosen), BATCH):
            batch = chosen[start : start + BATCH]
            longest = len(batch[-1]) + 1
            src = torch.tensor([[*ids, EOS] + [PAD] * (longest - 1 - len(ids)) for ids in batch])
            pieces = length or longest - 1
            model.generate(
                input_ids=src, attention_mask=(src != PAD).long(), num_beams=1, do_sample=False, use_cache=True,
                eos_token_id=None, max_new_tokens=pieces,  # min_new_tokens would cost a pass over the logits at each step
            )  # fmt: skip

    values: Values = {"sentences": len(sources)}
    for name, length in (("forced", FORCED), ("natural", None)):
        translate(sources[:BATCH], length)
        began = time.perf_counter()
        translate(sources, length)
        values[f"cached/{name}"] = len(sources) / (time.perf_counter() - began)
    return values


if __name__ == "__main__":
    main(measure)

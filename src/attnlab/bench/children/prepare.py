"""Text and tokenizer into the cache, so that no child that is timed has to make them."""

from __future__ import annotations

from attnlab.bench.child import Values, main
from attnlab.bench.work import Job


def measure(job: Job) -> Values:
    """Sizes of the text. Raises UserError for a folder without the files, a wrong setting, a device that is not here."""
    from attnlab.compose import load
    from attnlab.device import pick_device
    from attnlab.run import read_text

    pick_device(job.device)
    text = read_text(load([*job.work.overrides(job.precision, job.threads, 2), *job.settings]))
    return {
        "vocab_size": text.tokenizer.vocab_size,
        "train_pairs": len(text.train),
        "test_pairs": len(text.test),
    }


if __name__ == "__main__":
    main(measure)

"""Hugging Face: MarianMTModel trained by Seq2SeqTrainer, as its documentation does it (extra: bench).

What differs: Marian is post-LN; the Trainer makes batches of so many sentences and knows no token budget, so the
number of sentences is the budget over the mean length, and `group_by_length` puts like lengths together (from
version 5 on only for a `datasets.Dataset` with a column of lengths). It goes from long to short within 50 batches, so
the text is a random sample that fills the steps at hand: they meet all lengths, the longest in the warm-up.
"""

from __future__ import annotations

import importlib.util
import tempfile
from typing import TYPE_CHECKING, Any

from attnlab.bench.child import Values, main
from attnlab.bench.environment import prepare_torch
from attnlab.bench.meter import TokenMeter, watch_optimizer
from attnlab.bench.work import Job, Work
from attnlab.errors import UserError

if TYPE_CHECKING:
    from transformers import MarianMTModel

    from attnlab.data.batching import Encoded

PACKAGES = ("transformers", "accelerate", "datasets")


def require(packages: tuple[str, ...] = PACKAGES) -> None:
    """Raises UserError where the extra is not installed."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(
            f"marian: the package {missing[0]} is not installed, allowed: pip install 'attnlab[bench]'"
        )


def build(work: Work, vocab_size: int, attention: str) -> MarianMTModel:
    """A model of the work's size with random weights."""
    from transformers import MarianConfig, MarianMTModel

    from attnlab.data.tokenizer import BOS, EOS, PAD

    config = MarianConfig(
        vocab_size=vocab_size, d_model=work.d_model, encoder_layers=work.layers, decoder_layers=work.layers,
        encoder_attention_heads=work.heads, decoder_attention_heads=work.heads, encoder_ffn_dim=work.d_ff,
        decoder_ffn_dim=work.d_ff, dropout=work.dropout, attention_dropout=0.0, activation_dropout=0.0,
        activation_function="relu", scale_embedding=True, max_position_embeddings=512, pad_token_id=PAD,
        bos_token_id=BOS, eos_token_id=EOS, decoder_start_token_id=BOS, forced_eos_token_id=None,
    )  # fmt: skip
    model = MarianMTModel(config)
    model.set_attn_implementation(attention)
    return model


def measure(job: Job) -> Values:
    """Train warm-up and counted steps."""
    require()
    import datasets
    import torch
    from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, set_seed

    from attnlab.compose import load
    from attnlab.data.tokenizer import PAD
    from attnlab.run import read_text

    prepare_torch(job)
    set_seed(job.seed)
    datasets.disable_progress_bars()
    work = job.work
    text = read_text(load(work.overrides(job.precision, job.threads, 1)))
    (attention,) = job.settings
    model = build(work, text.tokenizer.vocab_size, attention)
    meter, tokens = TokenMeter(job.warmup), 0

    def count(_: torch.nn.Module, __: tuple[Any, ...], inputs: dict[str, Any]) -> None:
        nonlocal tokens  # at the forward pass, since the loader fetches a batch ahead
        tokens = int((inputs["decoder_input_ids"] != PAD).sum())

    model.register_forward_pre_hook(count, with_kwargs=True)
    with tempfile.TemporaryDirectory() as folder:
        size, steps = sentences(text.train, work), job.warmup + job.steps
        settings = Seq2SeqTrainingArguments(
            output_dir=folder, max_steps=steps, per_device_train_batch_size=size,
            learning_rate=work.lr, weight_decay=0.0, max_grad_norm=work.clip,
            label_smoothing_factor=work.label_smoothing, bf16=job.precision == "bf16", use_cpu=True,
            train_sampling_strategy="group_by_length", save_strategy="no", logging_strategy="no", report_to="none",
            disable_tqdm=True, remove_unused_columns=False, seed=job.seed,
        )  # fmt: skip
        sample = dataset(text.train, size * steps, job.seed)
        trainer = Seq2SeqTrainer(model, settings, collate, train_dataset=sample)
        with watch_optimizer(meter, lambda: tokens):
            trainer.train()
    return meter.values()


def sentences(text: Encoded, work: Work) -> int:
    """Sentences of a batch: the budget over the mean target length."""
    _, tgt = text.lengths()
    return max(1, int(work.batch_tokens / float(tgt.mean())))


def dataset(text: Encoded, pairs: int, seed: int) -> Any:
    """Ids of a random sample with EOS, and target lengths; all pairs where there are not so many."""
    import datasets
    import numpy as np

    from attnlab.data.tokenizer import EOS

    sample = np.random.default_rng(seed).permutation(len(text))[:pairs]
    src, tgt = ([[*side[i].tolist(), EOS] for i in sample] for side in (text.src, text.tgt))
    return datasets.Dataset.from_dict({"input_ids": src, "labels": tgt, "length": [len(ids) for ids in tgt]})


def collate(pairs: list[dict[str, list[int]]]) -> dict[str, Any]:
    """What DataCollatorForSeq2Seq makes, without the tokenizer that it asks for."""
    import torch

    from attnlab.data.tokenizer import BOS, PAD

    def padded(rows: list[list[int]], fill: int) -> torch.Tensor:
        longest = max(map(len, rows))
        return torch.tensor([row + [fill] * (longest - len(row)) for row in rows])

    src = padded([pair["input_ids"] for pair in pairs], PAD)
    return {
        "input_ids": src,
        "attention_mask": (src != PAD).long(),
        "labels": padded([pair["labels"] for pair in pairs], -100),
        "decoder_input_ids": padded([[BOS, *pair["labels"][:-1]] for pair in pairs], PAD),
    }


if __name__ == "__main__":
    main(measure)

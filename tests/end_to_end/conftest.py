"""A run of seconds: a small grammar corpus, a small model, a few steps."""

import pytest

SMALL = [
    "data.train_pairs=300", "data.dev_pairs=12", "data.test_pairs=10", "data.tokenizer.vocab_size=300",
    "model.d_model=16", "model.heads=2", "model.d_ff=16", "model.encoder_layers=1", "model.decoder_layers=2",
    "train.steps=12", "train.warmup=4", "train.batch_tokens=400", "train.checkpoint_every=4", "train.average_last=2",
    "measure.log_every=2", "measure.every=4", "measure.evaluate_every=12", "measure.probe_sentences=4",
    "measure.prefix_sentences=4", "decode.max_length_factor=0", "decode.max_length_extra=6", "decode.protocols=[prefix,cached]",
]  # fmt: skip


@pytest.fixture
def small(tmp_path):
    """Overrides of a small run below tmp_path, without W&B."""
    return [*SMALL, f"output={tmp_path / 'outputs'}", "track=none"]

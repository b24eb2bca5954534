"""One run of three steps on the grammar corpus, for all tests of this folder."""

import pytest

from attnlab.compose import load
from attnlab.run import run
from attnlab.translate import load_run

TINY = [
    "data=grammar", "data.train_pairs=200", "data.dev_pairs=30", "data.test_pairs=2", "data.tokenizer.vocab_size=300",
    "model.d_model=12", "model.heads=3", "model.d_k=5", "model.d_v=7", "model.d_ff=8", "model.encoder_layers=1",
    "model.decoder_layers=2", "train.steps=3", "train.warmup=1", "train.batch_tokens=400", "measure.enabled=false",
    "measure.images=false", "measure.evaluate_every=3", "measure.prefix_sentences=1", "decode.max_length_factor=1",
    "decode.max_length_extra=2", "decode.protocols=[prefix]", "track=none",
]  # fmt: skip


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory):
    """(run id, output folder) of a finished run: 1 + 2 layers, 3 heads, d_k 5, d_v 7."""
    output = tmp_path_factory.mktemp("inspection")
    return run(load([*TINY, f"output={output}"]), bar=False).run_id, output


@pytest.fixture(scope="session")
def tiny(tiny_run):
    return load_run(*tiny_run)

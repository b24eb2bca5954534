"""Prints the counts of a round, and makes one small finished run for the targets that read run folders."""

import pytest
from fuzz.counting import FULL, TRIED

# A run of half a second: it must be able to read, train, probe, decode and score, and nothing more.
TINY = [
    "data.train_pairs=40", "data.dev_pairs=4", "data.test_pairs=3", "data.tokenizer.vocab_size=120", "model.d_model=8",
    "model.heads=2", "model.d_ff=8", "model.encoder_layers=1", "model.decoder_layers=1", "train.steps=2",
    "train.warmup=1", "train.batch_tokens=100", "train.checkpoint_every=1", "train.average_last=1",
    "measure.log_every=1", "measure.every=2", "measure.evaluate_every=2", "measure.probe_sentences=2",
    "measure.prefix_sentences=2", "measure.images=false", "decode.max_length_factor=0", "decode.max_length_extra=2",
    "track=none",
]  # fmt: skip


def pytest_terminal_summary(terminalreporter):
    if TRIED and FULL:
        terminalreporter.section("fuzz: cases tried")
        for target, count in sorted(TRIED.items()):
            terminalreporter.write_line(f"{target:<28} {count:>6}")
        terminalreporter.write_line(f"{'all':<28} {sum(TRIED.values()):>6}")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a finished run; its outputs folder is two levels up."""
    from attnlab.compose import load
    from attnlab.run import run

    output = tmp_path_factory.mktemp("fuzz") / "outputs"
    return run(load([*TINY, f"output={output}"]), bar=False).folder.path

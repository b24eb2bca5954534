"""Every check on every arm: which mistakes of ours are caught, and by what.

`python -m attnlab.theory.detectors.matrix` prints the table that stands in docs/detectors.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from attnlab.compose import conf_dir, load
from attnlab.config import AttentionConfig, ModelConfig, Norm
from attnlab.model.attention import MultiHeadAttention
from attnlab.model.initialise import build
from attnlab.model.transformer import DecoderLayer
from attnlab.theory.detectors import detect
from attnlab.theory.detectors.checks import Check
from attnlab.theory.detectors.report import Report

FINITE_FILLS = {"finite_fill": -1e4, "finite_fill_20": -20.0}  # an arm, and a milder one beside it


def arms() -> dict[str, AttentionConfig]:
    """All arms of conf/attention by name, `correct` first, and one more finite mask constant."""
    names = sorted(path.stem for path in (conf_dir() / "attention").glob("*.yaml"))
    found = {
        name: load([f"attention={name}"]).attention
        for name in sorted(names, key=lambda name: name != "correct")
    }
    fills = {
        name: replace(found["finite_fill"], name=name, mask_fill=fill) for name, fill in FINITE_FILLS.items()
    }
    return found | fills


def decoder_block(factors: AttentionConfig) -> MultiHeadAttention:
    """The self-attention of a small decoder with an arm's factors, freshly initialised; d_k, d_v and D differ."""
    size = ModelConfig(
        name="matrix", d_model=24, heads=4, d_k=8, d_v=6, d_ff=8, encoder_layers=1, decoder_layers=1, dropout=0.0,
        attention_dropout=0.0, norm=Norm.pre, tie_embeddings=True,
    )  # fmt: skip
    layer = build(size, factors, vocab_size=8, seed=0).decoder[0]
    assert isinstance(layer, DecoderLayer)
    return layer.self_attention


def matrix(factors_by_arm: Mapping[str, AttentionConfig]) -> dict[str, Report]:
    """The report of each arm."""
    return {arm: detect(decoder_block(factors)) for arm, factors in factors_by_arm.items()}


def as_markdown(reports: Mapping[str, Report]) -> str:
    """Arms down, checks across, the diagnosis last."""
    lines = ["| arm | " + " | ".join(Check) + " | says |", "|---" * (len(Check) + 2) + "|"]
    for arm, report in reports.items():
        cells = ["**caught**" if check in report.alarms else "" for check in Check]
        said = "; ".join(mistake.value for mistake in report.mistakes) or "no mistake"
        lines.append(f"| `{arm}` | " + " | ".join(cells) + f" | {said} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(as_markdown(matrix(arms())))

"""The work that every system does: one text, one model size, one batch budget; and the job that a child is given."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

GRAMMAR = "grammar"  # in place of a folder: the embedded corpus


class Environment(StrEnum):
    """What a process finds when it starts."""

    shipped = "shipped"  # each system as its users start it
    tuned = (
        "tuned"  # the same allocator settings for all, and fp32 products by oneDNN where those are true fp32
    )


@dataclass(frozen=True)
class Work:
    """Joint vocabulary as the data says (6,000 pieces for a folder), pre-LN, tied embeddings, AdamW, clip 1."""

    data: str = GRAMMAR  # folder in the layout of data=files, or `grammar`
    output: str = "outputs"  # its cache/ holds the tokenizer
    layers: int = 3  # of the encoder, and as many of the decoder
    d_model: int = 128
    heads: int = 4
    d_ff: int = 512
    dropout: float = 0.1  # embeddings and sublayers; none on attention weights
    label_smoothing: float = 0.1
    batch_tokens: int = 4096  # padded tokens of a batch on its longer side
    lr: float = 1e-3
    clip: float = 1.0
    limits: tuple[str, ...] = ()  # further overrides of the text, for tests: a smaller one

    def overrides(self, precision: str, threads: int, steps: int, device: str = "cpu") -> list[str]:
        """The same work as overrides of our own configuration."""
        text = (
            ["data=grammar"] if self.data == GRAMMAR else ["data=files", f"data.dir={json.dumps(self.data)}"]
        )
        if self.data != GRAMMAR:
            text.append(f"data.name={json.dumps(Path(self.data).resolve().name)}")
        return [
            *text, *self.limits, "model=tiny", f"model.encoder_layers={self.layers}", f"model.decoder_layers={self.layers}",
            f"model.d_model={self.d_model}", f"model.heads={self.heads}", f"model.d_ff={self.d_ff}",
            f"model.dropout={self.dropout}", "model.attention_dropout=0", "model.norm=pre", "train=multi30k",
            f"train.batch_tokens={self.batch_tokens}", f"train.lr={self.lr}", f"train.clip={self.clip}",
            f"train.label_smoothing={self.label_smoothing}", f"train.precision={precision}", f"train.steps={max(steps, 2)}",
            "train.warmup=1", "track=none", f"threads={threads}", f"device={device}", f"output={json.dumps(self.output)}",
        ]  # fmt: skip


@dataclass(frozen=True)
class Job:
    """What one child does, once."""

    work: Work
    precision: str = "fp32"  # fp32 | bf16
    threads: int = 1
    warmup: int = 2  # optimiser steps that are not counted, at least 1
    steps: int = 10  # optimiser steps that are
    environment: Environment = Environment.shipped
    device: str = "cpu"
    settings: tuple[str, ...] = ()  # what the child's own module says
    seed: int = 1  # of the weights and of the order of the text; another one in each round, see rounds.py

    def as_json(self) -> str:
        """Read back by `from_json`."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Job:
        """The job that `as_json` wrote."""
        raw = json.loads(text)
        work = raw["work"] | {"limits": tuple(raw["work"]["limits"])}
        parts = {"environment": Environment(raw["environment"]), "settings": tuple(raw["settings"])}
        return cls(**raw | parts | {"work": Work(**work)})

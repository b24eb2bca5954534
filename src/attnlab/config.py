"""The typed configuration: types here, values in conf/*.yaml, rules across fields in rules.py.

compose.py reads it all, identity.py says which runs are the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from omegaconf import MISSING


class Source(StrEnum):
    """Where the parallel text comes from."""

    grammar = "grammar"
    files = "files"
    hub = "hub"


class TokenizerKind(StrEnum):
    bpe = "bpe"
    unigram = "unigram"


class Overlap(StrEnum):
    """What happens to training pairs that also stand in dev or test."""

    remove = "remove"
    keep = "keep"


class Scale(StrEnum):
    """What the dot products are divided by; `folded` moves sqrt(d_k) into the initial W_Q instead."""

    sqrt_d_k = "sqrt_d_k"
    none = "none"
    folded = "folded"
    sqrt_d_model = "sqrt_d_model"
    d_k = "d_k"


class Mask(StrEnum):
    """Where the mask of the future stands, in the decoder's self-attention."""

    before_softmax = "before_softmax"
    after_softmax = "after_softmax"
    after_softmax_renormalized = "after_softmax_renormalized"
    none = "none"
    inverted = "inverted"


class Axes(StrEnum):
    """Splitting and merging heads: with the transpose, or the page's mistake 3."""

    heads_first = "heads_first"
    no_transpose = "no_transpose"


class Score(StrEnum):
    dot = "dot"
    additive = "additive"


class Init(StrEnum):
    """Distribution of the initial W_Q, W_K, W_V: it sets how saturated an unscaled softmax starts."""

    xavier = "xavier"
    xavier_packed = "xavier_packed"
    torch_linear = "torch_linear"
    normal_002 = "normal_002"


class Site(StrEnum):
    """Where attention is used; `decoder` is the decoder's self-attention."""

    encoder = "encoder"
    decoder = "decoder"
    cross = "cross"


class Norm(StrEnum):
    pre = "pre"
    post = "post"


class Schedule(StrEnum):
    paper = "paper"
    inverse_sqrt = "inverse_sqrt"


class Precision(StrEnum):
    fp32 = "fp32"
    bf16 = "bf16"
    fp16 = "fp16"


class Protocol(StrEnum):
    """How a translation is made: the arm's own code on the whole prefix, or a key-value cache."""

    prefix = "prefix"
    cached = "cached"


class Tracking(StrEnum):
    wandb = "wandb"
    none = "none"


class TrackMode(StrEnum):
    offline = "offline"
    online = "online"


class Launcher(StrEnum):
    serial = "serial"
    local = "local"
    slurm = "slurm"
    ray = "ray"


@dataclass
class TokenizerConfig:
    kind: TokenizerKind = MISSING
    vocab_size: int = MISSING


@dataclass
class DataConfig:
    name: str = MISSING
    source: Source = MISSING
    src: str = MISSING
    tgt: str = MISSING
    train: str = MISSING
    dev: str = MISSING
    test: str = MISSING
    dir: str | None = MISSING
    repository: str | None = MISSING
    subset: str | None = MISSING
    revision: str | None = MISSING
    train_pairs: int | None = MISSING
    dev_pairs: int | None = MISSING
    test_pairs: int | None = MISSING
    corpus_seed: int = MISSING
    max_pieces: int = MISSING
    overlap: Overlap = MISSING
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)


@dataclass
class ModelConfig:
    name: str = MISSING
    d_model: int = MISSING
    heads: int = MISSING
    d_k: int | None = MISSING
    d_v: int | None = MISSING
    d_ff: int = MISSING
    encoder_layers: int = MISSING
    decoder_layers: int = MISSING
    dropout: float = MISSING
    attention_dropout: float = MISSING
    norm: Norm = MISSING
    tie_embeddings: bool = MISSING

    @property
    def key_size(self) -> int:
        """d_k, or d_model / heads where the config leaves it open."""
        return self.d_k if self.d_k is not None else self.d_model // self.heads

    @property
    def value_size(self) -> int:
        """d_v, or d_model / heads where the config leaves it open."""
        return self.d_v if self.d_v is not None else self.d_model // self.heads


@dataclass
class WhereConfig:
    sites: list[Site] = MISSING
    layers: list[int] | None = MISSING
    heads: list[int] | None = MISSING


@dataclass
class AttentionConfig:
    name: str = MISSING
    scale: Scale = MISSING
    mask: Mask = MISSING
    mask_fill: float = MISSING
    split: Axes = MISSING
    merge: Axes = MISSING
    score: Score = MISSING
    qk_norm: bool = MISSING
    qk_norm_length: int = MISSING
    init: Init = MISSING
    where: WhereConfig = field(default_factory=WhereConfig)


@dataclass
class TrainConfig:
    steps: int = MISSING
    batch_tokens: int = MISSING
    equal_target_lengths: bool = MISSING
    accumulate: int = MISSING
    schedule: Schedule = MISSING
    lr: float = MISSING
    warmup: int = MISSING
    betas: list[float] = MISSING
    eps: float = MISSING
    weight_decay: float = MISSING
    label_smoothing: float = MISSING
    clip: float | None = MISSING
    precision: Precision = MISSING
    checkpoint_every: int = MISSING
    average_last: int = MISSING
    patience: int | None = MISSING


@dataclass
class MeasureConfig:
    every: int = MISSING
    evaluate_every: int = MISSING
    log_every: int = MISSING
    probe_sentences: int = MISSING
    prefix_sentences: int = MISSING
    enabled: bool = MISSING
    images: bool = MISSING


@dataclass
class DecodeConfig:
    protocols: list[Protocol] = MISSING
    beam: int = MISSING
    length_penalty: float = MISSING
    max_length_factor: float = MISSING
    max_length_extra: int = MISSING
    batch_sentences: int = MISSING
    sentences: int | None = MISSING


@dataclass
class TrackConfig:
    name: Tracking = MISSING
    mode: TrackMode = MISSING
    project: str = MISSING
    entity: str | None = MISSING
    tags: list[str] = MISSING
    init_timeout: float = MISSING
    finish_timeout: float = MISSING


@dataclass
class LaunchConfig:
    name: Launcher = MISSING
    workers: int | None = MISSING
    plugin: str | None = None
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class StudyConfig:
    name: str | None = MISSING
    question: str = MISSING
    control: str | None = MISSING
    grid: dict[str, Any] = field(default_factory=dict)
    cells: list[Any] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)


@dataclass
class Config:
    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    measure: MeasureConfig = field(default_factory=MeasureConfig)
    decode: DecodeConfig = field(default_factory=DecodeConfig)
    track: TrackConfig = field(default_factory=TrackConfig)
    launch: LaunchConfig = field(default_factory=LaunchConfig)
    study: StudyConfig = field(default_factory=StudyConfig)
    seed: int = MISSING
    device: str = MISSING
    threads: int = MISSING
    output: str = MISSING
    force: bool = MISSING
    retry: bool = MISSING
    fail_fast: bool = MISSING

"""Rules across the fields of a config: an impossible setting is one sentence before any data is read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from attnlab.config import (
    AttentionConfig,
    Axes,
    Config,
    DataConfig,
    Mask,
    ModelConfig,
    Protocol,
    Scale,
    Score,
    Site,
    Source,
)
from attnlab.errors import BrokenRule
from attnlab.identity import plain
from attnlab.texts import refused_values


def check(config: Config) -> None:
    """Raise BrokenRule with the first rule that is broken."""
    for problem in problems(config):
        raise BrokenRule(problem)


def problems(config: Config) -> Iterator[str]:
    """Every broken rule of a config, each as one sentence."""
    yield from refused_values(plain(config))
    yield from _data(config.data)
    yield from _model(config.model)
    yield from _attention(config.attention, config.model)
    yield from _train(config)
    yield from _rest(config)


def _positive(**values: float | None) -> Iterator[str]:
    for name, value in values.items():
        if value is not None and not 0 < value < math.inf:
            allowed = "at least 1" if isinstance(value, int) else "a finite number above 0"
            yield f"{name.replace('__', '.')}: got {value}, allowed: {allowed}"


def _data(data: DataConfig) -> Iterator[str]:
    if data.source is Source.files and data.dir is None:
        yield (
            "data.dir: got nothing, allowed: the folder of the parallel text, "
            "as in `attnlab run data=files data.dir=path/to/text`"
        )
    if data.source is Source.hub and data.repository is None:
        yield "data.repository: got nothing, allowed: a dataset's id on the Hub, as in data.repository=owner/name"
    if data.source is Source.hub and data.revision is None:
        yield "data.revision: got nothing, allowed: a commit, tag or branch of the dataset, so that the text is pinned"
    if data.src == data.tgt:
        yield f"data.tgt: got '{data.tgt}' on both sides, allowed: two different languages"
    for name in ("train", "dev", "test"):
        size = getattr(data, f"{name}_pairs")
        if size is not None and size < 1:
            yield f"data.{name}_pairs: got {size}, allowed: at least 1, or null for all"
    if data.corpus_seed < 0:
        yield f"data.corpus_seed: got {data.corpus_seed}, allowed: 0 or more"
    yield from _positive(data__max_pieces=data.max_pieces)
    if data.tokenizer.vocab_size < 8:
        yield f"data.tokenizer.vocab_size: got {data.tokenizer.vocab_size}, allowed: at least 8 (4 are special)"


def _model(model: ModelConfig) -> Iterator[str]:
    sizes = {f"model__{key}": getattr(model, key) for key in ("d_model", "heads", "d_k", "d_v", "d_ff")}
    yield from _positive(**sizes)
    for side in ("encoder_layers", "decoder_layers"):
        if getattr(model, side) < 1:
            yield f"model.{side}: got {getattr(model, side)}, allowed: at least 1"
    if model.d_model % 2:
        yield f"model.d_model: got {model.d_model}, allowed: an even number, since positions are sine and cosine pairs"
    open_sizes = [key for key in ("d_k", "d_v") if getattr(model, key) is None]
    if open_sizes and model.heads > 0 and model.d_model % model.heads:
        yield (
            f"model.heads: got {model.heads} with d_model {model.d_model}, allowed: a divisor of d_model, "
            f"or any number once model.{' and model.'.join(open_sizes)} {'are' if len(open_sizes) > 1 else 'is'} set"
        )
    for key in ("dropout", "attention_dropout"):
        if not 0 <= getattr(model, key) < 1:
            yield f"model.{key}: got {getattr(model, key)}, allowed: from 0 to below 1"


def _attention(attention: AttentionConfig, model: ModelConfig) -> Iterator[str]:
    where = attention.where
    if not where.sites:
        yield f"attention.where.sites: got no site, allowed: some of {', '.join(Site)}"
    for key, top in (("layers", max(model.encoder_layers, model.decoder_layers)), ("heads", model.heads)):
        chosen = getattr(where, key)
        if chosen is not None and (not chosen or not all(1 <= number <= top for number in chosen)):
            yield f"attention.where.{key}: got {chosen}, allowed: numbers from 1 to {top}, or null for all"
    if math.isnan(attention.mask_fill) or attention.mask_fill == math.inf:
        yield f"attention.mask_fill: got {attention.mask_fill}, allowed: -inf or a finite score"
    if attention.mask_fill != -math.inf and attention.mask is not Mask.before_softmax:
        yield (
            f"attention.mask_fill: got {attention.mask_fill} with mask {attention.mask}, "
            "allowed: a finite fill only with mask before_softmax"
        )
    mask_is_wrong = attention.mask is not Mask.before_softmax or attention.mask_fill != -math.inf
    if mask_is_wrong and Site.decoder not in where.sites:
        yield (
            f"attention.where.sites: got {', '.join(where.sites)} with a mask setting, allowed: sites with decoder, "
            "the only place with a mask of the future"
        )
    for key, on in (("qk_norm", attention.qk_norm), ("score", attention.score is Score.additive)):
        if on and attention.scale is not Scale.none:
            yield f"attention.scale: got {attention.scale} with attention.{key}, which has no scale, allowed: none"
    if attention.qk_norm and attention.score is Score.additive:
        yield "attention.qk_norm: got true with score additive, allowed: true only with score dot"
    if attention.qk_norm_length < 2:
        yield f"attention.qk_norm_length: got {attention.qk_norm_length}, allowed: at least 2 tokens"
    whole = (
        attention.split is not Axes.heads_first or attention.merge is not Axes.heads_first
        or attention.score is Score.additive or attention.qk_norm
    )  # fmt: skip
    if where.heads is not None and whole:
        yield (
            f"attention.where.heads: got {where.heads} with a factor of the whole block (split, merge, score, "
            "qk_norm), allowed: null, or an arm that changes only scale and mask"
        )


def _train(config: Config) -> Iterator[str]:
    train = config.train
    for key in ("steps", "warmup", "weight_decay"):
        if getattr(train, key) < 0:
            yield f"train.{key}: got {getattr(train, key)}, allowed: 0 or more"
    if train.steps and train.warmup >= train.steps:
        yield (
            f"train.warmup: got {train.warmup} of {train.steps} steps, allowed: fewer than train.steps, "
            "or the learning rate never reaches its peak"
        )
    yield from _positive(
        train__batch_tokens=train.batch_tokens, train__accumulate=train.accumulate, train__lr=train.lr,
        train__eps=train.eps, train__clip=train.clip, train__checkpoint_every=train.checkpoint_every,
        train__average_last=train.average_last, train__patience=train.patience,
    )  # fmt: skip
    if len(train.betas) != 2 or not all(0 <= beta < 1 for beta in train.betas):
        yield f"train.betas: got {train.betas}, allowed: two numbers from 0 to below 1"
    if not 0 <= train.label_smoothing < 1:
        yield f"train.label_smoothing: got {train.label_smoothing}, allowed: from 0 to below 1"


def _rest(config: Config) -> Iterator[str]:
    measure, decode = config.measure, config.decode
    yield from _positive(
        measure__every=measure.every, measure__evaluate_every=measure.evaluate_every,
        measure__log_every=measure.log_every, measure__probe_sentences=measure.probe_sentences,
        measure__prefix_sentences=measure.prefix_sentences, decode__beam=decode.beam,
        decode__batch_sentences=decode.batch_sentences, decode__sentences=decode.sentences,
        threads=config.threads, launch__workers=config.launch.workers,
    )  # fmt: skip
    if not decode.protocols or len(set(decode.protocols)) != len(decode.protocols):
        got = ", ".join(decode.protocols) or "none"
        yield f"decode.protocols: got {got}, allowed: at least one of {', '.join(Protocol)}, each once"
    if decode.length_penalty < 0:
        yield f"decode.length_penalty: got {decode.length_penalty}, allowed: 0 or more"
    if not 0 <= decode.max_length_factor < math.inf or decode.max_length_extra < 1:
        yield "decode.max_length_extra: got less than one token, allowed: at least 1 beside a factor of 0 or more"
    if config.seed < 0:
        yield f"seed: got {config.seed}, allowed: 0 or more"
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", config.device):
        yield f"device: got '{config.device}', allowed: auto, cpu, cuda or cuda:N"

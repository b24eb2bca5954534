"""A run against the gold of the grammar corpus: word alignments and antecedents of its dev sentences.

Alignments are read from the cross-attention with the reference as target (forced), from the mean of a layer's heads.
The row of a target word can be the one whose decoder input the word is, or the one that predicts it, a position
earlier (alignment with input and with output in Kobayashi et al. 2020, "Attention is not only a weight"). Which of the
two a layer does is for the run to show, so both are scored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import torch
from torch import Tensor

from attnlab.config import DataConfig, Site
from attnlab.data.grammar import GrammarPair, generate
from attnlab.data.tokenizer import BOS, EOS
from attnlab.inspection.alignment import (
    Agreement,
    argmax_links,
    best_agreement,
    diagonal_links,
    uniform_agreement,
)
from attnlab.inspection.antecedent import Antecedents, row_of
from attnlab.inspection.words import pool, word_pieces
from attnlab.measure.probes import quiet
from attnlab.model.recorder import Recorder
from attnlab.translate import Trained


class Reading(StrEnum):
    """Which row of the cross-attention is a target word's."""

    input = "input"  # the word is the decoder's input
    output = "output"  # the word is what the row predicts


@dataclass
class Alignments:
    """Agreement with the gold links over `sentences` sentences of `words` target words."""

    sentences: int = 0
    words: int = 0
    layers: dict[Reading, list[Agreement]] = field(default_factory=dict)
    uniform: Agreement = field(default_factory=Agreement)
    diagonal: Agreement = field(default_factory=Agreement)
    best: Agreement = field(default_factory=Agreement)

    def unlinked(self, reading: Reading) -> list[float]:
        """Per layer, the share of target words that look at </s> or punctuation more than at any word."""
        return [1 - agreement.found / self.words for agreement in self.layers[reading]]


@dataclass(frozen=True)
class Gold:
    """`antecedents` is None where no `it` could be read, with the reason in `no_antecedents`."""

    alignments: Alignments
    antecedents: Antecedents | None
    no_antecedents: str | None


def measure_gold(trained: Trained, sentences: int) -> Gold:
    """Alignments of the first `sentences` dev pairs, antecedents of the first so many that have an `it`."""
    data = trained.config.data
    pairs = generate(data.corpus_seed, _sizes(data))["dev"]
    alignments = measure_alignments(trained, [_turned(pair, data) for pair in pairs[:sentences]])
    if data.src != "en":
        return Gold(alignments, None, "the encoder reads German, and the corpus marks the English 'it'")
    with_it = [pair for pair in pairs if pair.antecedent][:sentences]
    if not with_it:
        return Gold(alignments, None, "no dev sentence has an 'it'")
    return Gold(alignments, measure_antecedents(trained, with_it), None)


def _sizes(data: DataConfig) -> dict[str, int]:
    sizes = {"train": data.train_pairs, "dev": data.dev_pairs, "test": data.test_pairs}
    return {name: size for name, size in sizes.items() if size is not None}  # the grammar has them all


def _turned(pair: GrammarPair, data: DataConfig) -> GrammarPair:
    """The pair in the direction of the run."""
    if data.src == "en":
        return pair
    return GrammarPair(
        pair.tgt, pair.src, tuple(sorted((there, here) for here, there in pair.alignment)), None
    )


@torch.no_grad()
def measure_alignments(trained: Trained, pairs: Sequence[GrammarPair]) -> Alignments:
    """One forward pass a pair, without padding, so that no neighbour changes a weight in any arm."""
    found = Alignments()
    found.layers = {reading: [Agreement()] * len(trained.model.decoder) for reading in Reading}
    with quiet(trained.model):
        for pair in pairs:
            src, tgt = trained.tokenizer.encode([pair.src, pair.tgt])
            recorder = Recorder()
            trained.model.hidden(torch.tensor([[*src, EOS]]), torch.tensor([[BOS, *tgt]]), recorder=recorder)
            source, target = (word_pieces(trained.tokenizer.pieces(ids)) for ids in (src, tgt))
            sizes = len(source), len(target)
            if sizes != (len(pair.src.split()), len(pair.tgt.split())):
                raise ValueError(f"pieces make {sizes} words of '{pair.src}' and '{pair.tgt}'")
            for reading, layers in found.layers.items():
                for i, mean in enumerate(_mean_of_heads(recorder)):
                    links = argmax_links(pool(mean, _rows(target, reading), source))
                    layers[i] += Agreement.of(links, pair.alignment)
            found.sentences += 1
            found.words += len(target)
            found.uniform += uniform_agreement(pair.alignment, *sizes)
            found.diagonal += Agreement.of(diagonal_links(*sizes), pair.alignment)
            found.best += best_agreement(pair.alignment)
    return found


def _mean_of_heads(recorder: Recorder) -> list[Tensor]:
    """[T,S] of each layer's cross-attention."""
    return [record.weights[0].mean(0) for record in recorder.records if record.site is Site.cross]


def _rows(target: Sequence[Sequence[int]], reading: Reading) -> list[list[int]]:
    """Decoder positions of each target word, whose piece i is the input at i + 1, after BOS, and predicted at i."""
    shift = 1 if reading is Reading.input else 0
    return [[i + shift for i in word] for word in target]


@torch.no_grad()
def measure_antecedents(trained: Trained, pairs: Sequence[GrammarPair]) -> Antecedents:
    """One pass of the encoder a pair; every pair has an antecedent."""
    rows = []
    with quiet(trained.model):
        for pair in pairs:
            if pair.antecedent is None:
                raise ValueError(f"no 'it' with an antecedent in '{pair.src}'")
            (ids,) = trained.tokenizer.encode([pair.src])
            src, recorder = torch.tensor([[*ids, EOS]]), Recorder()
            trained.model.encode(src, torch.ones_like(src, dtype=torch.bool), recorder)
            weights = torch.stack([record.weights[0] for record in recorder.records])  # [L,H,S,S]
            rows.append(row_of(weights, trained.tokenizer.pieces(ids), pair.src.split(), *pair.antecedent))
    return Antecedents.over(rows)

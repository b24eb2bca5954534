"""How often `it` looks at the noun that it stands for, in the encoder's self-attention, beside chance.

A head looks at the antecedent where, of all content words of the sentence, the antecedent's noun has the most weight
in the row of `it`. Content words are the lexicon's nouns, verbs and adjectives; `it` is none, so the diagonal, where
much weight stays, does not count, nor do </s>, punctuation and function words, where heads with nothing to do park.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from attnlab.data.synthetic.english import past, third_person
from attnlab.data.synthetic.lexicon import ADJECTIVES, NOUNS, VERBS
from attnlab.inspection.words import bare, pool, word_pieces


@dataclass(frozen=True)
class Row:
    """`it` in one sentence. `looked` and `weight` are [layers, heads]."""

    looked: Tensor  # bool: the antecedent has the most weight of all content words
    weight: Tensor  # on the antecedent's noun, of a row's sum of 1
    candidates: int  # content words, the antecedent among them
    uniform: float  # weight on the antecedent were all keys equal


@dataclass(frozen=True)
class Antecedents:
    """Means over rows; `share` and `weight` are [layers, heads], the others what chance gives."""

    rows: int
    share: Tensor  # of rows that look at their antecedent
    weight: Tensor
    chance_share: float  # mean of 1 / candidates: a content word at random
    chance_share_sd: float  # standard deviation of the share of so many rows under that chance
    chance_weight: float  # uniform attention

    @classmethod
    def over(cls, rows: Sequence[Row]) -> Antecedents:
        """Raises ValueError without a row."""
        if not rows:
            raise ValueError("no row of 'it' to average over")
        n, chances = len(rows), [1 / row.candidates for row in rows]
        return cls(
            n,
            torch.stack([row.looked.float() for row in rows]).mean(0),
            torch.stack([row.weight for row in rows]).mean(0),
            math.fsum(chances) / n,
            math.sqrt(math.fsum(p * (1 - p) for p in chances)) / n,  # a sum of unequal coins
            math.fsum(row.uniform for row in rows) / n,
        )


def row_of(weights: Tensor, pieces: Sequence[str], words: Sequence[str], it: int, noun: int) -> Row:
    """Read one sentence: `weights` [layers, heads, S, S] over its pieces and </s>, `it` and `noun` are word places.

    Raises ValueError for pieces that make other words than `words`.
    """
    spans = word_pieces(pieces)
    if len(spans) != len(words):
        raise ValueError(f"{len(spans)} words in the pieces and {len(words)} in the text")
    row = pool(weights, [spans[it]], spans)[..., 0, 1:]  # [layers, heads, words]
    content = [place for place, word in enumerate(words) if is_content(word) or place == noun]
    top = torch.tensor(content)[row[..., content].argmax(-1)]
    return Row(top == noun, row[..., noun], len(content), len(spans[noun]) / weights.shape[-1])


def is_content(word: str) -> bool:
    """Whether a word of the corpus' English is a noun, a verb other than be, do, have and will, or an adjective."""
    return bare(word).removesuffix("'s") in _content_words()


@cache
def _content_words() -> frozenset[str]:
    nouns = {form for noun in NOUNS.values() for form in (noun.en, noun.en_plural)}
    verbs = {form for verb in VERBS.values() for form in (verb.en, third_person(verb.en), past(verb))}
    return frozenset(word.casefold() for word in (*nouns, *verbs, *ADJECTIVES))

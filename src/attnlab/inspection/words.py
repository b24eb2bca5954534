"""From pieces to words: whose pieces are whose, and attention between pieces as attention between words."""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch
from torch import Tensor

WORD_BEGINS = "\u2581"  # SentencePiece's mark, in front of the first piece of a word


def bare(word: str) -> str:
    """A word as it is looked up: without punctuation around it and without case."""
    return re.sub(r"^\W+|\W+$", "", word).casefold()


def word_pieces(pieces: Sequence[str]) -> list[list[int]]:
    """Positions of the pieces of each word between spaces; `pieces` has no special ones.

    A piece without letter or digit belongs to no word, unless the word has no other: the comma of "Matte," is glued
    to it by spelling alone, and attends and is attended to for itself.
    """
    words: list[list[int]] = []
    for place, piece in enumerate(pieces):
        if piece.startswith(WORD_BEGINS) or not words:
            words.append([])
        words[-1].append(place)
    return [[i for i in word if any(map(str.isalnum, pieces[i]))] or word for word in words]


def pool(weights: Tensor, queries: Sequence[Sequence[int]], keys: Sequence[Sequence[int]]) -> Tensor:
    """Attention between pieces [...,Q,K] -> between words [..., words of `queries`, 1 + words of `keys`].

    As in Clark et al. 2019: to a word, the sum over its pieces; from a word, the mean over its pieces, so that a row
    keeps its sum. Column 0 is the weight on keys of no word: </s> and punctuation.
    """
    of_no_word = sorted(set(range(weights.shape[-1])).difference(*keys))
    rows = torch.stack([weights[..., list(word), :].mean(-2) for word in queries], dim=-2)
    return torch.stack([rows[..., list(word)].sum(-1) for word in (of_no_word, *keys)], dim=-1)

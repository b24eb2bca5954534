"""Alignment error rate: how well links between words agree with gold links, and what chance would reach.

AER = 1 - (|A n S| + |A n P|) / (|A| + |S|) for found links A, sure gold links S and possible ones P (Och & Ney 2003).
The grammar's gold links are all sure, P = S, so here it is 1 - 2 |A n S| / (|A| + |S|): 0 is perfect, 1 is no gold
link found. Sums are over all sentences before the division.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from torch import Tensor

Link = tuple[int, int]  # (source word, target word), from 0


@dataclass(frozen=True)
class Agreement:
    """Counts of links, expected ones where links are drawn by chance; add two to join two sets of sentences."""

    agreed: float = 0.0  # |A n S|
    found: int = 0  # |A|
    gold: int = 0  # |S|

    @classmethod
    def of(cls, found: Collection[Link], gold: Collection[Link]) -> Agreement:
        """Of one sentence."""
        return cls(len(set(found) & set(gold)), len(set(found)), len(set(gold)))

    def __add__(self, other: Agreement) -> Agreement:
        return Agreement(self.agreed + other.agreed, self.found + other.found, self.gold + other.gold)

    @property
    def aer(self) -> float:
        """Alignment error rate in [0,1]. Raises ValueError where there is no link at all."""
        if self.found + self.gold == 0:
            raise ValueError("no link was found and none is gold: there is no error rate")
        return 1.0 - 2.0 * self.agreed / (self.found + self.gold)


def argmax_links(pooled: Tensor) -> list[Link]:
    """Each target word's link to the source word with the most weight; none where column 0, no word, has more.

    `pooled` [target words, 1 + source words], see `words.pool`. Column 0 is what the empty word is in Och & Ney.
    """
    return [(best - 1, target) for target, best in enumerate(pooled.argmax(dim=1).tolist()) if best > 0]


def uniform_agreement(gold: Collection[Link], source_words: int, target_words: int) -> Agreement:
    """Expected counts where each target word links to one source word drawn at random.

    Each gold link is then found with probability 1 / `source_words`.
    """
    return Agreement(len(gold) / source_words, target_words, len(gold))


def diagonal_links(source_words: int, target_words: int) -> list[Link]:
    """Each target word linked to the source word at the same relative place: alignment without knowing a word."""
    return [(int((target + 0.5) * source_words / target_words), target) for target in range(target_words)]


def best_agreement(gold: Collection[Link]) -> Agreement:
    """The best that one link a target word can do: words with several gold links keep some unfound."""
    linked = len({target for _, target in gold})
    return Agreement(linked, linked, len(gold))

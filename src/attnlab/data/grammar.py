"""The embedded synthetic English-German corpus: sentence pairs with their gold word alignment.

A synchronous grammar: synthetic/derivation.py draws a tree, and synthetic/english.py and synthetic/german.py
each write the same tree down. This file joins their words to text, aligns them, and makes the splits.
"""

from __future__ import annotations

from dataclasses import dataclass

from attnlab.data.synthetic import english, german
from attnlab.data.synthetic.derivation import Derivation
from attnlab.data.synthetic.draws import Draws
from attnlab.data.synthetic.syntax import Clause, Key, Part, Pronoun, Sentence, Token, key

MIN_WORDS, MAX_WORDS = 4, 25


@dataclass(frozen=True, slots=True)
class GrammarPair:
    """One sentence in both languages. Indices are 0-based and count whitespace-separated words."""

    src: str  # English
    tgt: str  # German
    alignment: tuple[tuple[int, int], ...]  # (src word, tgt word), sorted; many to many
    antecedent: tuple[int, int] | None  # src words: `it`, and the noun that it stands for


def _words(tokens: list[Token]) -> tuple[list[str], list[tuple[Key, ...]]]:
    """Words with their commas, the first capitalised and the last with a full stop; and the keys of each."""
    words: list[str] = []
    keys: list[tuple[Key, ...]] = []
    for word, expressed in tokens:
        if word != ",":
            words.append(word)
            keys.append(expressed)
        elif not words[-1].endswith(","):  # a relative clause and the next clause may share theirs
            words[-1] += ","
    words[0] = words[0][0].upper() + words[0][1:]
    words[-1] = words[-1].removesuffix(",") + "."
    return words, keys


def _alignment(src: list[tuple[Key, ...]], tgt: list[tuple[Key, ...]]) -> tuple[tuple[int, int], ...]:
    places: dict[Key, list[int]] = {}
    for place, keys in enumerate(tgt):
        for one in keys:
            places.setdefault(one, []).append(place)
    links = {
        (place, other) for place, keys in enumerate(src) for one in keys for other in places.get(one, ())
    }
    return tuple(sorted(links))


def _anaphor(clause: Clause | None) -> Pronoun | None:
    """The `it` of a clause that stands for something."""
    if clause:
        for argument in (clause.subject, clause.object, clause.dative):
            if isinstance(argument, Pronoun) and argument.antecedent:
                return argument
    return None


def render(tree: Sentence) -> GrammarPair:
    """Write a tree down in both languages."""
    src, src_keys = _words(english.sentence_tokens(tree))
    tgt, tgt_keys = _words(german.sentence_tokens(tree))
    antecedent = None
    pronoun = _anaphor(tree.main) or _anaphor(tree.second)
    if pronoun:
        it, noun = (key(pronoun, Part.PRONOUN),), (key(pronoun.antecedent, Part.NOUN),)
        antecedent = src_keys.index(it), src_keys.index(noun)
    return GrammarPair(" ".join(src), " ".join(tgt), _alignment(src_keys, tgt_keys), antecedent)


def generate(seed: int, sizes: dict[str, int]) -> dict[str, list[GrammarPair]]:
    """Splits of the given sizes, drawn in their order. No sentence of either side occurs twice in all of
    them.

    The splits depend on the seed and the sizes alone, on every platform (see synthetic/draws.py).

    Raises:
        ValueError: the seed or a size is negative.
    """
    if any(size < 0 for size in sizes.values()):
        raise ValueError(f"sizes are {sizes}, each must be 0 or above")
    derivation = Derivation(Draws(seed))
    seen: set[str] = set()
    splits: dict[str, list[GrammarPair]] = {name: [] for name in sizes}
    for name, split in splits.items():
        while len(split) < sizes[name]:
            pair = render(derivation.sentence())
            lengths = pair.src.count(" ") + 1, pair.tgt.count(" ") + 1
            fits = min(lengths) >= MIN_WORDS and max(lengths) <= MAX_WORDS
            if fits and pair.src not in seen and pair.tgt not in seen:
                seen.update((pair.src, pair.tgt))
                split.append(pair)
    return splits

"""What a derivation chooses from: tables in which a repeat is a weight, and the words that go together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from enum import StrEnum
from functools import cache
from operator import attrgetter, itemgetter
from typing import TypeVar

from attnlab.data.synthetic import function_words as words
from attnlab.data.synthetic.lexicon import (
    ADJECTIVES,
    NOUNS,
    VERBS,
    Adjective,
    Adverb,
    Frame,
    Kinds,
    Modal,
    Noun,
    Preposition,
    Tense,
    Verb,
)
from attnlab.data.synthetic.syntax import Determiner as D

Word = TypeVar("Word")

ANY = Kinds("PAFDVBUSTEIORK")
PERSON = Kinds("P")
ANIMATE = Kinds("PA")
PLACE = Kinds("B")
OWNED = Kinds("PAVTRKU")

POSSESSIVES = (D.MY, D.OUR, D.HIS, D.HER, D.THEIR)
KNOWN = (D.THE,) * 16 + (D.THIS,) * 3 + POSSESSIVES
SUBJECT = KNOWN + (D.A,) * 4 + (D.EVERY, D.NO)
OBJECT = KNOWN + (D.A,) * 12 + (D.EVERY,)
OWNER = (D.THE,) * 3 + POSSESSIVES
KNOWN_PLURAL = (D.THE,) * 8 + (D.THIS,) * 2 + POSSESSIVES
PLURAL = KNOWN_PLURAL + (D.ALL,) * 2 + (D.MANY,) * 3 + (D.BARE,) * 8
COUNTED = (D.BARE,) * 7 + (D.THE,) * 3 + POSSESSIVES
MASS = (D.BARE,) * 10 + (D.THE,) * 10 + (D.THIS,) * 2 + POSSESSIVES


class Shape(StrEnum):
    """Of a sentence."""

    SIMPLE = "simple"
    LINKED = "linked"  # two clauses: and, because
    REPORTED = "reported"  # he says that
    RELATIVE = "relative"


SENTENCES = (Shape.SIMPLE,) * 5 + (Shape.LINKED,) * 14 + (Shape.REPORTED,) * 2 + (Shape.RELATIVE,) * 4
FRAMES = (
    (Frame.COPULA,) * 5
    + (Frame.INTRANSITIVE,) * 6
    + (Frame.TRANSITIVE,) * 16
    + (Frame.DATIVE,) * 3
    + (Frame.DITRANSITIVE,) * 4
    + (Frame.MOTION,) * 4
    + (Frame.POSITION,) * 4
    + (Frame.PLACING,) * 3
    + (Frame.PREPOSITIONAL,) * 3
)
WITH_CIRCUMSTANCE = frozenset({Frame.INTRANSITIVE, Frame.TRANSITIVE, Frame.MOTION, Frame.PREPOSITIONAL})
TENSES = (Tense.PAST,) * 8 + (Tense.PRESENT,) * 10 + (Tense.FUTURE,) * 2
COORDINATORS = (words.AND, words.BUT)
SUBORDINATORS = {
    Tense.PAST: (words.BECAUSE,) * 3 + (words.ALTHOUGH, words.WHEN_ONCE, words.WHILE, words.BEFORE),
    Tense.PRESENT: (words.BECAUSE,) * 3 + (words.ALTHOUGH, words.WHEN, words.IF),
    Tense.FUTURE: (words.BECAUSE,) * 3 + (words.ALTHOUGH, words.IF),
}

# What goes together, the commonest words first: the place of a word in its table of `stems` is its rank. Only
# tuples, as the order of a set may differ between processes.


def _by_rank(table: Mapping[str, Word], group: Callable[[Word], Hashable]) -> tuple[Word, ...]:
    """The first word of each group, then the second of each, ..."""
    ranks: Counter[Hashable] = Counter()
    ranked = []
    for word in table.values():
        ranked.append((ranks[group(word)], word))
        ranks[group(word)] += 1
    return tuple(word for _, word in sorted(ranked, key=itemgetter(0)))  # stable


_NOUNS = _by_rank(NOUNS, attrgetter("kinds"))
_VERBS = _by_rank(VERBS, attrgetter("frame"))
_ADJECTIVES = tuple(ADJECTIVES.values())


@cache
def nouns_of(kinds: Kinds) -> tuple[Noun, ...]:
    return tuple(noun for noun in _NOUNS if noun.kinds & kinds)


@cache
def adjectives_of(kinds: Kinds, but_not: Kinds = frozenset()) -> tuple[Adjective, ...]:
    """Adjectives that go with something of `kinds` and with nothing of `but_not`."""
    return tuple(word for word in _ADJECTIVES if word.kinds & kinds and not word.kinds & but_not)


@cache
def verbs_of(frame: Frame, subject: Kinds, but_not: Kinds = frozenset()) -> tuple[Verb, ...]:
    """Verbs whose subject can be something of `subject` and nothing of `but_not`."""
    return tuple(
        verb
        for verb in _VERBS
        if verb.frame is frame and verb.subjects & subject and not verb.subjects & but_not
    )


@cache
def verbs_taking(frame: Frame, thing: Kinds, but_not: Kinds = frozenset()) -> tuple[Verb, ...]:
    """Verbs with which people do something to `thing`, and can do it to nothing of `but_not`."""
    return tuple(
        verb for verb in verbs_of(frame, PERSON) if verb.objects & thing and not verb.objects & but_not
    )


@cache
def adverbs_of(tense: Tense, preverbal: bool, negated: bool) -> tuple[Adverb, ...]:
    # "does not sing every day" has two readings, and German orders them differently.
    adverbs = (adverb for adverb in words.ADVERBS if not (negated and adverb.en[0] == "every"))
    return tuple(word for word in adverbs if tense in word.tenses and word.preverbal is preverbal)


@cache
def modals_of(tense: Tense, negated: bool) -> tuple[Modal, ...]:
    # English "must not" forbids and German "muss nicht" allows, so must is never negated.
    modals = (modal for name, modal in words.MODALS.items() if not (negated and name == "must"))
    return tuple(modal for modal in modals if modal.tense is tense)


@cache
def prepositions_of(
    options: tuple[tuple[Preposition, Kinds], ...], kinds: Kinds
) -> tuple[tuple[Preposition, Kinds], ...]:
    """The prepositions that stand before something of `kinds`, each with those of `kinds` that it takes."""
    return tuple((preposition, taken & kinds) for preposition, taken in options if taken & kinds)

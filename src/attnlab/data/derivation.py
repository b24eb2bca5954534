"""Draws trees of the synchronous grammar: which phrases, clauses and sentences there are, and how often.

Two rules keep a source to one right translation. A noun occurs once in a sentence; and `it` is drawn only where
the clause around it tells its antecedent from every other thing in the first clause: "The cat sat on the mat
because it was tired" can only mean the cat, since mats do not tire.

Randomness is `random.Random(seed).random()` and nothing else: Python guarantees that method's sequence for a seed
on every platform and version, and does not guarantee choice, shuffle or randrange. No set is ever iterated.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from typing import TypeVar

from attnlab.data import lexicon
from attnlab.data.lexicon import (
    ADJECTIVES,
    ADVERBS,
    BE,
    MODALS,
    NOUNS,
    VERBS,
    Adjective,
    Adverb,
    Frame,
    Kinds,
    Link,
    Modal,
    Noun,
    Preposition,
    Tense,
    Verb,
)
from attnlab.data.syntax import (
    Agreement,
    Argument,
    Clause,
    Determiner,
    NounPhrase,
    Person,
    PrepositionalPhrase,
    Pronoun,
    Relative,
    Sentence,
    agreement,
    is_indefinite,
    pronoun_of,
)

T = TypeVar("T")

_D = Determiner
_POSSESSIVES = (_D.MY, _D.OUR, _D.HIS, _D.HER, _D.THEIR)
# Repeats are weights.
_KNOWN = (_D.THE,) * 12 + (_D.THIS,) * 3 + _POSSESSIVES
_SUBJECT = _KNOWN + (_D.A,) * 4 + (_D.EVERY, _D.NO)
_OBJECT = _KNOWN + (_D.A,) * 10 + (_D.EVERY,)
_KNOWN_PLURAL = (_D.THE,) * 6 + (_D.THIS,) * 2 + _POSSESSIVES
_PLURAL = (_D.THE,) * 6 + (_D.THIS, _D.ALL, _D.MANY, _D.MY, _D.HIS, _D.HER) + (_D.BARE,) * 5
_COUNTED = (_D.BARE,) * 5 + (_D.THE,) * 3 + (_D.MY, _D.HIS, _D.HER)
_MASS = (_D.BARE,) * 6 + (_D.THE,) * 5 + (_D.THIS, _D.MY, _D.HIS)
_KINDS_OWNED = Kinds("PAVTRKU")
_FRAMES = (
    (Frame.COPULA,) * 5
    + (Frame.INTRANSITIVE,) * 5
    + (Frame.TRANSITIVE,) * 14
    + (Frame.DATIVE,) * 3
    + (Frame.DITRANSITIVE,) * 4
    + (Frame.MOTION,) * 4
    + (Frame.POSITION,) * 4
    + (Frame.PLACING,) * 3
    + (Frame.PREPOSITIONAL,) * 3
)
_WITH_CIRCUMSTANCE = frozenset({Frame.INTRANSITIVE, Frame.TRANSITIVE, Frame.MOTION, Frame.PREPOSITIONAL})
_TENSES = (Tense.PAST,) * 9 + (Tense.PRESENT,) * 8 + (Tense.FUTURE,) * 3
_LINKS = {
    Tense.PAST: (lexicon.BECAUSE,) * 3 + (lexicon.ALTHOUGH, lexicon.WHEN_ONCE, lexicon.WHILE, lexicon.BEFORE),
    Tense.PRESENT: (lexicon.BECAUSE,) * 3 + (lexicon.ALTHOUGH, lexicon.WHEN, lexicon.IF),
    Tense.FUTURE: (lexicon.BECAUSE,) * 3 + (lexicon.ALTHOUGH, lexicon.IF),
}
_NOUN_LIST = tuple(NOUNS.values())
_VERB_LIST = tuple(VERBS.values())
_ADJECTIVE_LIST = tuple(ADJECTIVES.values())
_WEATHER = tuple(
    Verb(en, None, None, False, de, "", None, None, False, Frame.INTRANSITIVE, Kinds(), Kinds(), None)
    for en, de in (("rain", "regnen"), ("snow", "schneien"))
)


@cache
def nouns_of(kinds: Kinds) -> tuple[Noun, ...]:
    return tuple(noun for noun in _NOUN_LIST if noun.kinds & kinds)


@cache
def adjectives_of(kinds: Kinds, but_not: Kinds = frozenset()) -> tuple[Adjective, ...]:
    """Adjectives that go with something of `kinds` and with nothing of `but_not`."""
    return tuple(word for word in _ADJECTIVE_LIST if word.kinds & kinds and not word.kinds & but_not)


@cache
def verbs_of(frame: Frame, subject: Kinds, but_not: Kinds = frozenset()) -> tuple[Verb, ...]:
    return tuple(
        verb
        for verb in _VERB_LIST
        if verb.frame is frame and verb.subjects & subject and not verb.subjects & but_not
    )


@cache
def verbs_taking(frame: Frame, thing: Kinds, but_not: Kinds = frozenset()) -> tuple[Verb, ...]:
    """Verbs with people as subjects whose object may be of `thing` and not of `but_not`."""
    return tuple(
        verb
        for verb in _VERB_LIST
        if verb.frame is frame
        and "P" in verb.subjects
        and verb.objects & thing
        and not verb.objects & but_not
    )


@cache
def adverbs_of(tense: Tense, preverbal: bool) -> tuple[Adverb, ...]:
    return tuple(word for word in ADVERBS if tense in word.tenses and word.preverbal is preverbal)


@cache
def modals_of(tense: Tense, negated: bool) -> tuple[Modal, ...]:
    # English "must not" forbids, German "muss nicht" allows: left out.
    modals = [word for name, word in MODALS.items() if not (negated and name == "must")]
    return tuple(word for word in modals if word.tense is tense)


class Derivation:
    """A stream of trees from one seed, not negative."""

    def __init__(self, seed: int) -> None:
        if seed < 0:  # Random takes the absolute value: -1 would repeat 1
            raise ValueError(f"seed is {seed}, must be 0 or above")
        self._random = random.Random(seed).random
        self._used: list[Noun] = []

    # Draws

    def below(self, bound: int) -> int:
        return int(self._random() * bound)

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self._random() * len(options))]

    def chance(self, probability: float) -> bool:
        return self._random() < probability

    # Phrases

    def _noun(self, kinds: Kinds) -> Noun:
        options = nouns_of(kinds)
        noun = self.pick(options)
        while noun in self._used:
            noun = self.pick(options)
        self._used.append(noun)
        return noun

    def _noun_phrase(self, kinds: Kinds, determiners: Sequence[Determiner], *, known: bool = False) -> NounPhrase:
        noun = self._noun(kinds)
        phrase = NounPhrase(noun, Determiner.THE)
        if noun.de_plural is None:
            phrase.determiner = self.pick(_MASS)
            if known and phrase.determiner is Determiner.BARE:
                phrase.determiner = Determiner.THE
        elif self.chance(0.3):
            phrase.plural = True
            phrase.determiner = self.pick(_KNOWN_PLURAL if known else _PLURAL)
            if not known and self.chance(0.4):
                phrase.determiner = self.pick(_COUNTED)
                phrase.count = 2 + self.below(11) if self.chance(0.6) else 2 + self.below(98)
        else:
            phrase.determiner = self.pick(determiners)
            if noun.kinds & _KINDS_OWNED and phrase.determiner is Determiner.THE and self.chance(0.25):
                owner = self.pick((Determiner.THE, Determiner.THE, *_POSSESSIVES))
                phrase.owner = NounPhrase(self._noun(Kinds("P")), owner)
        if self.chance(0.35):
            phrase.adjective = self.pick(adjectives_of(noun.kinds))
        return phrase

    def _subject(self, kinds: Kinds, *, known: bool) -> NounPhrase | Pronoun:
        if "P" in kinds and self.chance(0.15):
            return Pronoun(self.pick((Person.I, Person.WE, Person.HE, Person.SHE, Person.THEY)))
        return self._noun_phrase(kinds, _KNOWN if known else _SUBJECT, known=known)

    def _object(self, kinds: Kinds, *, negated: bool) -> NounPhrase | Pronoun:
        if kinds & Kinds("P") and self.chance(0.08):
            return Pronoun(self.pick((Person.HE, Person.SHE, Person.THEY)))
        phrase = self._noun_phrase(kinds, _OBJECT, known=negated)
        if negated and not phrase.owner and self.chance(0.6):  # not a: kein
            bare = phrase.plural or phrase.noun.de_plural is None
            phrase.determiner = Determiner.BARE if bare else Determiner.A
        return phrase

    def _prepositional(
        self, options: Sequence[tuple[Preposition, Kinds]], *, known: bool = False
    ) -> PrepositionalPhrase:
        preposition, kinds = self.pick(options)
        return PrepositionalPhrase(preposition, self._noun_phrase(kinds, _KNOWN if known else _OBJECT, known=known))

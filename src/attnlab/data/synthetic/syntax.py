"""The trees of the synchronous grammar: one tree, two linearisations (english.py, german.py).

Nothing here belongs to one language. Both linearisations tag their words with the keys of the parts of the
tree that the words express, and words that share a key are aligned: the gold alignment follows from the
grammar. Nodes are compared by identity, so one node may stand at one place of one tree only.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from attnlab.data.synthetic.lexicon import (
    Adjective,
    Adverb,
    Gender,
    Kinds,
    Link,
    Modal,
    Noun,
    Preposition,
    Tense,
    Verb,
)


class Part(IntEnum):
    """What a word expresses of its node."""

    DETERMINER = 0
    COUNT = 1
    ADJECTIVE = 2
    NOUN = 3
    PRONOUN = 4
    FINITE = 5
    VERB = 6
    PARTICLE = 7
    NOT = 8
    PREPOSITION = 9
    CONJUNCTION = 10
    ADVERB = 11  # and above: one key for each link of an adverb


Key = tuple[int, int]
"""Identity of a node, and a Part."""
Token = tuple[str, tuple[Key, ...]]
"""A word, or COMMA, and the keys of what it expresses."""
COMMA: Token = (",", ())


def key(node: object, part: int) -> Key:
    return id(node), part


class Agreement(StrEnum):
    """The persons that the corpus has; the plural is the same for all of them, in both languages."""

    FIRST = "first"
    THIRD = "third"
    PLURAL = "plural"


class Person(StrEnum):
    I = "I"  # noqa: E741
    WE = "we"
    HE = "he"
    SHE = "she"
    IT = "it"
    THEY = "they"


class Determiner(StrEnum):
    """`BARE` is no determiner: mass nouns and indefinite plurals."""

    THE = "the"
    THIS = "this"
    EVERY = "every"
    ALL = "all"
    MANY = "many"
    A = "a"
    NO = "no"
    MY = "my"
    OUR = "our"
    HIS = "his"
    HER = "her"
    THEIR = "their"
    BARE = ""


INDEFINITE = frozenset({Determiner.A, Determiner.NO, Determiner.MANY, Determiner.BARE})
QUANTIFIERS = (Determiner.NO, Determiner.EVERY)


@dataclass(slots=True, eq=False)
class NounPhrase:
    noun: Noun
    determiner: Determiner
    plural: bool = False
    count: int | None = None  # 2 to 99
    adjective: Adjective | None = None
    owner: NounPhrase | None = None  # the teacher's; with determiner THE, which English does not write
    relative: Clause | None = None  # has one Relative of this phrase


@dataclass(slots=True, eq=False)
class Pronoun:
    """`antecedent` gives German the gender of `it`; without one it is the `it` of the weather."""

    person: Person
    antecedent: NounPhrase | None = None


@dataclass(slots=True, eq=False)
class Relative:
    """who, that: the place of `head` in its relative clause."""

    head: NounPhrase


Argument = NounPhrase | Pronoun | Relative


@dataclass(slots=True, eq=False)
class PrepositionalPhrase:
    preposition: Preposition
    noun_phrase: NounPhrase


@dataclass(slots=True, eq=False)
class Clause:
    subject: Argument
    verb: Verb
    tense: Tense
    modal: Modal | None = None
    negated: bool = False
    object: Argument | None = None
    dative: Argument | None = None
    predicate: Adjective | None = None
    complement: PrepositionalPhrase | None = None  # required: direction, location, prepositional object
    circumstance: PrepositionalPhrase | None = None  # free: with my friend, in the garden
    adverb: Adverb | None = None
    fronted: bool = False  # the adverb stands in front
    content: Clause | None = None  # a that-clause


@dataclass(slots=True, eq=False)
class Sentence:
    main: Clause
    link: Link | None = None
    second: Clause | None = None
    second_first: bool = False  # Because it rained, ...


def agreement(subject: Argument) -> Agreement:
    match subject:
        case NounPhrase(plural=plural) | Relative(head=NounPhrase(plural=plural)):
            return Agreement.PLURAL if plural else Agreement.THIRD
        case Pronoun(person=Person.I):
            return Agreement.FIRST
        case Pronoun(person=Person.WE | Person.THEY):
            return Agreement.PLURAL
        case _:
            return Agreement.THIRD


def gap(clause: Clause) -> Relative | None:
    """The relative pronoun of a relative clause."""
    for argument in (clause.subject, clause.object, clause.dative):
        if isinstance(argument, Relative):
            return argument
    return None


def is_indefinite(argument: Argument | None) -> bool:
    """Whether German has it after the time adverb, and negates it with kein."""
    return isinstance(argument, NounPhrase) and argument.determiner in INDEFINITE


def adverb_tokens(clause: Clause, words: tuple[str, ...], side: int) -> list[Token]:
    """The adverb's words of one side (0 English, 1 German), keyed by its own alignment."""
    links = clause.adverb.links if clause.adverb else ()
    keys: list[tuple[Key, ...]] = [()] * len(words)
    for number, link in enumerate(links):
        keys[link[side]] += (key(clause, Part.ADVERB + number),)
    return list(zip(words, keys, strict=True))


def is_person(noun: Noun) -> bool:
    return "P" in noun.kinds


def pronoun_of(noun_phrase: NounPhrase) -> Pronoun:
    """The personal pronoun that takes up a noun phrase: he and she for people, else it."""
    if noun_phrase.plural:
        return Pronoun(Person.THEY)
    if is_person(noun_phrase.noun):
        match noun_phrase.noun.gender:
            case Gender.MASCULINE:
                return Pronoun(Person.HE)
            case Gender.FEMININE:
                return Pronoun(Person.SHE)
    return Pronoun(Person.IT, antecedent=noun_phrase)


def taken_up(subject: Argument) -> Pronoun | None:
    """The he, she or they that goes on about a subject, or the same I or we; no one can be gone on about."""
    match subject:
        case Pronoun(person=person):
            return Pronoun(person)
        case NounPhrase(determiner=determiner) if determiner not in QUANTIFIERS:
            pronoun = pronoun_of(subject)
            return None if pronoun.person is Person.IT else pronoun
        case _:
            return None


def kinds_of(argument: Argument) -> Kinds:
    """What a verb may ask of the argument; a pronoun without antecedent is someone."""
    match argument:
        case NounPhrase(noun=noun) | Relative(head=NounPhrase(noun=noun)):
            return noun.kinds
        case Pronoun(antecedent=NounPhrase(noun=noun)):
            return noun.kinds
        case _:
            return Kinds("P")


def noun_phrases(clause: Clause, *, owners: bool = True) -> list[NounPhrase]:
    """The noun phrases of a clause; with or without the owners in them."""
    places = (phrase.noun_phrase for phrase in (clause.complement, clause.circumstance) if phrase)
    arguments = (clause.subject, clause.object, clause.dative, *places)
    phrases = [phrase for phrase in arguments if isinstance(phrase, NounPhrase)]
    return phrases + [phrase.owner for phrase in phrases if phrase.owner] if owners else phrases

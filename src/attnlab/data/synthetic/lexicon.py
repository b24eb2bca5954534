"""The lexicon of the synthetic corpus: the types of its words, and the stems parsed.

`NOUNS`, `VERBS` and `ADJECTIVES` map English to the word; a verb's name has its particle or preposition:
turn on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from attnlab.data.synthetic import stems

Kinds = frozenset[str]
"""Letters of `stems`: what a noun is, or what a verb or an adjective accepts."""


class Gender(StrEnum):
    MASCULINE = "m"
    FEMININE = "f"
    NEUTER = "n"


class Case(StrEnum):
    NOMINATIVE = "nominative"
    ACCUSATIVE = "accusative"
    DATIVE = "dative"
    GENITIVE = "genitive"


class Tense(StrEnum):
    """English past is German perfect (preterite for to be and modals), English future is will and werden."""

    PRESENT = "present"
    PAST = "past"
    FUTURE = "future"


class Frame(StrEnum):
    """What a verb takes beside its subject."""

    INTRANSITIVE = "intransitive"
    TRANSITIVE = "transitive"  # an accusative object
    DATIVE = "dative"  # a dative object: help, thank
    DITRANSITIVE = "ditransitive"  # a dative person and an accusative object
    MOTION = "motion"  # a direction
    POSITION = "position"  # a location
    PLACING = "placing"  # an accusative object and a direction
    PREPOSITIONAL = "prepositional"  # an object after the verb's own preposition
    CONTENT = "content"  # a that-clause
    WEATHER = "weather"  # nothing; the subject is it
    COPULA = "copula"  # a predicate adjective


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    en: str
    en_plural: str
    de: str
    de_plural: str | None  # None: a mass noun
    gender: Gender
    weak: bool  # masculine n-declension: den Studenten
    kinds: Kinds


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    en: str
    de: str
    de_stem: str  # what the endings go on: teuer, teur-e
    kinds: Kinds


@dataclass(frozen=True, slots=True)
class Preposition:
    en: tuple[str, ...]
    de: str
    case: Case


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    en: str
    en_past: str | None  # None: regular
    particle: str | None  # on, in turn on
    particle_moves: bool  # turn it on, but look for it
    de: str  # infinitive without the separable prefix
    prefix: str  # the separable prefix, or ""
    de_third: str | None  # third person singular without the prefix; None: regular
    participle: str | None  # with the prefix; None: regular
    sein: bool  # perfect with sein, not haben
    frame: Frame
    subjects: Kinds
    objects: Kinds
    preposition: Preposition | None  # with Frame.PREPOSITIONAL


@dataclass(frozen=True, slots=True, eq=False)
class Adverb:
    en: tuple[str, ...]
    de: tuple[str, ...]
    links: tuple[tuple[int, int], ...]  # word alignment (English, German)
    tenses: frozenset[Tense]
    preverbal: bool  # often: before the English verb and never in front of the clause


@dataclass(frozen=True, slots=True, eq=False)
class Modal:
    """German forms are those of the first and third person singular (the same), and of the plural."""

    en: tuple[str, ...]
    en_third: tuple[str, ...]
    en_base: tuple[str, ...]  # after do: does not want to
    de: str
    de_plural: str
    tense: Tense
    support: bool  # negated with do: does not want to


@dataclass(frozen=True, slots=True)
class Link:
    """A conjunction; subordinating ones send the German verb to the end of their clause."""

    en: str
    de: str
    subordinating: bool


def _rows(table: str) -> Iterator[list[str]]:
    return (row.split() for row in table.split(";"))


def _plural(noun: str) -> str:
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"


def _nouns() -> Iterator[Noun]:
    for kinds, table in stems.NOUNS.items():
        for names, german, gender, plural in _rows(table):
            english, _, irregular = names.partition(":")
            yield Noun(
                en=english,
                en_plural=irregular or _plural(english),
                de=german,
                de_plural=None if plural == "-" else plural,
                gender=Gender(gender[0]),
                weak=gender == "mw",
                kinds=frozenset(kinds),
            )


def _verb(frame: Frame, names: str, forms: str, subjects: str, objects: str = "", *government: str) -> Verb:
    name, _, past = names.partition(":")
    moves = "+" in name
    head, _, particle = name.replace("_", "+").partition("+")
    infinitive, third, participle = [*forms.removesuffix("+").split(":"), "", ""][:3]
    prefix, _, rest = infinitive.rpartition("|")
    preposition = None
    if government:
        english, german, case = government
        preposition = Preposition((english,), german, Case(case))
    return Verb(
        en=head,
        en_past=past or None,
        particle=particle or None,
        particle_moves=moves,
        de=rest,
        prefix=prefix,
        de_third=third or None,
        participle=participle or None,
        sein=forms.endswith("+"),
        frame=frame,
        subjects=frozenset(subjects),
        objects=frozenset(objects),
        preposition=preposition,
    )


def _name(verb: Verb) -> str:
    words = [verb.en, verb.particle or ""]
    if verb.preposition:
        words += verb.preposition.en
    return " ".join(word for word in words if word)


NOUNS: dict[str, Noun] = {noun.en: noun for noun in _nouns()}
VERBS: dict[str, Verb] = {
    _name(verb): verb
    for frame, table in stems.VERBS.items()
    for verb in (_verb(Frame(frame), *row) for row in _rows(table))
}
ADJECTIVES: dict[str, Adjective] = {
    english: Adjective(english, german.partition(":")[0], german.rpartition(":")[2], frozenset(kinds))
    for english, german, kinds in _rows(stems.ADJECTIVES)
}

BE = Verb("be", None, None, False, "sein", "", None, None, True, Frame.COPULA, frozenset(), frozenset(), None)

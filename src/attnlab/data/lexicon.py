"""The lexicon of the synthetic corpus: the types of its words, the stems parsed, and the function words.

`NOUNS`, `VERBS` and `ADJECTIVES` map English to the word; a verb's name has its particle or preposition: "turn on".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from attnlab.data import stems

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


def _adverb(english: str, german: str, links: str, tenses: str, *, preverbal: bool = False) -> Adverb:
    pairs = tuple((int(source), int(target)) for source, target in (link.split("-") for link in links.split()))
    signs = {"<": Tense.PAST, "=": Tense.PRESENT, ">": Tense.FUTURE}
    return Adverb(
        en=tuple(english.split()),
        de=tuple(german.split()),
        links=pairs,
        tenses=frozenset(signs[sign] for sign in tenses),
        preverbal=preverbal,
    )


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

# The verb decides between the cases of a two-way preposition: sat behind it (dative), ran behind it (accusative).
IN = Preposition(("in",), "in", Case.DATIVE)
ON = Preposition(("on",), "auf", Case.DATIVE)
UNDER = Preposition(("under",), "unter", Case.DATIVE)
BEHIND = Preposition(("behind",), "hinter", Case.DATIVE)
IN_FRONT_OF = Preposition(("in", "front", "of"), "vor", Case.DATIVE)
NEXT_TO = Preposition(("next", "to"), "neben", Case.DATIVE)
INTO = Preposition(("into",), "in", Case.ACCUSATIVE)
ONTO = Preposition(("onto",), "auf", Case.ACCUSATIVE)
TO_UNDER = Preposition(("under",), "unter", Case.ACCUSATIVE)
TO_BEHIND = Preposition(("behind",), "hinter", Case.ACCUSATIVE)
TO = Preposition(("to",), "zu", Case.DATIVE)
WITH = Preposition(("with",), "mit", Case.DATIVE)
WITHOUT = Preposition(("without",), "ohne", Case.ACCUSATIVE)

# Preposition and the kinds that stand after it.
LOCATIONS = (
    (IN, Kinds("B")),
    (ON, Kinds("S")),
    (UNDER, Kinds("U")),
    (BEHIND, Kinds("UV")),
    (IN_FRONT_OF, Kinds("BV")),
    (NEXT_TO, Kinds("UV")),
)
DIRECTIONS = ((INTO, Kinds("B")), (ONTO, Kinds("S")), (TO_UNDER, Kinds("U")), (TO_BEHIND, Kinds("UV")))
COMPANIONS = (WITH, WITHOUT)

# Tenses: < past, = present, > future.
ADVERBS = (
    _adverb("yesterday", "gestern", "0-0", "<"),
    _adverb("last week", "letzte Woche", "0-0 1-1", "<"),
    _adverb("last summer", "letzten Sommer", "0-0 1-1", "<"),
    _adverb("this morning", "heute Morgen", "0-0 1-1", "<"),
    _adverb("a week ago", "vor einer Woche", "0-1 1-2 2-0", "<"),
    _adverb("two days ago", "vor zwei Tagen", "0-1 1-2 2-0", "<"),
    _adverb("in the evening", "am Abend", "0-0 1-0 2-1", "<="),
    _adverb("in the morning", "am Morgen", "0-0 1-0 2-1", "<="),
    _adverb("on Monday", "am Montag", "0-0 1-1", "<>"),
    _adverb("on Sunday", "am Sonntag", "0-0 1-1", "<>"),
    _adverb("in winter", "im Winter", "0-0 1-1", "<="),
    _adverb("today", "heute", "0-0", "=>"),
    _adverb("now", "jetzt", "0-0", "="),
    _adverb("every day", "jeden Tag", "0-0 1-1", "="),
    _adverb("every week", "jede Woche", "0-0 1-1", "="),
    _adverb("tomorrow", "morgen", "0-0", ">"),
    _adverb("soon", "bald", "0-0", ">"),
    _adverb("next month", "nächsten Monat", "0-0 1-1", ">"),
    _adverb("tonight", "heute Abend", "0-0 0-1", ">"),
    _adverb("often", "oft", "0-0", "<=", preverbal=True),
    _adverb("always", "immer", "0-0", "<=", preverbal=True),
    _adverb("sometimes", "manchmal", "0-0", "<=", preverbal=True),
    _adverb("never", "nie", "0-0", "<=", preverbal=True),
    _adverb("rarely", "selten", "0-0", "<=", preverbal=True),
)



def _modal(third: str, plural: str, base: str, german: str, german_plural: str, tense: Tense) -> Modal:
    words = (tuple(english.split()) for english in (plural, third, base))
    return Modal(*words, german, german_plural, tense, support=base.endswith("to"))


MODALS = {
    "can": _modal("can", "can", "can", "kann", "können", Tense.PRESENT),
    "must": _modal("must", "must", "must", "muss", "müssen", Tense.PRESENT),
    "should": _modal("should", "should", "should", "sollte", "sollten", Tense.PRESENT),
    "want to": _modal("wants to", "want to", "want to", "will", "wollen", Tense.PRESENT),
    "could": _modal("could", "could", "could", "konnte", "konnten", Tense.PAST),
    "had to": _modal("had to", "had to", "have to", "musste", "mussten", Tense.PAST),
    "wanted to": _modal("wanted to", "wanted to", "want to", "wollte", "wollten", Tense.PAST),
}


@dataclass(frozen=True, slots=True)
class Link:
    """A conjunction; subordinating ones send the German verb to the end of their clause."""

    en: str
    de: str
    subordinating: bool


AND = Link("and", "und", subordinating=False)
BUT = Link("but", "aber", subordinating=False)
BECAUSE = Link("because", "weil", subordinating=True)
ALTHOUGH = Link("although", "obwohl", subordinating=True)
IF = Link("if", "wenn", subordinating=True)
WHEN = Link("when", "wenn", subordinating=True)  # whenever: with the present
WHEN_ONCE = Link("when", "als", subordinating=True)  # with the past
WHILE = Link("while", "während", subordinating=True)
BEFORE = Link("before", "bevor", subordinating=True)

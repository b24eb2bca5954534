"""The function words of the synthetic corpus: prepositions, adverbs, modal verbs and conjunctions."""

from __future__ import annotations

from attnlab.data.synthetic.lexicon import Adverb, Case, Kinds, Link, Modal, Preposition, Tense


def _adverb(english: str, german: str, links: str, tenses: str, *, preverbal: bool = False) -> Adverb:
    pairs = (link.split("-") for link in links.split())
    signs = {"<": Tense.PAST, "=": Tense.PRESENT, ">": Tense.FUTURE}
    return Adverb(
        en=tuple(english.split()),
        de=tuple(german.split()),
        links=tuple((int(source), int(target)) for source, target in pairs),
        tenses=frozenset(signs[sign] for sign in tenses),
        preverbal=preverbal,
    )


def _modal(third: str, plural: str, base: str, german: str, german_plural: str, tense: Tense) -> Modal:
    return Modal(
        en=tuple(plural.split()),
        en_third=tuple(third.split()),
        en_base=tuple(base.split()),
        de=german,
        de_plural=german_plural,
        tense=tense,
        support=base.endswith("to"),
    )


# The verb decides the case of a two-way preposition: sat behind it (dative), ran behind it (accusative).
IN = Preposition(("in",), "in", Case.DATIVE)
ON = Preposition(("on",), "auf", Case.DATIVE)
UNDER = Preposition(("under",), "unter", Case.DATIVE)
BEHIND = Preposition(("behind",), "hinter", Case.DATIVE)
IN_FRONT_OF = Preposition(("in", "front", "of"), "vor", Case.DATIVE)
NEXT_TO = Preposition(("next", "to"), "neben", Case.DATIVE)
INTO = Preposition(("into",), "in", Case.ACCUSATIVE)
ONTO = Preposition(("onto",), "auf", Case.ACCUSATIVE)
PUT_ON = Preposition(("on",), "auf", Case.ACCUSATIVE)
TO_UNDER = Preposition(("under",), "unter", Case.ACCUSATIVE)
TO_BEHIND = Preposition(("behind",), "hinter", Case.ACCUSATIVE)
TO = Preposition(("to",), "zu", Case.DATIVE)
WITH = Preposition(("with",), "mit", Case.DATIVE)
WITHOUT = Preposition(("without",), "ohne", Case.ACCUSATIVE)

# Preposition and the kinds that stand after it; places are where something is put.
LOCATIONS = (
    (IN, Kinds("B")),
    (ON, Kinds("S")),
    (UNDER, Kinds("U")),
    (BEHIND, Kinds("UV")),
    (IN_FRONT_OF, Kinds("BV")),
    (NEXT_TO, Kinds("UV")),
)
DIRECTIONS = (
    (INTO, Kinds("B")),
    (ONTO, Kinds("S")),
    (TO_UNDER, Kinds("U")),
    (TO_BEHIND, Kinds("UV")),
    (TO, Kinds("P")),
)
PLACES = ((INTO, Kinds("B")), (PUT_ON, Kinds("S")), (TO_UNDER, Kinds("U")), (TO_BEHIND, Kinds("UV")))
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

MODALS = {
    "can": _modal("can", "can", "can", "kann", "können", Tense.PRESENT),
    "must": _modal("must", "must", "must", "muss", "müssen", Tense.PRESENT),
    "should": _modal("should", "should", "should", "sollte", "sollten", Tense.PRESENT),
    "want to": _modal("wants to", "want to", "want to", "will", "wollen", Tense.PRESENT),
    "could": _modal("could", "could", "could", "konnte", "konnten", Tense.PAST),
    "had to": _modal("had to", "had to", "have to", "musste", "mussten", Tense.PAST),
    "wanted to": _modal("wanted to", "wanted to", "want to", "wollte", "wollten", Tense.PAST),
}

AND = Link("and", "und", subordinating=False)
BUT = Link("but", "aber", subordinating=False)
BECAUSE = Link("because", "weil", subordinating=True)
ALTHOUGH = Link("although", "obwohl", subordinating=True)
IF = Link("if", "wenn", subordinating=True)
WHEN = Link("when", "wenn", subordinating=True)  # whenever: with the present
WHEN_ONCE = Link("when", "als", subordinating=True)  # with the past
WHILE = Link("while", "während", subordinating=True)
BEFORE = Link("before", "bevor", subordinating=True)

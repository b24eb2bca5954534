"""English: inflection, and the English side of a tree."""

from __future__ import annotations

from functools import cache

from attnlab.data.synthetic.lexicon import Frame, Noun, Tense, Verb
from attnlab.data.synthetic.syntax import (
    COMMA,
    Agreement,
    Argument,
    Clause,
    Determiner,
    NounPhrase,
    Part,
    Person,
    PrepositionalPhrase,
    Pronoun,
    Relative,
    Sentence,
    Token,
    adverb_tokens,
    agreement,
    gap,
    is_person,
    key,
)

_OBJECTIVE = {Person.I: "me", Person.WE: "us", Person.HE: "him", Person.SHE: "her", Person.IT: "it"}
_OBJECTIVE |= {Person.THEY: "them"}
_BE = {
    Tense.PRESENT: {Agreement.FIRST: "am", Agreement.THIRD: "is", Agreement.PLURAL: "are"},
    Tense.PAST: {Agreement.FIRST: "was", Agreement.THIRD: "was", Agreement.PLURAL: "were"},
}
_UNITS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_UNITS += ["thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def number(value: int) -> str:
    """1 to 99 in words: twenty-five."""
    if value < 20:
        return _UNITS[value - 1]
    tens, units = divmod(value, 10)
    return _TENS[tens - 2] + (f"-{_UNITS[units - 1]}" if units else "")


def article(following: str) -> str:
    """Before a vowel an, by sound and not by letter: a useful, an honest."""
    silent_h, spoken_y = following.startswith("hon"), following.startswith("us")
    return "an" if silent_h or (following[0] in "aeiou" and not spoken_y) else "a"


def third_person(verb: str) -> str:
    if verb.endswith(("s", "x", "z", "ch", "sh", "o")):
        return verb + "es"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + "s"


def past(verb: Verb) -> str:
    if verb.en_past:
        return verb.en_past
    if verb.en.endswith("e"):
        return verb.en + "d"
    if verb.en.endswith("y") and verb.en[-2] not in "aeiou":
        return verb.en[:-1] + "ied"
    return verb.en + "ed"


@cache
def verb_form(verb: Verb, tense: Tense, person: Agreement) -> str:
    """The finite verb, without its particle."""
    if verb.frame is Frame.COPULA:
        return _BE[tense][person]
    if tense is Tense.PAST:
        return past(verb)
    return third_person(verb.en) if person is Agreement.THIRD else verb.en


def _noun(noun: Noun, plural: bool) -> str:
    return noun.en_plural if plural else noun.en


def noun_phrase_tokens(phrase: NounPhrase) -> list[Token]:
    tokens: list[Token] = []
    determiner = (key(phrase, Part.DETERMINER),)
    if phrase.owner:
        *tokens, (owner, keys) = noun_phrase_tokens(phrase.owner)
        tokens.append((f"{owner}'s", keys + determiner))
    elif phrase.determiner is Determiner.THIS and phrase.plural:
        tokens.append(("these", determiner))
    elif phrase.determiner is not Determiner.BARE:
        tokens.append((phrase.determiner, determiner))
    if phrase.count:
        tokens.append((number(phrase.count), (key(phrase, Part.COUNT),)))
    if phrase.adjective:
        tokens.append((phrase.adjective.en, (key(phrase, Part.ADJECTIVE),)))
    tokens.append((_noun(phrase.noun, phrase.plural), (key(phrase, Part.NOUN),)))
    if phrase.determiner is Determiner.A:
        tokens[0] = (article(tokens[1][0]), determiner)
    if phrase.relative:
        tokens += clause_tokens(phrase.relative)
    return tokens


def _argument(argument: Argument | None, *, subject: bool = False) -> list[Token]:
    match argument:
        case NounPhrase():
            return noun_phrase_tokens(argument)
        case Pronoun(person=person):
            return [(person if subject else _OBJECTIVE[person], (key(argument, Part.PRONOUN),))]
        case _:  # nothing there, or a relative pronoun, which is in front
            return []


def _relative(relative: Relative) -> Token:
    return ("who" if is_person(relative.head.noun) else "that", (key(relative, Part.PRONOUN),))


def _prepositional(phrase: PrepositionalPhrase | None) -> list[Token]:
    if phrase is None:
        return []
    preposition = (key(phrase, Part.PREPOSITION),)
    return [(word, preposition) for word in phrase.preposition.en] + noun_phrase_tokens(phrase.noun_phrase)


def _verb_group(clause: Clause) -> list[Token]:
    """Auxiliary, negation, preverbal adverb and verb, without the particle."""
    person = agreement(clause.subject)
    finite, negation = (key(clause, Part.FINITE),), (key(clause, Part.NOT),)
    main = (key(clause, Part.VERB),)
    modal = clause.modal
    auxiliary: list[Token]
    verb: list[Token] = [(clause.verb.en, main)]
    do = "did" if clause.tense is Tense.PAST else "does" if person is Agreement.THIRD else "do"
    if clause.tense is Tense.FUTURE:
        auxiliary = [("will", finite)]
    elif modal and clause.negated and modal.support:
        auxiliary = [(do, finite)]
    elif modal:
        words = modal.en_third if person is Agreement.THIRD else modal.en
        auxiliary = [(word, finite) for word in words]
    elif clause.verb.frame is Frame.COPULA:
        auxiliary, verb = [(verb_form(clause.verb, clause.tense, person), (*finite, *main))], []
    elif clause.negated:
        auxiliary = [(do, finite)]
    else:
        auxiliary, verb = [], [(verb_form(clause.verb, clause.tense, person), (*finite, *main))]
    tokens = auxiliary
    if clause.negated:
        if auxiliary[-1][0] == "can":
            tokens = [("cannot", finite + negation)]
        else:
            tokens = [*auxiliary, ("not", negation)]
        if modal and modal.support:
            tokens += [(word, finite) for word in modal.en_base]
    if clause.adverb and clause.adverb.preverbal:
        adverb = adverb_tokens(clause, clause.adverb.en, 0)
        tokens = adverb + tokens if modal and modal.support else tokens + adverb
    return tokens + verb


def _objects(clause: Clause) -> list[Token]:
    """Particle, dative and object: turned the lamp off is written turned off the lamp, but turned it off."""
    objects = _argument(clause.object)
    particle: list[Token] = []
    if clause.verb.particle:
        particle = [(clause.verb.particle, (key(clause, Part.PARTICLE),))]
    if clause.verb.particle_moves and isinstance(clause.object, Pronoun):
        return objects + particle
    dative = _argument(clause.dative)
    if dative and isinstance(clause.object, Pronoun):  # gave it to the woman, but gave the woman the book
        return [*objects, ("to", dative[0][1]), *dative]
    return particle + dative + objects


def clause_tokens(clause: Clause) -> list[Token]:
    """A main, subordinate or relative clause: English has one word order for all."""
    tokens: list[Token] = []
    relative = gap(clause)
    adverb: list[Token] = []
    if clause.adverb and not clause.adverb.preverbal:
        adverb = adverb_tokens(clause, clause.adverb.en, 0)
    if relative:
        tokens.append(_relative(relative))
    if clause.fronted:
        tokens += adverb
    tokens += _argument(clause.subject, subject=True) + _verb_group(clause) + _objects(clause)
    if clause.predicate:
        tokens.append((clause.predicate.en, (key(clause, Part.ADJECTIVE),)))
    tokens += _prepositional(clause.complement) + _prepositional(clause.circumstance)
    if not clause.fronted:
        tokens += adverb
    if clause.content:
        tokens.append(("that", (key(clause.content, Part.CONJUNCTION),)))
        tokens += clause_tokens(clause.content)
    return tokens


def sentence_tokens(tree: Sentence) -> list[Token]:
    if tree.link is None or tree.second is None:
        return clause_tokens(tree.main)
    linked = [(tree.link.en, (key(tree, Part.CONJUNCTION),)), *clause_tokens(tree.second)]
    if tree.second_first:
        return [*linked, COMMA, *clause_tokens(tree.main)]
    comma = [] if tree.link.subordinating else [COMMA]
    return clause_tokens(tree.main) + comma + linked

"""German word forms: determiners, adjectives, nouns, pronouns, verbs and numbers.

A column is one of m, f, n and p: the gender in the singular, and one plural for all. The paradigms are those
of any grammar, e.g. Duden, Die Grammatik: strong, weak and mixed adjectives, n-declension, linking e.
"""

from __future__ import annotations

import re
from functools import cache

from attnlab.data.synthetic.lexicon import Adjective, Case, Frame, Gender, Noun, Verb
from attnlab.data.synthetic.syntax import Agreement, Determiner, Person, Pronoun


def _paradigm(rows: str) -> dict[tuple[Case, str], str]:
    """Rows nominative, accusative, dative, genitive; columns masculine, feminine, neuter, plural; - is no
    ending.
    """
    cells = [row.split() for row in rows.split("|")]
    return {
        (case, column): "" if cell == "-" else cell
        for case, row in zip(Case, cells, strict=True)
        for column, cell in zip("mfnp", row, strict=True)
    }


_DER = _paradigm("der die das die | den die das die | dem der dem den | des der des der")
_DIES = _paradigm("er e es e | en e es e | em er em en | es er es er")
_EIN = _paradigm("- e - e | en e - e | em er em en | es er es er")
_WEAK = _paradigm("e e e en | en e e en | en en en en | en en en en")
_MIXED = _paradigm("er e es en | en e es en | en en en en | en en en en")
_STRONG = _paradigm("er e es e | en e es e | em er em en | en er en er")

_DETERMINERS = {
    Determiner.THE: ("", _DER, _WEAK),
    Determiner.THIS: ("dies", _DIES, _WEAK),
    Determiner.EVERY: ("jed", _DIES, _WEAK),
    Determiner.ALL: ("all", _DIES, _WEAK),
    Determiner.MANY: ("viel", _DIES, _STRONG),
    Determiner.A: ("ein", _EIN, _MIXED),
    Determiner.NO: ("kein", _EIN, _MIXED),
    Determiner.MY: ("mein", _EIN, _MIXED),
    Determiner.OUR: ("unser", _EIN, _MIXED),
    Determiner.HIS: ("sein", _EIN, _MIXED),
    Determiner.HER: ("ihr", _EIN, _MIXED),
    Determiner.THEIR: ("ihr", _EIN, _MIXED),
    Determiner.BARE: ("", None, _STRONG),
}
_PRONOUNS = {
    Person.I: ("ich", "mich", "mir"),
    Person.WE: ("wir", "uns", "uns"),
    Person.HE: ("er", "ihn", "ihm"),
    Person.SHE: ("sie", "sie", "ihr"),
    Person.THEY: ("sie", "sie", "ihnen"),
}
_IT = {Gender.MASCULINE: ("er", "ihn", "ihm"), Gender.FEMININE: ("sie", "sie", "ihr")}
_IT |= {Gender.NEUTER: ("es", "es", "ihm")}

HABEN = {Agreement.FIRST: "habe", Agreement.THIRD: "hat", Agreement.PLURAL: "haben"}
SEIN = {Agreement.FIRST: "bin", Agreement.THIRD: "ist", Agreement.PLURAL: "sind"}
WAR = {Agreement.FIRST: "war", Agreement.THIRD: "war", Agreement.PLURAL: "waren"}
WERDEN = {Agreement.FIRST: "werde", Agreement.THIRD: "wird", Agreement.PLURAL: "werden"}
_INSEPARABLE = ("be", "ge", "er", "ver", "zer", "ent", "emp", "miss")

_UNITS = ["ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf"]
_UNITS += ["dreizehn", "vierzehn", "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn"]
_TENS = ["zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"]


def number(value: int) -> str:
    """2 to 99 in words, units before tens: fünfundzwanzig."""
    if value < 20:
        return _UNITS[value - 1]
    tens, units = divmod(value, 10)
    return (f"{_UNITS[units - 1]}und" if units else "") + _TENS[tens - 2]


def column_of(noun: Noun, plural: bool) -> str:
    return "p" if plural else noun.gender


@cache
def determiner(word: Determiner, column: str, case: Case) -> str:
    """The inflected determiner; column is m, f, n or p(lural)."""
    stem, endings, _ = _DETERMINERS[word]
    return stem + endings[case, column] if endings else ""


@cache
def adjective(word: Adjective, after: Determiner, column: str, case: Case) -> str:
    """The inflected adjective, weak, mixed or strong by the determiner that it follows."""
    return word.de_stem + _DETERMINERS[after][2][case, column]


@cache
def noun_form(noun: Noun, plural: bool, case: Case) -> str:
    if plural:
        assert noun.de_plural is not None, f"{noun.de} has no plural"
        form = noun.de_plural
        return form + "n" if case is Case.DATIVE and not form.endswith(("n", "s")) else form
    if noun.weak:
        # Each weak noun of the lexicon has its plural's form in the oblique singular: den Studenten.
        return noun.de if case is Case.NOMINATIVE else str(noun.de_plural)
    if case is Case.GENITIVE and noun.gender is not Gender.FEMININE:
        return noun.de + _genitive_ending(noun)
    return noun.de


def _genitive_ending(noun: Noun) -> str:
    """-es after a sibilant and on one syllable (des Mannes), else -s; a plural in -s marks a loan: des
    Parks.
    """
    if noun.de.endswith(("s", "ß", "x", "z", "sch")):
        return "es"
    one_syllable = len(re.findall("[aeiouäöüy]+", noun.de.lower())) == 1 and noun.de[-1] not in "aeiou"
    loan = noun.de_plural is not None and noun.de_plural.endswith("s")
    return "es" if one_syllable and not loan else "s"


def _stem(verb: Verb) -> str:
    """sing-en, but stolper-n."""
    return verb.de.removesuffix("en") if verb.de.endswith("en") else verb.de.removesuffix("n")


def _linking_e(stem: str) -> str:
    """arbeit-e-t, and after m or n that no vowel, l, r or h precedes: öffn-e-t."""
    hard = stem.endswith(("t", "d")) or (stem.endswith(("m", "n")) and stem[-2] not in "aeiouäöülrhmn")
    return "e" if hard else ""


@cache
def present(verb: Verb, person: Agreement) -> str:
    """The present, without the separable prefix."""
    if verb.frame is Frame.COPULA:
        return SEIN[person]
    stem = _stem(verb)
    match person:
        case Agreement.FIRST:
            return stem.removesuffix("el") + "le" if verb.de.endswith("eln") else stem + "e"
        case Agreement.THIRD:
            return verb.de_third or stem + _linking_e(stem) + "t"
        case Agreement.PLURAL:
            return verb.de


@cache
def participle(verb: Verb) -> str:
    """The past participle: gesucht, aufgemacht, besucht, repariert, anprobiert."""
    if verb.participle:
        return verb.participle
    stem = _stem(verb)
    bare = stem.endswith("ier") or verb.de.startswith(_INSEPARABLE)
    return verb.prefix + ("" if bare else "ge") + stem + _linking_e(stem) + "t"


def pronoun_form(pronoun: Pronoun, case: Case) -> str:
    """The personal pronoun; `it` has the gender of its antecedent's noun."""
    if pronoun.person is Person.IT:
        forms = _IT[pronoun.antecedent.noun.gender if pronoun.antecedent else Gender.NEUTER]
    else:
        forms = _PRONOUNS[pronoun.person]
    return forms[(Case.NOMINATIVE, Case.ACCUSATIVE, Case.DATIVE).index(case)]

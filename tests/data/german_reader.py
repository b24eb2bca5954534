"""A small reader of German with paradigms and rules of its own: it parses a sentence and objects to
mistakes.

Of the generator it knows the lexicon (stems, genders, plurals) and the forms of the verbs, which other tests
pin. A slot is a gender or the plural, and a case: mN is masculine nominative, pD is plural dative."""

import re
from functools import cache, partial

from attnlab.data.synthetic import function_words
from attnlab.data.synthetic.inflection import participle, present
from attnlab.data.synthetic.lexicon import ADJECTIVES, NOUNS, VERBS, Frame
from attnlab.data.synthetic.syntax import Agreement

ALL = frozenset(gender + case for gender in "mfnp" for case in "NADG")
DER = {
    "der": "mN fD fG pG",
    "die": "fN fA pN pA",
    "das": "nN nA",
    "den": "mA pD",
    "dem": "mD nD",
    "des": "mG nG",
}
DIES = {"er": "mN fD fG pG", "e": "fN fA pN pA", "es": "nN nA mG nG", "en": "mA pD", "em": "mD nD"}
EIN = {"": "mN nN nA", "e": "fN fA pN pA", "en": "mA pD", "em": "mD nD", "er": "fD fG pG", "es": "mG nG"}
WEAK = {"e": "mN fN nN fA nA", "en": "mA mD nD fD mG fG nG pN pA pD pG"}
MIXED = {"er": "mN", "e": "fN fA", "es": "nN nA", "en": "mA mD nD fD mG fG nG pN pA pD pG"}
STRONG = {"er": "mN fD fG pG", "e": "fN fA pN pA", "es": "nN nA", "em": "mD nD", "en": "mA pD mG nG"}
DETERMINERS = {form: (set(slots.split()), WEAK) for form, slots in DER.items()}
DETERMINERS |= {
    stem + end: (set(slots.split()), WEAK) for stem in ("dies", "jed", "all") for end, slots in DIES.items()
}
DETERMINERS |= {"viel" + end: (set(slots.split()), STRONG) for end, slots in DIES.items()}
EIN_WORDS = ("ein", "kein", "mein", "sein", "ihr", "unser")
DETERMINERS |= {stem + end: (set(slots.split()), MIXED) for stem in EIN_WORDS for end, slots in EIN.items()}
CONTRACTED = {
    "im": "mD nD",
    "zum": "mD nD",
    "vom": "mD nD",
    "am": "mD nD",
    "zur": "fD",
    "ins": "nA",
    "ans": "nA",
}
PREPOSITIONS = {"mit": "D", "von": "D", "zu": "D", "ohne": "A", "um": "A", "über": "A"}
PREPOSITIONS |= dict.fromkeys(("in", "auf", "unter", "hinter", "neben", "vor", "an"), "DA")
SUBJECTS = {"ich": "1", "er": "3", "es": "3", "wir": "p", "sie": "3p"}
RELATIVE = {"der": "mN fD", "die": "fN fA pN pA", "das": "nN nA", "den": "mA", "dem": "mD nD", "denen": "pD"}
SUBORDINATORS = ("weil", "obwohl", "als", "wenn", "während", "bevor", "dass")
NUMBER = re.compile(r"zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|\w+zehn|\w*(zig|ßig)")
HAVE = {"habe": "1", "hat": "3", "haben": "p"}
BE = {"bin": "1", "ist": "3", "sind": "p", "war": "13", "waren": "p"}
MODAL = {"kann": "13", "können": "p", "muss": "13", "müssen": "p", "will": "13", "wollen": "p", "wird": "3"}
MODAL |= {"werde": "1", "werden": "p"}
MODAL |= {
    past + end: to
    for past in ("konnte", "musste", "wollte", "sollte")
    for end, to in (("", "13"), ("n", "p"))
}
TIME_NOUNS = {"Woche", "Sommer", "Morgen", "Tagen", "Abend", "Montag", "Sonntag", "Winter", "Tag", "Monat"}
ADVERBS = sorted((" ".join(adverb.de) for adverb in function_words.ADVERBS), key=len, reverse=True)
SEIN_PARTICIPLES = {participle(verb): verb.sein for verb in VERBS.values()}
INFINITIVES = {verb.prefix + verb.de for verb in VERBS.values()} | {"sein"}
PREFIXES = {verb.prefix for verb in VERBS.values() if verb.prefix}


def _verbs():
    """Finite forms of the main verbs: person, and prefix if it is parted from them."""
    parted, joined = {}, {}
    for verb in VERBS.values():
        for person, agreement in (("1", Agreement.FIRST), ("3", Agreement.THIRD), ("p", Agreement.PLURAL)):
            form = present(verb, agreement)
            parted.setdefault(form, set()).add((person, verb.prefix))
            joined.setdefault(verb.prefix + form, set()).add((person, ""))
    return parted, joined


PARTED, JOINED = _verbs()
FRAMES = {}
for _verb in VERBS.values():
    for _form in (
        participle(_verb),
        *(_verb.prefix + form for form in (_verb.de, *map(partial(present, _verb), Agreement))),
    ):
        FRAMES.setdefault(_form, set()).add(_verb.frame)
PRONOUNS = {
    "ihn": {"mA"},
    "ihm": {"mD"},
    "ihnen": {"pD"},
    "ihr": {"fD"},
    "sie": {"fN", "fA"},
    "es": {"nN", "nA"},
}
SECOND, FINAL = (
    {word: "".join(person for person, _ in found) for word, found in lexical.items()} | HAVE | BE | MODAL
    for lexical in (PARTED, JOINED)
)


@cache
def _adjectives():
    return {word.de_stem + end: end for word in ADJECTIVES.values() for end in ("e", "en", "er", "es", "em")}


@cache
def _nouns():
    """Surface form to its slots."""
    forms = {}
    for noun in NOUNS.values():
        gender, oblique = noun.gender.value, noun.de_plural if noun.weak else noun.de
        genitive = {oblique} if noun.weak or gender == "f" else {noun.de + "s", noun.de + "es"}
        cells = [(noun.de, "N"), (oblique, "A"), (oblique, "D"), *((form, "G") for form in genitive)]
        for form, case in cells:
            forms.setdefault(form, set()).add(gender + case)
        if noun.de_plural:
            dative = noun.de_plural if noun.de_plural[-1] in "ns" else noun.de_plural + "n"
            for case in "NADG":
                forms.setdefault(dative if case == "D" else noun.de_plural, set()).add("p" + case)
    return forms


def is_noun(word):
    return word in _nouns()


def noun_phrase(words, start, contracted=None):
    """The end of the noun phrase at `start` and the slots that all its words agree on; None if there is
    none."""
    found = _noun_phrase(tuple(words[start : start + 4]), contracted)
    return found and (start + found[0], found[1])


@cache
def _noun_phrase(words, contracted):
    place, slots, endings = 0, ALL, STRONG
    if contracted:
        slots, endings = set(CONTRACTED[contracted].split()), WEAK
    elif words and words[0] in DETERMINERS:
        slots, endings = DETERMINERS[words[0]]
        place = 1
    if place < len(words) and NUMBER.fullmatch(words[place]):
        slots = slots & {"pN", "pA", "pD", "pG"}
        place += 1
    if place < len(words) and words[place] in _adjectives():
        slots = slots & set(endings.get(_adjectives()[words[place]], "").split())
        place += 1
    if place == len(words) or not is_noun(words[place]):
        return None
    slots = slots & _nouns()[words[place]]
    if not slots and words[0] == "ihr":  # to her, not her
        return None
    assert slots, f"no agreement in {' '.join(words[: place + 1])}"
    return place + 1, slots


def with_genitive(words, start):
    """As noun_phrase, with the genitive that may follow."""
    found = noun_phrase(words, start)
    if found and found[0] < len(words) and words[found[0]] in DETERMINERS:
        owner = noun_phrase(words, found[0])
        if owner and any(slot.endswith("G") for slot in owner[1]):
            return owner[0], found[1]
    return found


def subject(words, start):
    """The end of the nominative at `start`, and the persons that its verb may have."""
    if words[start] in SUBJECTS:
        return start + 1, SUBJECTS[words[start]]
    found = with_genitive(words, start)
    assert found, f"no subject at {' '.join(words[start:])}"
    persons = {"p" if slot[0] == "p" else "3" for slot in found[1] if slot[1] == "N"}
    assert persons, f"subject is no nominative in {' '.join(words[start : found[0]])}"
    return found[0], "".join(sorted(persons))


def agree(forms, word, persons):
    assert word in forms, f"{word} is not finite"
    assert set(forms[word]) & set(persons), f"{word} does not agree with its subject"


def phrases(words):
    """Each noun stands in an agreeing phrase, with the case of its preposition; returns the others' slots."""
    seen, bare, place = set(), [], 0
    while place < len(words):
        word, case = words[place], "NADG"
        found = None
        if word in CONTRACTED:
            found = noun_phrase(words, place + 1, contracted=word)
        elif word in PREPOSITIONS and place + 1 < len(words):
            found, case = noun_phrase(words, place + 1), PREPOSITIONS[word]
        found = found or noun_phrase(words, place)
        if found:
            if all(slot[1] == "G" for slot in found[1]):
                assert is_noun(words[place - 1] if place else ""), f"genitive of nothing: {' '.join(words)}"
            assert any(slot[1] in case for slot in found[1]), f"wrong case after {word}: {' '.join(words)}"
            if word not in CONTRACTED and word not in PREPOSITIONS:
                bare.append(found[1])
            seen |= set(range(place, found[0]))
            place = found[0]
        else:
            bare += [PRONOUNS[word]] if word in PRONOUNS else []
            place += 1
    lost = [word for place, word in enumerate(words) if is_noun(word) and place not in seen]
    assert not lost, f"no phrase around {lost}"
    return bare


def government(verb, bare):
    """A dative verb has a dative, and a transitive one has none."""
    frames = FRAMES.get(verb, set())
    if frames == {Frame.DATIVE}:
        assert any(slot[1] == "D" for slots in bare for slot in slots), f"no dative with {verb}"
    if frames == {Frame.TRANSITIVE}:
        assert not any({slot[1] for slot in slots} == {"D"} for slots in bare), f"dative with {verb}"


def ending(finite, rest):
    """The right bracket that the finite verb asks for."""
    last = rest[-1] if rest else ""
    if finite in HAVE or (finite in BE and not finite.startswith("war") and last in SEIN_PARTICIPLES):
        assert SEIN_PARTICIPLES.get(last) is (finite in BE), f"{finite} ... {last}"
    elif finite in MODAL:
        assert last in INFINITIVES, f"{finite} ... {last}"
    elif finite in PARTED:
        prefixes = {prefix for _, prefix in PARTED[finite]}
        assert (last if last in PREFIXES else "") in prefixes, f"{finite} ... {last}"


def final(words, in_relative=False):
    """A subordinate clause, without its conjunction: subject first, finite verb last."""
    bare = phrases(words)
    end, persons = subject(words, 0)
    assert end < len(words)
    agree(FINAL, words[-1], persons)
    compound = words[-1] in HAVE or words[-1] in MODAL or words[-2] in SEIN_PARTICIPLES
    if compound:
        ending(words[-1], words[:-1])
    if not in_relative:
        government(words[-2] if compound else words[-1], bare)


def relative(words, head):
    """A relative clause after its head noun."""
    pronoun, rest = words[0], words[1:]
    heads = {slot[0] for slot in _nouns()[head]}
    slots = {slot for slot in RELATIVE[pronoun].split() if slot[0] in heads}
    assert slots, f"{head}, {pronoun}"
    if any(slot[1] != "N" for slot in slots) and (rest[0] in SUBJECTS or with_genitive(rest, 0)):
        try:
            final(rest, in_relative=True)
            return
        except AssertionError:  # die and das: perhaps the subject itself, before its object
            if all(slot[1] != "N" for slot in slots):
                raise
    persons = {"p" if slot[0] == "p" else "3" for slot in slots if slot[1] == "N"}
    phrases(rest)
    agree(FINAL, rest[-1], "".join(persons))


def main(words, verb_first=False):
    """A main clause: one constituent, or with `verb_first` none, before the finite verb."""
    words, clauses = list(words), []
    while "," in words:  # take out relative clauses
        comma = next((n for n, w in enumerate(words) if w == "," and words[n + 1] in RELATIVE), None)
        if comma is None:
            break
        close = words.index(",", comma + 1) if "," in words[comma + 1 :] else len(words)
        clauses.append((words[comma + 1 : close], words[comma - 1]))
        # a closing comma that a subordinate clause or aber needs too stays
        shared = close + 1 < len(words) and words[close + 1] in (*SUBORDINATORS, "aber")
        words[comma : close if shared else close + 1] = []
    for clause, head in clauses:
        relative(clause, head)
    for place, word in enumerate(words):
        if word == ",":
            conjunction = words[place + 1]
            assert conjunction in SUBORDINATORS or conjunction == "aber", f"comma before {conjunction}"
            (final if conjunction in SUBORDINATORS else main)(words[place + 2 :])
            words = words[:place]
            break
        if word == "und":
            main(words[place + 1 :])
            words = words[:place]
            break
    bare = phrases(words)
    adverb = next((text.split() for text in ADVERBS if words[: len(text.split())] == text.split()), None)
    if verb_first:
        place = 0
        _, persons = subject(words, 1)
    elif adverb:
        place = len(adverb)
        _, persons = subject(words, place + 1)
    else:
        place, persons = subject(words, 0)
    agree(SECOND, words[place], persons)
    finite, rest = words[place], words[place + 1 :]
    ending(finite, rest)
    last = rest[-1] if rest else ""
    verb = last + finite if last in PREFIXES else last if last in FRAMES else finite
    government(verb, bare)


def read(sentence):
    """Parse a sentence; AssertionError says what is wrong with it."""
    assert sentence.endswith(".")
    assert sentence[0].isupper()
    words = sentence[:-1].replace(",", " ,").split()
    if not is_noun(words[0]) or is_noun(words[1]):  # Junge Frauen
        words[0] = words[0].lower()
    for word in words:
        assert is_noun(word) or word.islower() or word in TIME_NOUNS or word == ",", f"capital in {word}"
    if words[0] in SUBORDINATORS:
        comma = words.index(",")
        final(words[1:comma])
        main(words[comma + 1 :], verb_first=True)
    else:
        main(words)

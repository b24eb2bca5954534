"""The German side of a tree: verb second or final, the verbal bracket, the order between its two parts."""

from __future__ import annotations

from enum import StrEnum

from attnlab.data.synthetic.function_words import AND
from attnlab.data.synthetic.inflection import (
    HABEN,
    SEIN,
    WAR,
    WERDEN,
    adjective,
    column_of,
    determiner,
    noun_form,
    number,
    participle,
    present,
    pronoun_form,
)
from attnlab.data.synthetic.lexicon import Case, Frame, Tense
from attnlab.data.synthetic.syntax import (
    COMMA,
    Agreement,
    Argument,
    Clause,
    Determiner,
    Key,
    NounPhrase,
    Part,
    PrepositionalPhrase,
    Pronoun,
    Relative,
    Sentence,
    Token,
    adverb_tokens,
    agreement,
    gap,
    is_indefinite,
    key,
)

_CONTRACTIONS = {("in", "dem"): "im", ("in", "das"): "ins", ("zu", "dem"): "zum", ("zu", "der"): "zur"}
_CONTRACTIONS |= {("von", "dem"): "vom", ("an", "dem"): "am", ("an", "das"): "ans"}


class Order(StrEnum):
    """Where the finite verb stands."""

    SECOND = "second"  # main clause
    FIRST = "first"  # main clause after its subordinate clause
    FINAL = "final"  # subordinate and relative clause


def noun_phrase_tokens(phrase: NounPhrase, case: Case, negation: tuple[Key, ...] = ()) -> list[Token]:
    """With `negation`, the keys of English not, the determiner is kein."""
    word = Determiner.NO if negation else phrase.determiner
    column = column_of(phrase.noun, phrase.plural)
    tokens: list[Token] = []
    if word is not Determiner.BARE:
        keys = () if phrase.determiner is Determiner.BARE else (key(phrase, Part.DETERMINER),)
        tokens.append((determiner(word, column, case), keys + negation))
    if phrase.count:
        tokens.append((number(phrase.count), (key(phrase, Part.COUNT),)))
    if phrase.adjective:
        form = adjective(phrase.adjective, word, column, case)
        tokens.append((form, (key(phrase, Part.ADJECTIVE),)))
    tokens.append((noun_form(phrase.noun, phrase.plural, case), (key(phrase, Part.NOUN),)))
    if phrase.owner:
        tokens += noun_phrase_tokens(phrase.owner, Case.GENITIVE)
    if phrase.relative:
        tokens += [COMMA, *clause_tokens(phrase.relative, Order.FINAL), COMMA]
    return tokens


def _argument(argument: Argument | None, case: Case, negation: tuple[Key, ...] = ()) -> list[Token]:
    match argument:
        case NounPhrase():
            return noun_phrase_tokens(argument, case, negation)
        case Pronoun():
            return [(pronoun_form(argument, case), (key(argument, Part.PRONOUN),))]
        case _:  # nothing there, or a relative pronoun, which is in front
            return []


def _relative(relative: Relative, clause: Clause) -> Token:
    """The pronoun of a relative clause: declined as the article, but denen."""
    if relative is clause.subject:
        case = Case.NOMINATIVE
    else:
        case = Case.ACCUSATIVE if relative is clause.object else Case.DATIVE
    column = column_of(relative.head.noun, relative.head.plural)
    form = "denen" if (column, case) == ("p", Case.DATIVE) else determiner(Determiner.THE, column, case)
    return (form, (key(relative, Part.PRONOUN),))


def _prepositional(phrase: PrepositionalPhrase | None) -> list[Token]:
    if phrase is None:
        return []
    german, keys = phrase.preposition.de, (key(phrase, Part.PREPOSITION),)
    first, *rest = noun_phrase_tokens(phrase.noun_phrase, phrase.preposition.case)
    contraction = _CONTRACTIONS.get((german, first[0]))
    if contraction:
        return [(contraction, keys + first[1]), *rest]
    return [(german, keys), first, *rest]


def _verb_tokens(clause: Clause) -> tuple[Token, list[Token], list[Token]]:
    """Finite verb, its separated prefix, and the infinite verb at the end of the clause."""
    verb, person = clause.verb, agreement(clause.subject)
    finite, main = (key(clause, Part.FINITE),), (key(clause, Part.VERB),)
    particle = (key(clause, Part.PARTICLE),) if verb.particle else ()
    prefix_keys = particle or main
    if clause.tense is Tense.FUTURE:
        auxiliary = WERDEN[person]
    elif clause.modal:
        auxiliary = clause.modal.de_plural if person is Agreement.PLURAL else clause.modal.de
    elif clause.tense is Tense.PAST and verb.frame is Frame.COPULA:
        return (WAR[person], finite + main), [], []
    elif clause.tense is Tense.PAST:
        auxiliary = (SEIN if verb.sein else HABEN)[person]
        return (auxiliary, finite), [], [(participle(verb), main + particle)]
    elif verb.prefix:
        return (present(verb, person), finite + main), [(verb.prefix, prefix_keys)], []
    else:
        return (present(verb, person), finite + main + particle), [], []
    return (auxiliary, finite), [], [(verb.prefix + verb.de, main + particle)]


def _middle(clause: Clause) -> list[Token]:
    """Between the two parts of the verb.

    Pronouns; then what is known, the time, what is new; nicht, before all that belongs to the predicate. A
    negated clause has kein instead of nicht where its object is indefinite. Duden, Die Grammatik:
    Mittelfeld, Satznegation.
    """
    arguments = ((clause.dative, Case.DATIVE), (clause.object, Case.ACCUSATIVE))
    pronouns = [token for argument, case in reversed(arguments) if isinstance(argument, Pronoun)
                for token in _argument(argument, case)]  # fmt: skip
    known: list[Token] = []
    new: list[Token] = []
    negation = (key(clause, Part.NOT),) if clause.negated else ()
    for argument, case in arguments:
        if is_indefinite(argument):
            new += _argument(argument, case, negation)
            negation = ()
        elif isinstance(argument, NounPhrase):
            known += _argument(argument, case)
    adverb: list[Token] = []
    if clause.adverb and not clause.fronted:
        adverb = adverb_tokens(clause, clause.adverb.de, 1)
    nicht: list[Token] = [("nicht", negation)] if negation else []
    predicate: list[Token] = []
    if clause.predicate:
        predicate = [(clause.predicate.de, (key(clause, Part.ADJECTIVE),))]
    complements = _prepositional(clause.circumstance) + _prepositional(clause.complement)
    return pronouns + known + adverb + new + nicht + complements + predicate


def clause_tokens(clause: Clause, order: Order) -> list[Token]:
    finite, prefix, infinite = _verb_tokens(clause)
    subject, middle = _argument(clause.subject, Case.NOMINATIVE), _middle(clause)
    match order:
        case Order.FINAL:
            relative = gap(clause)
            front = [_relative(relative, clause)] if relative else []
            if prefix:  # joins its verb: dass er die Tür aufmacht
                finite = (prefix[0][0] + finite[0], prefix[0][1] + finite[1])
            tokens = front + subject + middle + infinite + [finite]
        case Order.FIRST:
            tokens = [finite, *subject, *middle, *prefix, *infinite]
        case Order.SECOND if clause.fronted and clause.adverb:
            front = adverb_tokens(clause, clause.adverb.de, 1)
            tokens = [*front, finite, *subject, *middle, *prefix, *infinite]
        case Order.SECOND:
            tokens = [*subject, finite, *middle, *prefix, *infinite]
    if clause.content:
        that = ("dass", (key(clause.content, Part.CONJUNCTION),))
        tokens += [COMMA, that, *clause_tokens(clause.content, Order.FINAL)]
    return tokens


def sentence_tokens(tree: Sentence) -> list[Token]:
    if tree.link is None or tree.second is None:
        return clause_tokens(tree.main, Order.SECOND)
    order = Order.FINAL if tree.link.subordinating else Order.SECOND
    linked = [(tree.link.de, (key(tree, Part.CONJUNCTION),)), *clause_tokens(tree.second, order)]
    if tree.second_first:
        return [*linked, COMMA, *clause_tokens(tree.main, Order.FIRST)]
    comma = [] if tree.link is AND else [COMMA]
    return clause_tokens(tree.main, Order.SECOND) + comma + linked

"""The rules that keep one source to one right translation, checked on the trees that a derivation draws."""

from itertools import chain

import pytest

from attnlab.data import grammar
from attnlab.data.grammar import render
from attnlab.data.synthetic.choices import Shape
from attnlab.data.synthetic.derivation import Derivation
from attnlab.data.synthetic.draws import Draws
from attnlab.data.synthetic.lexicon import BE, Gender, Tense
from attnlab.data.synthetic.syntax import Determiner, NounPhrase, Person, Pronoun


@pytest.fixture(scope="module")
def trees():
    derivation = Derivation(Draws(8))
    return [derivation.sentence() for _ in range(8_000)]


def clauses(node):
    """A clause with the relative and that-clauses in it."""
    yield node
    for phrase in phrases(node):
        if phrase.relative:
            yield from clauses(phrase.relative)
    if node.content:
        yield from clauses(node.content)


def phrases(clause):
    places = [place.noun_phrase for place in (clause.complement, clause.circumstance) if place]
    for phrase in (clause.subject, clause.object, clause.dative, *places):
        if isinstance(phrase, NounPhrase):
            yield phrase
            if phrase.owner:
                yield phrase.owner


def all_clauses(tree):
    return list(chain.from_iterable(clauses(clause) for clause in (tree.main, tree.second) if clause))


class FewWords(Draws):
    """Draws that take the first option most of the time, so that the same sources come up again and again."""

    def pick_early(self, options):
        return super().pick(options[:1] if self.chance(0.8) else options[:8])

    def pick(self, options):
        alike = isinstance(options[0], Shape) or self.chance(0.4)
        return super().pick(options) if alike else options[0]


def test_a_source_has_one_translation():
    derivation, translations, repeated = Derivation(FewWords(3)), {}, 0
    for _ in range(20_000):
        pair = render(derivation.sentence())
        repeated += pair.src in translations
        assert translations.setdefault(pair.src, pair) == pair
    assert repeated > 2_000


def test_no_sentence_is_drawn_twice_where_the_words_are_few(monkeypatch):
    monkeypatch.setattr(grammar, "Draws", FewWords)
    pairs = list(chain.from_iterable(grammar.generate(2, {"train": 4000, "dev": 500, "test": 500}).values()))
    assert len({pair.src for pair in pairs}) == len(pairs)
    assert len({pair.tgt for pair in pairs}) == len(pairs)  # her and their are both ihr


def test_a_noun_occurs_once_in_a_sentence(trees):
    for tree in trees:
        nouns = [phrase.noun.en for clause in all_clauses(tree) for phrase in phrases(clause)]
        assert len(nouns) == len(set(nouns))


def test_nothing_follows_the_relative_clause_of_an_object(trees):
    seen = 0
    for clause in chain.from_iterable(map(all_clauses, trees)):
        for argument in (clause.object, clause.dative):
            if isinstance(argument, NounPhrase) and argument.relative:
                seen += 1
                assert clause.complement is None
                assert clause.circumstance is None
                assert clause.content is None
                assert clause.adverb is None or clause.fronted or clause.adverb.preverbal
                assert argument is clause.object or clause.object is None
    assert seen > 100


def test_it_can_be_one_thing_of_the_clause_before_only(trees):
    """Kinds worked out here: what the clause around `it` accepts, against each thing that `it` could be."""
    contested = seen = 0
    for tree in trees:
        first, second = (tree.second, tree.main) if tree.second_first else (tree.main, tree.second)
        if not second:
            continue
        its = [part for part in (second.subject, second.object, second.dative)
               if isinstance(part, Pronoun) and part.person is Person.IT and part.antecedent]  # fmt: skip
        if not its:
            continue
        (it,) = its
        if it is second.subject:
            accepted = second.predicate.kinds if second.verb is BE else second.verb.subjects
        else:
            accepted = second.verb.objects
        things = [phrase for phrase in phrases(first) if not phrase.plural and (
            "P" not in phrase.noun.kinds or phrase.noun.gender is Gender.NEUTER)]  # fmt: skip
        possible = [phrase.noun.en for phrase in things if phrase.noun.kinds & accepted]
        assert possible == [it.antecedent.noun.en]
        assert it.antecedent.determiner not in (Determiner.NO, Determiner.EVERY)
        seen += 1
        contested += len(things) > 1
    assert seen > 1_500
    assert contested > 0.15 * seen


def test_negation_has_one_scope(trees):
    known = set(Determiner) - {Determiner.EVERY, Determiner.ALL, Determiner.MANY, Determiner.NO}
    for clause in chain.from_iterable(map(all_clauses, trees)):
        if clause.negated:
            assert not (clause.adverb and (clause.adverb.preverbal or clause.adverb.en[0] == "every"))
            assert clause.circumstance is None
            assert clause.modal is None or clause.modal.de != "muss"
            for phrase in phrases(clause):
                assert phrase.count is None
                assert phrase.determiner in known
        if isinstance(clause.subject, NounPhrase) and clause.subject.determiner is Determiner.NO:
            assert not clause.negated
            assert not (clause.adverb and clause.adverb.preverbal)


def test_tenses_go_together(trees):
    for tree in trees:
        tenses = {clause.tense for clause in (tree.main, tree.second) if clause}
        assert tenses in ({Tense.PAST}, {Tense.PRESENT}, {Tense.FUTURE}, {Tense.PRESENT, Tense.FUTURE})
        if tree.second and tree.link.subordinating:
            assert tree.second.tense is not Tense.FUTURE
            when = {("when", "als"): Tense.PAST, ("when", "wenn"): Tense.PRESENT}
            assert when.get((tree.link.en, tree.link.de), tree.second.tense) is tree.second.tense
        for clause in all_clauses(tree):
            assert clause.modal is None or clause.modal.tense is clause.tense
            assert clause.adverb is None or clause.tense in clause.adverb.tenses


def test_verbs_get_what_they_accept(trees):
    for clause in chain.from_iterable(map(all_clauses, trees)):
        if isinstance(clause.subject, NounPhrase):
            accepted = clause.predicate.kinds if clause.predicate else clause.verb.subjects
            assert clause.subject.noun.kinds & accepted
        if isinstance(clause.object, NounPhrase):
            assert clause.object.noun.kinds & clause.verb.objects
        for phrase in phrases(clause):
            assert not phrase.adjective or phrase.adjective.kinds & phrase.noun.kinds
            assert not (phrase.plural and phrase.noun.de_plural is None)
            assert phrase.plural or phrase.count is None


def test_a_stream_goes_on_where_it_was():
    together, apart = Derivation(Draws(9)), Derivation(Draws(9))
    first = [render(together.sentence()) for _ in range(20)]
    assert first == [render(apart.sentence()) for _ in range(20)]
    assert render(together.sentence()) not in first

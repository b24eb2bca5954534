"""Draws trees of the synchronous grammar: which phrases, clauses and sentences there are.

Three rules keep a source to one right translation. A noun occurs once in a sentence. `it` is drawn only
where its own clause tells the antecedent from every other thing in the clause before: "The cat sat on the
mat because it was tired" can only mean the cat, as no mat tires. And nothing of a main clause follows a
relative clause that it could be read into: "the book that the man bought yesterday" has the man buy
yesterday.
"""

from __future__ import annotations

from collections.abc import Sequence

from attnlab.data.synthetic import choices
from attnlab.data.synthetic import function_words as words
from attnlab.data.synthetic.choices import ANIMATE, ANY, PERSON, PLACE, Shape
from attnlab.data.synthetic.draws import Draws
from attnlab.data.synthetic.lexicon import BE, Adjective, Frame, Kinds, Link, Noun, Preposition, Tense, Verb
from attnlab.data.synthetic.syntax import (
    QUANTIFIERS,
    Argument,
    Clause,
    Determiner,
    NounPhrase,
    Person,
    PrepositionalPhrase,
    Pronoun,
    Relative,
    Sentence,
    kinds_of,
    noun_phrases,
    pronoun_of,
    taken_up,
)


class Derivation:
    """A stream of trees, one for each call of `sentence`."""

    def __init__(self, draws: Draws) -> None:
        self._pick, self._pick_early = draws.pick, draws.pick_early
        self._chance, self._below = draws.chance, draws.below
        self._used: list[Noun] = []  # in this sentence

    def sentence(self) -> Sentence:
        self._used = []
        tense = self._pick(choices.TENSES)
        match self._pick(choices.SENTENCES):
            case Shape.SIMPLE:
                return Sentence(self._clause(tense, adverb=0.5, fronting=True))
            case Shape.LINKED:
                return self._linked(tense)
            case Shape.REPORTED:
                return self._reported(tense)
            case Shape.RELATIVE:
                return self._with_relative(tense)

    # Phrases. `known`: definite and not counted, as negation and the German word order need it.

    def _noun(self, kinds: Kinds) -> Noun:
        options = choices.nouns_of(kinds)
        noun = self._pick_early(options)
        while noun in self._used:
            noun = self._pick_early(options)
        self._used.append(noun)
        return noun

    def _noun_phrase(
        self, kinds: Kinds, determiners: Sequence[Determiner], *, known: bool, plural: float = 0.3
    ) -> NounPhrase:
        noun = self._noun(kinds)
        phrase = NounPhrase(noun, Determiner.THE)
        if noun.de_plural is None:
            phrase.determiner = self._pick(choices.MASS)
            if known and phrase.determiner is Determiner.BARE:
                phrase.determiner = Determiner.THE
        elif self._chance(plural):
            phrase.plural = True
            phrase.determiner = self._pick(choices.KNOWN_PLURAL if known else choices.PLURAL)
            if not known and self._chance(0.4):
                phrase.determiner = self._pick(choices.COUNTED)
                phrase.count = 2 + self._below(11 if self._chance(0.7) else 98)
        else:
            phrase.determiner = self._pick(choices.KNOWN if known else determiners)
            if noun.kinds & choices.OWNED and phrase.determiner is Determiner.THE and self._chance(0.2):
                phrase.owner = NounPhrase(self._noun(PERSON), self._pick(choices.OWNER))
        if self._chance(0.35):
            phrase.adjective = self._pick_early(choices.adjectives_of(noun.kinds))
        return phrase

    def _person(self, people: tuple[Person, ...], share: float, kinds: Kinds) -> Pronoun | None:
        """A personal pronoun that takes up no one, where someone can stand."""
        return Pronoun(self._pick(people)) if "P" in kinds and self._chance(share) else None

    def _subject(self, kinds: Kinds, *, known: bool) -> Argument:
        people = (Person.I, Person.WE, Person.HE, Person.SHE, Person.THEY)
        return self._person(people, 0.15, kinds) or self._noun_phrase(kinds, choices.SUBJECT, known=known)

    def _object(self, kinds: Kinds, *, negated: bool) -> Argument:
        pronoun = self._person((Person.HE, Person.SHE, Person.THEY), 0.1, kinds)
        if pronoun:
            return pronoun
        phrase = self._noun_phrase(kinds, choices.OBJECT, known=negated)
        if negated and not phrase.owner and self._chance(0.65):  # not a, kein
            bare = phrase.plural or phrase.noun.de_plural is None
            phrase.determiner = Determiner.BARE if bare else Determiner.A
        return phrase

    def _prepositional(
        self, options: Sequence[tuple[Preposition, Kinds]], *, known: bool = False
    ) -> PrepositionalPhrase:
        preposition, kinds = self._pick(options)
        phrase = self._noun_phrase(kinds, choices.OBJECT, known=known, plural=0.12)
        return PrepositionalPhrase(preposition, phrase)

    # Clauses

    def _verb(self, subject: Kinds) -> Verb:
        while True:
            frame = self._pick(choices.FRAMES)
            if frame is Frame.COPULA:
                return BE
            options = choices.verbs_of(frame, subject)
            if options:
                return self._pick_early(options)

    def _clause(
        self,
        tense: Tense,
        *,
        subject: Argument | None = None,
        kinds: Kinds = ANY,
        verb: Verb | None = None,
        given: Argument | None = None,
        predicate: Adjective | None = None,
        adverb: float = 0.15,
        fronting: bool = False,
    ) -> Clause:
        """A clause around what there is already: a subject of these kinds, a verb, its object (`given`)."""
        verb = verb or self._verb(kinds)
        if verb is BE:
            predicate = predicate or self._pick_early(choices.adjectives_of(kinds))
        negated = self._chance(0.2)
        if subject is None:
            kinds = predicate.kinds if predicate else verb.subjects
            subject = self._subject(kinds, known=negated)
            if predicate and isinstance(subject, NounPhrase):
                subject.adjective = None  # no cheap cars are expensive
        clause = Clause(subject, verb, tense, negated=negated, predicate=predicate)
        self._complete(clause, given)
        self._adorn(clause, adverb, fronting)
        return clause

    def _complete(self, clause: Clause, given: Argument | None) -> None:
        """Add what the verb's frame asks for."""
        verb, known = clause.verb, clause.negated
        match verb.frame:
            case Frame.TRANSITIVE:
                clause.object = given or self._object(verb.objects, negated=known)
            case Frame.DATIVE:
                clause.dative = given or self._object(verb.objects, negated=known)
            case Frame.DITRANSITIVE:
                pronoun = self._person((Person.HE, Person.SHE, Person.THEY), 0.2, PERSON)
                clause.dative = pronoun or self._noun_phrase(PERSON, choices.KNOWN, known=True)
                clause.object = given or self._object(verb.objects, negated=known)
            case Frame.PLACING:
                clause.object = given or self._noun_phrase(verb.objects, choices.OBJECT, known=known)
                clause.complement = self._prepositional(words.PLACES, known=known)
            case Frame.MOTION:
                options = choices.prepositions_of(words.DIRECTIONS, verb.objects)
                clause.complement = self._prepositional(options, known=known)
            case Frame.POSITION:
                options = choices.prepositions_of(words.LOCATIONS, verb.objects)
                clause.complement = self._prepositional(options, known=known)
            case Frame.PREPOSITIONAL:
                assert verb.preposition is not None
                clause.complement = self._prepositional(((verb.preposition, verb.objects),), known=known)

    def _adorn(self, clause: Clause, adverb: float, fronting: bool) -> None:
        """Add a modal, an adverb and a free prepositional phrase, each now and then."""
        subject, tense = clause.subject, clause.tense
        kinds = kinds_of(subject)
        if tense is not Tense.FUTURE and kinds & ANIMATE and self._chance(0.16):
            clause.modal = self._pick(choices.modals_of(tense, clause.negated))
        if self._chance(adverb):
            no_one = isinstance(subject, NounPhrase) and subject.determiner is Determiner.NO
            preverbal = tense is not Tense.FUTURE and not clause.negated and not no_one and self._chance(0.25)
            clause.adverb = self._pick_early(choices.adverbs_of(tense, preverbal, clause.negated))
            clause.fronted = fronting and not preverbal and self._chance(0.6)
        if clause.verb.frame in choices.WITH_CIRCUMSTANCE and not clause.negated and self._chance(0.3):
            accompanied = clause.verb.frame is not Frame.INTRANSITIVE  # not "slept with"
            if "P" in kinds and accompanied and self._chance(0.5):
                clause.circumstance = self._prepositional(((self._pick(words.COMPANIONS), PERSON),))
            elif kinds & ANIMATE and "B" not in clause.verb.objects:
                clause.circumstance = self._prepositional(((words.IN, PLACE),))

    # Sentences

    def _linked(self, tense: Tense) -> Sentence:
        if self._chance(0.3):
            link = self._pick(choices.COORDINATORS)
            first = self._clause(tense, adverb=0.3, fronting=True)
            return Sentence(first, link, self._second(first, tense, link))
        link = self._pick(choices.SUBORDINATORS[tense])
        # Because it is cheap, he will buy it: the subordinate clause has no future.
        subordinate_tense = Tense.PRESENT if tense is Tense.FUTURE else tense
        subordinate_first = self._chance(0.35)
        if subordinate_first:
            subordinate = self._clause(subordinate_tense)
            main = self._second(subordinate, tense, link)
        else:
            main = self._clause(tense, adverb=0.3, fronting=True)
            subordinate = self._second(main, subordinate_tense, link)
        if link is words.BEFORE:
            subordinate.negated = False  # what does not happen has no time before it
        return Sentence(main, link, subordinate, second_first=subordinate_first)

    def _second(self, first: Clause, tense: Tense, link: Link) -> Clause:
        """The clause spoken after `first`: with an it, about the same subject, the weather or new things."""
        for _ in range(3 if self._chance(0.85) else 0):
            clause = self._anaphoric(first, tense, link)
            if clause:
                return clause
        if link.subordinating and self._chance(0.1):
            verb = self._pick_early(choices.verbs_of(Frame.WEATHER, Kinds("-")))
            return Clause(Pronoun(Person.IT), verb, tense)
        subject = taken_up(first.subject)
        if subject and self._chance(0.6):
            return self._clause(tense, subject=subject, kinds=kinds_of(first.subject))
        return self._clause(tense)

    def _anaphoric(self, first: Clause, tense: Tense, link: Link) -> Clause | None:
        """A clause whose it can be only one thing of the first clause; None where this draw finds none."""
        things = [phrase for phrase in noun_phrases(first) if pronoun_of(phrase).person is Person.IT]
        candidates = [phrase for phrase in noun_phrases(first, owners=False)
                      if phrase in things and phrase.determiner not in QUANTIFIERS]  # fmt: skip
        if not candidates:
            return None
        antecedent = self._pick(candidates)
        it, kinds = pronoun_of(antecedent), antecedent.noun.kinds
        rivals = Kinds().union(*(phrase.noun.kinds for phrase in things if phrase is not antecedent))
        if self._chance(0.4):
            frame = self._pick((Frame.TRANSITIVE, Frame.TRANSITIVE, Frame.DATIVE, Frame.DITRANSITIVE))
            verbs = choices.verbs_taking(frame, kinds, rivals)
            if not verbs:
                return None
            someone = "P" in kinds_of(first.subject) and self._chance(0.7)
            same = taken_up(first.subject) if someone else None
            subject = same or self._noun_phrase(PERSON, choices.KNOWN, known=True)
            return self._clause(tense, subject=subject, verb=self._pick_early(verbs), given=it)
        if self._chance(0.6) and link is not words.BEFORE:
            adjectives = choices.adjectives_of(kinds, rivals)
            if not adjectives:
                return None
            antecedent.adjective = None  # no red car is green
            return self._clause(tense, subject=it, verb=BE, predicate=self._pick_early(adjectives))
        verbs = choices.verbs_of(self._pick(choices.FRAMES), kinds, rivals)
        return self._clause(tense, subject=it, verb=self._pick_early(verbs)) if verbs else None

    def _reported(self, tense: Tense) -> Sentence:
        verb = self._pick_early(choices.verbs_of(Frame.CONTENT, PERSON))
        main_tense = Tense.PRESENT if tense is Tense.FUTURE else tense  # he hopes that it will rain
        clause = self._clause(main_tense, verb=verb, adverb=0.2, fronting=True)
        clause.content = self._clause(tense)
        return Sentence(clause)

    def _with_relative(self, tense: Tense) -> Sentence:
        clause = self._clause(tense, adverb=0.4, fronting=True)
        arguments: list[Argument | None] = [clause.subject]
        if clause.complement is None and clause.circumstance is None:  # nothing may follow an object's
            arguments += [clause.dative if clause.object is None else clause.object]
        heads = [phrase for phrase in arguments if isinstance(phrase, NounPhrase) and not phrase.owner]
        if heads:
            head = self._pick(heads)
            if head is not clause.subject and clause.adverb and not clause.adverb.preverbal:
                clause.fronted = True
            head.relative = self._relative(head, Tense.PRESENT if tense is Tense.FUTURE else tense)
            if head.relative.predicate:
                head.adjective = None
        return Sentence(clause)

    def _relative(self, head: NounPhrase, tense: Tense) -> Clause:
        kinds = head.noun.kinds
        if self._chance(0.5):
            return self._clause(tense, subject=Relative(head), kinds=kinds)
        frame = self._pick((Frame.TRANSITIVE, Frame.TRANSITIVE, Frame.DATIVE))
        verbs = choices.verbs_taking(frame, kinds) or choices.verbs_taking(Frame.TRANSITIVE, kinds)
        return self._clause(tense, verb=self._pick_early(verbs), given=Relative(head))

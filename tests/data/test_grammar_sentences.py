"""Trees built by hand against English and German written by hand: some for each phenomenon."""

from functools import partial

import pytest

from attnlab.data.grammar import render
from attnlab.data.synthetic import function_words as words
from attnlab.data.synthetic.lexicon import ADJECTIVES, BE, NOUNS, VERBS, Tense
from attnlab.data.synthetic.syntax import (
    Clause,
    NounPhrase,
    Person,
    PrepositionalPhrase,
    Pronoun,
    Relative,
    Sentence,
    pronoun_of,
)
from attnlab.data.synthetic.syntax import Determiner as D

PRESENT, PAST, FUTURE = Tense.PRESENT, Tense.PAST, Tense.FUTURE
ADVERBS = {" ".join(adverb.en): adverb for adverb in words.ADVERBS}


def np(text, *, count=None, owner=None):
    """A noun phrase from its English: "these old dogs", "cold milk"."""
    *modifiers, last = text.split()
    plurals = {noun.en_plural: noun for noun in NOUNS.values() if noun.de_plural}
    determiner = D.BARE
    if modifiers and modifiers[0] not in ADJECTIVES:
        first = modifiers.pop(0)
        determiner = {"an": D.A, "these": D.THIS}.get(first) or D(first)
    adjective = ADJECTIVES[modifiers[0]] if modifiers else None
    noun = plurals[last] if last in plurals else NOUNS[last]
    return NounPhrase(noun, determiner, last in plurals, count=count, adjective=adjective, owner=owner)


def pp(preposition, phrase):
    return PrepositionalPhrase(preposition, phrase)


def clause(subject, verb, tense, **rest):
    adverb = ADVERBS[rest.pop("adverb")] if "adverb" in rest else None
    modal = words.MODALS[rest.pop("modal")] if "modal" in rest else None
    return Clause(subject, BE if verb == "be" else VERBS[verb], tense, adverb=adverb, modal=modal, **rest)


def both(tree):
    pair = render(tree if isinstance(tree, Sentence) else Sentence(tree))
    return pair.src, pair.tgt


def linked(first, link, second, **order):
    return Sentence(first, link, second, **order)


he, she, they, we, i = (partial(Pronoun, Person(person)) for person in ("he", "she", "they", "we", "I"))


def test_genders_and_cases_with_strong_weak_and_mixed_adjectives():
    assert both(
        clause(np("the old man"), "give", PAST, dative=np("a small child"), object=np("the red apple"))
    ) == ("The old man gave a small child the red apple.",
          "Der alte Mann hat den roten Apfel einem kleinen Kind gegeben.")  # fmt: skip
    assert both(clause(np("a tired cat"), "drink", PRESENT, object=np("cold milk"))) == (
        "A tired cat drinks cold milk.",
        "Eine müde Katze trinkt kalte Milch.",
    )
    assert both(clause(np("my old friend"), "drink", PRESENT, object=np("cold beer"))) == (
        "My old friend drinks cold beer.",
        "Mein alter Freund trinkt kaltes Bier.",
    )
    assert both(clause(np("every small dog"), "see", PRESENT, object=np("an expensive dress"))) == (
        "Every small dog sees an expensive dress.",
        "Jeder kleine Hund sieht ein teures Kleid.",
    )
    assert both(clause(np("many rich women"), "help", PAST, dative=np("our poor children"))) == (
        "Many rich women helped our poor children.",
        "Viele reiche Frauen haben unseren armen Kindern geholfen.",
    )
    assert both(clause(np("all young students"), "meet", PAST, object=np("this honest soldier"))) == (
        "All young students met this honest soldier.",
        "Alle jungen Studenten haben diesen ehrlichen Soldaten getroffen.",
    )
    assert both(clause(np("no brave bear"), "follow", PAST, dative=np("hungry wolves"))) == (
        "No brave bear followed hungry wolves.",
        "Kein mutiger Bär ist hungrigen Wölfen gefolgt.",
    )
    assert both(clause(np("these dark cellars"), "be", PRESENT, predicate=ADJECTIVES["famous"])) == (
        "These dark cellars are famous.",
        "Diese dunklen Keller sind berühmt.",
    )


def test_genitive_owners():
    assert both(clause(np("the old car", owner=np("my brother")), "burn", PRESENT)) == (
        "My brother's old car burns.",
        "Das alte Auto meines Bruders brennt.",
    )
    sentence = clause(
        np("the dog", owner=np("the student")), "love", PRESENT, object=np("the ball", owner=np("her aunt"))
    )
    assert both(sentence) == (
        "The student's dog loves her aunt's ball.",
        "Der Hund des Studenten liebt den Ball ihrer Tante.",
    )
    assert (
        both(clause(np("the cat", owner=np("a child")), "sleep", PAST))[1]
        == "Die Katze eines Kindes hat geschlafen."
    )


def test_verb_second_with_a_fronted_adverbial():
    assert both(
        clause(np("the woman"), "buy", PAST, object=np("a lamp"), adverb="yesterday", fronted=True)
    ) == ("Yesterday the woman bought a lamp.", "Gestern hat die Frau eine Lampe gekauft.")
    assert both(clause(i(), "see", PRESENT, object=np("the king"), adverb="every day", fronted=True)) == (
        "Every day I see the king.",
        "Jeden Tag sehe ich den König.",
    )
    assert both(clause(we(), "sing", FUTURE, adverb="tomorrow", fronted=True)) == (
        "Tomorrow we will sing.",
        "Morgen werden wir singen.",
    )


def test_time_stands_between_what_is_known_and_what_is_new():
    known = clause(np("the man"), "find", PAST, object=np("the key"), adverb="last week")
    new = clause(np("the man"), "find", PAST, object=np("a key"), adverb="last week")
    assert both(known) == (
        "The man found the key last week.",
        "Der Mann hat den Schlüssel letzte Woche gefunden.",
    )
    assert both(new) == (
        "The man found a key last week.",
        "Der Mann hat letzte Woche einen Schlüssel gefunden.",
    )
    often = clause(np("the man"), "buy", PRESENT, object=np("a hat"), adverb="often")
    assert both(often) == ("The man often buys a hat.", "Der Mann kauft oft einen Hut.")


def test_perfect_with_haben_and_sein_and_the_verbal_bracket():
    went = clause(np("the boys"), "go", PAST, complement=pp(words.INTO, np("the old house")))
    assert both(went) == ("The boys went into the old house.", "Die Jungen sind ins alte Haus gegangen.")
    come = clause(i(), "come back", PAST, adverb="two days ago")
    assert both(come) == ("I came back two days ago.", "Ich bin vor zwei Tagen zurückgekommen.")
    lost = clause(i(), "lose", PAST, object=np("my new umbrella"))
    assert both(lost) == ("I lost my new umbrella.", "Ich habe meinen neuen Regenschirm verloren.")
    assert both(clause(he(), "repair", PAST, object=np("the clock"))) == (
        "He repaired the clock.",
        "Er hat die Uhr repariert.",
    )
    assert both(clause(she(), "play", PRESENT, object=np("the violin")))[1] == "Sie spielt die Geige."
    assert both(clause(i(), "play", PRESENT, object=np("the violin")))[1] == "Ich spiele die Geige."


def test_separable_verbs():
    lamp = {"object": np("the lamp")}
    assert both(clause(np("the nurse"), "turn on", PRESENT, adverb="in the evening", **lamp)) == (
        "The nurse turns on the lamp in the evening.",
        "Die Krankenschwester schaltet die Lampe am Abend ein.",
    )
    assert (
        both(clause(she(), "turn off", PAST, object=np("the lamp")))[1] == "Sie hat die Lampe ausgeschaltet."
    )
    assert (
        both(clause(she(), "turn off", FUTURE, object=np("the lamp")))[1] == "Sie wird die Lampe ausschalten."
    )
    assert both(clause(she(), "invite", PRESENT, object=he())) == ("She invites him.", "Sie lädt ihn ein.")
    assert (
        both(clause(he(), "throw away", PRESENT, object=np("the letters")))[1] == "Er wirft die Briefe weg."
    )
    joined = linked(clause(they(), "laugh", PRESENT), words.BECAUSE,
                    clause(he(), "open", PRESENT, object=np("the door")))  # fmt: skip
    assert both(joined) == ("They laugh because he opens the door.", "Sie lachen, weil er die Tür aufmacht.")


def test_the_english_particle_moves_around_a_pronoun():
    radio = np("the radio")
    first = clause(np("the man"), "find", PAST, object=radio)
    moved = linked(first, words.AND, clause(he(), "turn on", PAST, object=pronoun_of(radio)))
    assert both(moved) == (
        "The man found the radio, and he turned it on.",
        "Der Mann hat das Radio gefunden und er hat es eingeschaltet.",
    )
    ring = np("the ring")
    first = clause(np("the man"), "lose", PAST, object=ring)
    stays = linked(first, words.BUT, clause(he(), "look for", PAST, object=pronoun_of(ring)))
    assert both(stays) == (
        "The man lost the ring, but he looked for it.",
        "Der Mann hat den Ring verloren, aber er hat ihn gesucht.",
    )


def test_verb_final_subordinate_clauses():
    cause = clause(he(), "buy", PRESENT, modal="want to", object=np("a car"), adverb="today")
    assert both(linked(clause(np("the father"), "work", PRESENT, complement=pp(words.IN, np("the city"))),
                       words.BECAUSE, cause)) == (
        "The father works in the city because he wants to buy a car today.",
        "Der Vater arbeitet in der Stadt, weil er heute ein Auto kaufen will.",
    )  # fmt: skip
    once = linked(
        clause(np("the dog"), "sleep", PAST), words.WHEN_ONCE, clause(np("the guests"), "arrive", PAST)
    )
    assert both(once) == (
        "The dog slept when the guests arrived.",
        "Der Hund hat geschlafen, als die Gäste angekommen sind.",
    )
    first = linked(
        clause(he(), "sing", PRESENT),
        words.WHEN,
        clause(Pronoun(Person.IT), "rain", PRESENT),
        second_first=True,
    )
    assert both(first) == ("When it rains, he sings.", "Wenn es regnet, singt er.")
    before = linked(
        clause(we(), "dance", PAST), words.BEFORE, clause(she(), "be", PAST, predicate=ADJECTIVES["tired"])
    )
    assert both(before) == ("We danced before she was tired.", "Wir haben getanzt, bevor sie müde war.")


def test_that_clauses():
    said = clause(np("the lawyer"), "say", PAST, adverb="yesterday",
                  content=clause(np("the thief"), "steal", PAST, object=np("the ring")))  # fmt: skip
    assert both(said) == (
        "The lawyer said yesterday that the thief stole the ring.",
        "Der Anwalt hat gestern gesagt, dass der Dieb den Ring gestohlen hat.",
    )
    hope = clause(i(), "hope", PRESENT, content=clause(Pronoun(Person.IT), "snow", FUTURE))
    assert both(hope) == ("I hope that it will snow.", "Ich hoffe, dass es schneien wird.")


def test_relative_clauses_in_every_case():
    man = np("the man")
    man.relative = clause(Relative(man), "buy", PAST, object=np("the house"))
    assert both(clause(man, "be", PRESENT, predicate=ADJECTIVES["rich"])) == (
        "The man who bought the house is rich.",
        "Der Mann, der das Haus gekauft hat, ist reich.",
    )
    ball = np("the ball")
    ball.relative = clause(np("the cat"), "lose", PAST, object=Relative(ball))
    assert both(clause(she(), "find", PAST, object=ball)) == (
        "She found the ball that the cat lost.",
        "Sie hat den Ball, den die Katze verloren hat, gefunden.",
    )
    women = np("the women")
    women.relative = clause(he(), "help", PAST, dative=Relative(women))
    assert both(clause(women, "smile", PRESENT)) == (
        "The women who he helped smile.",
        "Die Frauen, denen er geholfen hat, lächeln.",
    )
    dog = np("the dog")
    dog.relative = clause(Relative(dog), "sleep", PRESENT)
    shared_comma = linked(
        clause(he(), "hear", PRESENT, object=dog), words.BECAUSE, clause(he(), "wake up", PRESENT)
    )
    assert both(shared_comma) == (
        "He hears the dog that sleeps because he wakes up.",
        "Er hört den Hund, der schläft, weil er aufwacht.",
    )
    aunt = np("an aunt")
    aunt.relative = clause(he(), "thank", PRESENT, dative=Relative(aunt))
    assert both(clause(aunt, "laugh", PRESENT))[1] == "Eine Tante, der er dankt, lacht."


@pytest.mark.parametrize(
    ("thing", "nominative", "accusative"),
    [("the dog", "er", "ihn"), ("the cat", "sie", "sie"), ("the horse", "es", "es"), ("the chair", "er", "ihn"),
     ("the lamp", "sie", "sie"), ("the child", "es", "es")],
)  # fmt: skip
def test_it_has_the_gender_of_its_antecedent(thing, nominative, accusative):
    antecedent = np(thing)
    tree = linked(clause(np("the woman"), "see", PAST, object=antecedent), words.BECAUSE,
                  clause(pronoun_of(antecedent), "be", PAST, predicate=ADJECTIVES["old"]))  # fmt: skip
    assert render(tree).src == f"The woman saw {thing} because it was old."
    assert render(tree).tgt.endswith(f", weil {nominative} alt war.")
    antecedent = np(thing)
    tree = linked(clause(np("the woman"), "see", PAST, object=antecedent), words.BECAUSE,
                  clause(he(), "look for", PAST, object=pronoun_of(antecedent)))  # fmt: skip
    assert render(tree).tgt.endswith(f", weil er {accusative} gesucht hat.")
    assert render(tree).antecedent == (9, 4)
    assert render(tree).src.split()[9].rstrip(".") == "it"


def test_the_cat_on_the_mat():
    cat = np("the cat")
    tree = linked(clause(cat, "sit", PAST, complement=pp(words.ON, np("the mat"))), words.BECAUSE,
                  clause(pronoun_of(cat), "be", PAST, predicate=ADJECTIVES["tired"]))  # fmt: skip
    pair = render(tree)
    assert pair.src == "The cat sat on the mat because it was tired."
    assert pair.tgt == "Die Katze hat auf der Matte gesessen, weil sie müde war."
    assert pair.antecedent == (7, 1)
    by_hand = ((0, 0), (1, 1), (2, 2), (2, 6), (3, 3), (4, 4), (5, 5), (6, 7), (7, 8), (8, 10), (9, 9))
    assert pair.alignment == by_hand


def test_gold_alignment_of_reordering_written_by_hand():
    tree = clause(np("the teacher"), "pick up", PAST, negated=True, object=np("a child"), adverb="a week ago")
    pair = render(Sentence(tree))
    assert pair.src == "The teacher did not pick up a child a week ago."
    assert pair.tgt == "Der Lehrer hat vor einer Woche kein Kind abgeholt."
    # did-hat, not-kein, pick-abgeholt, up-abgeholt, a-kein, child-Kind, a-einer, week-Woche, ago-vor
    by_hand = {(0, 0), (1, 1), (2, 2), (3, 6), (4, 8), (5, 8), (6, 6), (7, 7), (8, 4), (9, 5), (10, 3)}
    assert set(pair.alignment) == by_hand
    present = render(Sentence(clause(they(), "turn on", PRESENT, object=np("the lamp"))))
    assert (present.src, present.tgt) == ("They turn on the lamp.", "Sie schalten die Lampe ein.")
    assert set(present.alignment) == {(0, 0), (1, 1), (2, 4), (3, 2), (4, 3)}
    garden = render(
        Sentence(
            clause(she(), "wait for", FUTURE, complement=pp(VERBS["wait for"].preposition, np("the bus")))
        )
    )
    assert (garden.src, garden.tgt) == ("She will wait for the bus.", "Sie wird auf den Bus warten.")
    assert set(garden.alignment) == {(0, 0), (1, 1), (2, 5), (3, 2), (4, 3), (5, 4)}
    owner = render(Sentence(clause(np("the old dog", owner=np("the king")), "sleep", PRESENT)))
    assert (owner.src, owner.tgt) == ("The king's old dog sleeps.", "Der alte Hund des Königs schläft.")
    assert set(owner.alignment) == {(0, 3), (1, 0), (1, 4), (2, 1), (3, 2), (4, 5)}


def test_nicht_and_kein():
    def negated(subject, verb, tense, **rest):
        return both(clause(subject, verb, tense, negated=True, **rest))

    assert negated(np("the man"), "see", PRESENT, object=np("the dog")) == (
        "The man does not see the dog.", "Der Mann sieht den Hund nicht.")  # fmt: skip
    assert negated(np("the man"), "see", PAST, object=np("a dog")) == (
        "The man did not see a dog.", "Der Mann hat keinen Hund gesehen.")  # fmt: skip
    assert negated(we(), "drink", PRESENT, object=np("milk")) == (
        "We do not drink milk.",
        "Wir trinken keine Milch.",
    )
    assert negated(we(), "buy", PAST, object=np("old books")) == (
        "We did not buy old books.", "Wir haben keine alten Bücher gekauft.")  # fmt: skip
    assert negated(he(), "be", PRESENT, predicate=ADJECTIVES["sick"]) == (
        "He is not sick.",
        "Er ist nicht krank.",
    )
    assert negated(he(), "go", PAST, complement=pp(words.TO, np("the doctor"))) == (
        "He did not go to the doctor.", "Er ist nicht zum Arzt gegangen.")  # fmt: skip
    assert negated(he(), "close", PRESENT, object=np("the window")) == (
        "He does not close the window.", "Er macht das Fenster nicht zu.")  # fmt: skip
    assert negated(he(), "see", PRESENT, modal="can", object=she()) == (
        "He cannot see her.",
        "Er kann sie nicht sehen.",
    )
    assert negated(he(), "see", PRESENT, modal="want to", object=she()) == (
        "He does not want to see her.", "Er will sie nicht sehen.")  # fmt: skip
    assert negated(they(), "help", PAST, modal="had to", dative=np("a thief")) == (
        "They did not have to help a thief.", "Sie mussten keinem Dieb helfen.")  # fmt: skip
    assert negated(i(), "give", PAST, dative=np("the woman"), object=np("the book"), adverb="yesterday") == (
        "I did not give the woman the book yesterday.",
        "Ich habe der Frau das Buch gestern nicht gegeben.",
    )


def test_numbers():
    assert both(clause(np("the small birds", count=2), "fall asleep", PAST)) == (
        "The two small birds fell asleep.",
        "Die zwei kleinen Vögel sind eingeschlafen.",
    )
    many = np("red flowers", count=25)
    assert both(clause(she(), "buy", PAST, object=many)) == (
        "She bought twenty-five red flowers.",
        "Sie hat fünfundzwanzig rote Blumen gekauft.",
    )
    with_three = pp(words.WITH, np("young friends", count=3))
    assert (
        both(clause(she(), "dance", PAST, circumstance=with_three))[1]
        == "Sie hat mit drei jungen Freunden getanzt."
    )


def test_the_verb_decides_the_case_after_a_two_way_preposition():
    where = clause(np("the mouse"), "sit", PAST, complement=pp(words.UNDER, np("the table")))
    whither = clause(np("the mouse"), "run", PAST, complement=pp(words.TO_UNDER, np("the table")))
    assert both(where) == ("The mouse sat under the table.", "Die Maus hat unter dem Tisch gesessen.")
    assert both(whither) == ("The mouse ran under the table.", "Die Maus ist unter den Tisch gelaufen.")
    put = clause(she(), "place", PAST, object=np("the cup"), complement=pp(words.PUT_ON, np("a shelf")))
    assert both(put) == ("She placed the cup on a shelf.", "Sie hat die Tasse auf ein Regal gelegt.")


def test_contractions():
    def place(verb, preposition, noun):
        return both(clause(he(), verb, PRESENT, complement=pp(preposition, np(noun))))[1]

    assert place("live", words.IN, "the castle") == "Er wohnt im Schloss."
    assert place("live", words.IN, "the old castle") == "Er wohnt im alten Schloss."
    assert place("go", words.INTO, "the room") == "Er geht ins Zimmer."
    assert place("go", words.TO, "the queen") == "Er geht zur Königin."
    assert place("go", words.TO, "the kings") == "Er geht zu den Königen."
    assert place("dream of", VERBS["dream of"].preposition, "the lamb") == "Er träumt vom Lamm."
    assert place("think of", VERBS["think of"].preposition, "the child") == "Er denkt ans Kind."
    assert (
        place("talk about", VERBS["talk about"].preposition, "the story") == "Er spricht über die Geschichte."
    )


def test_pronoun_objects_stand_first_the_accusative_before_the_dative():
    key = np("the key")
    tree = linked(clause(np("the boy"), "find", PAST, object=key), words.AND,
                  clause(he(), "give", PAST, object=pronoun_of(key), dative=she()))  # fmt: skip
    assert both(tree) == (
        "The boy found the key, and he gave it to her.",
        "Der Junge hat den Schlüssel gefunden und er hat ihn ihr gegeben.",
    )
    assert both(clause(np("the boy"), "help", PAST, dative=they(), adverb="today")) == (
        "The boy helped them today.",
        "Der Junge hat ihnen heute geholfen.",
    )

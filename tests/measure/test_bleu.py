import logging
import math

import pytest
import sacrebleu

from attnlab.config import Protocol
from attnlab.errors import UserError
from attnlab.measure.bleu import score

HYPOTHESES = [
    "Ein Mann in einem blauen Hemd steht auf einer Leiter.",
    "Zwei hunde spielen im Schnee!",
    "Eine Frau, die lacht, sitzt am Tisch.",
    "Kinder laufen",
]
REFERENCES = [
    "Ein Mann in einem blauen Hemd steht auf einer Leiter und putzt ein Fenster.",
    "Zwei Hunde spielen im tiefen Schnee.",
    "Eine lachende Frau sitzt am Tisch.",
    "Kinder laufen auf einer Wiese.",
]


def test_bleu_equals_its_formula():
    """Papineni et al. 2002 by hand: 5 of 6, 3 of 5, 2 of 4 and 1 of 3 n-grams; 6 tokens for 8."""
    result = score(["the cat sat on the mat"], ["the cat sat on a mat of straw"])
    precision = (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** (1 / 4)
    assert result.bleu == pytest.approx(100 * precision * math.exp(1 - 8 / 6))
    assert result.length_ratio == pytest.approx(6 / 8)


def test_scores_equal_sacrebleus_own_functions():
    result = score(HYPOTHESES, REFERENCES)
    assert result.bleu == pytest.approx(sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score)
    lower = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], lowercase=True).score
    assert result.bleu_lower == pytest.approx(lower)
    assert result.bleu_lower > result.bleu
    assert result.chrf == pytest.approx(sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score)
    assert result.warnings == []


def test_signatures_name_case_tokeniser_smoothing_and_version():
    signatures = score(HYPOTHESES, REFERENCES).signatures
    version = sacrebleu.__version__
    assert signatures["bleu"] == f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{version}"
    assert signatures["bleu_lower"] == f"nrefs:1|case:lc|eff:no|tok:13a|smooth:exp|version:{version}"
    assert signatures["chrf"].startswith("nrefs:1|case:mixed")


def test_metric_names_carry_split_and_protocol():
    metrics = score(["a b c d", "", "a b c d", "e"], [*REFERENCES[:3], REFERENCES[0]]).metrics(
        Protocol.cached
    )
    names = ["bleu", "bleu_lower", "chrf", "length_ratio", "empty", "distinct", "tied", "sentences"]
    assert list(metrics) == [f"test/cached/{name}" for name in names]
    assert metrics["test/cached/empty"] == 0.25
    assert metrics["test/cached/distinct"] == 0.75
    assert metrics["test/cached/tied"] == 0.5
    assert metrics["test/cached/sentences"] == 4
    assert all(type(value) is float for value in metrics.values())


def sentencepieces(line):
    return " ".join("▁" + word[:2] + (" " + word[2:] if word[2:] else "") for word in line.split())


def subword_nmt(line):
    return " ".join(word[:2] + ("@@ " + word[2:] if word[2:] else "") for word in line.split())


@pytest.mark.parametrize("pieces", [sentencepieces, subword_nmt])
def test_R19_subword_pieces_are_refused(pieces):
    with pytest.raises(
        UserError, match=r"translations of the test set: got subword pieces .* allowed: detokenised"
    ):
        score([pieces(line) for line in HYPOTHESES], REFERENCES)
    with pytest.raises(UserError, match="references of the test set: got subword pieces"):
        score(HYPOTHESES, [pieces(line) for line in REFERENCES])


def test_R19_a_stray_mark_in_real_text_is_text():
    lines = ["Das Zeichen ▁ trennt Wörter.", "Er schrieb @@ an den Rand.", *REFERENCES * 10]
    assert score(lines, lines).bleu == 100


def test_R19_text_with_spaced_full_stops_is_warned_about(caplog):
    spaced = [line.replace(".", " .") for line in REFERENCES]
    with caplog.at_level(logging.WARNING):
        result = score(spaced * 40, REFERENCES * 40)
    assert result.warnings == ["160 of 160 translations end in ' .': text that looks tokenised inflates BLEU"]
    assert caplog.records == []  # sacrebleu's own log of it is off: the warning is part of the result
    assert "references" in score(HYPOTHESES, spaced).warnings[0]


def test_R21_identical_text_is_exactly_100():
    result = score(REFERENCES * 25, REFERENCES * 25)
    assert (result.bleu, result.bleu_lower, result.chrf, result.length_ratio) == (100, 100, 100, 1)


def test_R21_all_empty_is_zero():
    result = score([""] * 4, REFERENCES)
    assert (result.bleu, result.bleu_lower, result.chrf, result.length_ratio) == (0, 0, 0, 0)
    assert (result.empty, result.distinct) == (1, 0.25)


def test_R21_one_empty_translation_counts_and_is_penalised():
    whole, one_less = score(REFERENCES, REFERENCES), score([*REFERENCES[:3], " "], REFERENCES)
    assert one_less.empty == 0.25
    hyp = sum(len(sacrebleu.BLEU().tokenizer(line).split()) for line in REFERENCES[:3])
    ref = hyp + len(sacrebleu.BLEU().tokenizer(REFERENCES[3]).split())
    assert one_less.bleu == pytest.approx(100 * math.exp(1 - ref / hyp))
    assert whole.bleu == 100


def test_R21_empty_references_are_reported_with_their_line():
    references = [REFERENCES[0], "", REFERENCES[2], "  "]
    assert score(HYPOTHESES, references).warnings == [
        "empty references (line 2, 4): no translation can match them"
    ]
    many = [*REFERENCES, *[""] * 14]
    assert "line 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 and 4 more" in score(many, many).warnings[0]
    with pytest.raises(UserError, match="got 2 empty lines"):
        score(["a", "b"], ["", " "])


def test_R21_a_set_too_short_for_4_grams_is_flagged():
    result = score(["Zwei Hunde", "ja"], ["Zwei Hunde", "ja"])
    assert result.bleu == 0
    assert result.warnings == ["no reference has 4 tokens (at most 2): too short for 4-gram BLEU"]


@pytest.mark.parametrize(("hypotheses", "references"), [([], []), (["a"], ["a", "b"]), (["a", "b"], ["a"])])
def test_counts_that_differ_are_an_error(hypotheses, references):
    with pytest.raises(ValueError, match=f"{len(hypotheses)} translations for {len(references)} references"):
        score(hypotheses, references)


def test_R21_references_without_a_token_are_one_sentence():
    """sacreBLEU drops the mark "<skipped>" from a text."""
    with pytest.raises(UserError, match="without a token"):
        score(["a b"], ["<skipped>"])

"""Beam search against brute force: every hypothesis of a hand-made model is listed and scored."""

import itertools
import math
import random

import pytest
import torch
from arms import CORRECT, random_sentences, small_model
from torch import Tensor

from attnlab.config import Protocol
from attnlab.data.tokenizer import BOS, EOS, PAD
from attnlab.measure.beam import beam_search, length_penalty
from attnlab.measure.decode import greedy
from attnlab.measure.scorers import scorers
from attnlab.model.incremental import Source

A, B, C = 4, 5, 6  # with EOS the four symbols
VOCABULARY, LONGEST = 7, 4
EXHAUSTIVE = 3**LONGEST * 4


class Table:
    """A model by hand: for each sentence and prefix, a probability for A, B, C and EOS (none for the others)."""

    def __init__(self, tables: list[dict[tuple[int, ...], dict[int, float]]]) -> None:
        self.tables, self.calls = tables, []

    def logits(self, prefix: Tensor) -> Tensor:
        self.calls.append(("logits", len(prefix)))
        logits = torch.full((len(prefix), VOCABULARY), -torch.inf, dtype=torch.float64)
        for row, tokens in enumerate(prefix.tolist()):
            assert tokens[0] == BOS
            if EOS in tokens:  # greedy search keeps it until enough others are done
                continue
            for token, p in self.tables[row][tuple(tokens[1:])].items():
                logits[row, token] = math.log(p)
        return logits

    def reorder(self, rows: Tensor) -> None:
        self.calls.append(("reorder", len(rows)))
        self.tables = [self.tables[row] for row in rows.tolist()]


def prefixes():
    return [text for n in range(LONGEST + 1) for text in itertools.product((A, B, C), repeat=n)]


def random_table(seed):
    generator = random.Random(seed)
    table = {}
    for prefix in prefixes():
        weights = [generator.random() ** 3 + 1e-3 for _ in range(4)]
        table[prefix] = {t: w / sum(weights) for t, w in zip((A, B, C, EOS), weights, strict=True)}
    return table


def log_prob(table, text):
    return sum(math.log(table[text[:t]][token]) for t, token in enumerate([*text, EOS]))


def gnmt(length, alpha):
    return (5 + length) ** alpha / (5 + 1) ** alpha


def brute_force(table, alpha):
    """(score, log P, text) of the best of all texts up to LONGEST pieces."""
    return max(
        (log_prob(table, text) / gnmt(len(text) + 1, alpha), log_prob(table, text), text)
        for text in prefixes()
    )


@pytest.mark.parametrize("alpha", [0, 0.6, 1, 3])
def test_R29_exhaustive_beam_equals_brute_force(alpha):
    tables = [random_table(seed) for seed in range(60)]
    found = beam_search(Table(tables), len(tables), EXHAUSTIVE, alpha, LONGEST, "cpu")
    for hypothesis, table in zip(found, tables, strict=True):
        score, total, text = brute_force(table, alpha)
        assert hypothesis.pieces == list(text)
        assert hypothesis.log_prob == pytest.approx(total, abs=1e-12)
        assert hypothesis.score == pytest.approx(score, abs=1e-12)
    lengths = {len(hypothesis.pieces) for hypothesis in found}
    assert len(lengths) > 1


def test_alpha_moves_the_winner_to_longer_texts():
    tables = [random_table(seed) for seed in range(60)]
    mean = [
        sum(len(h.pieces) for h in beam_search(Table(tables), 60, EXHAUSTIVE, alpha, LONGEST, "cpu")) for alpha in (0, 1, 3)
    ]  # fmt: skip
    assert mean[0] < mean[1] < mean[2]


@pytest.mark.parametrize("alpha", [0, 0.6, 1])
@pytest.mark.parametrize("beam", [2, 3])
def test_small_beams_find_real_hypotheses_and_none_above_the_best(beam, alpha):
    tables = [random_table(seed) for seed in range(60)]
    found = beam_search(Table(tables), len(tables), beam, alpha, LONGEST, "cpu")
    hits = 0
    for hypothesis, table in zip(found, tables, strict=True):
        text = tuple(hypothesis.pieces)
        assert hypothesis.log_prob == pytest.approx(log_prob(table, text), abs=1e-12)
        assert hypothesis.score == pytest.approx(hypothesis.log_prob / gnmt(len(text) + 1, alpha), abs=1e-12)
        best = brute_force(table, alpha)[0]
        assert hypothesis.score <= best + 1e-12
        hits += hypothesis.score >= best - 1e-12
    assert hits > 30


def ending_early():
    """EOS at once has p = 0.5; A A A A has p = 0.48, at lp(5) the better score from alpha 0.09 on."""
    table = {prefix: {A: 0.01, B: 0.01, C: 0.01, EOS: 0.97} for prefix in prefixes()}
    table[()] = {A: 0.49, B: 0.005, C: 0.005, EOS: 0.5}
    for n in range(1, LONGEST):
        table[(A,) * n] = {A: 0.997, B: 0.001, C: 0.001, EOS: 0.001}
    table[(A,) * LONGEST] = {A: 0.001, B: 0.001, C: 0.001, EOS: 0.997}
    return table


@pytest.mark.parametrize(("alpha", "pieces"), [(0, []), (0.05, []), (0.6, [A] * 4), (1, [A] * 4)])
@pytest.mark.parametrize("beam", [2, 4])
def test_R29_search_does_not_stop_at_the_first_finished_hypothesis(beam, alpha, pieces):
    assert brute_force(ending_early(), alpha)[2] == tuple(pieces)
    assert beam_search(Table([ending_early()]), 1, beam, alpha, LONGEST, "cpu")[0].pieces == pieces


def test_R29_search_stops_as_soon_as_no_live_hypothesis_can_win():
    """With alpha 0 a live hypothesis of p <= 0.49 can never beat EOS of p = 0.5: one step is enough."""
    for alpha, steps in ((0, 1), (1, 5)):
        scorer = Table([ending_early()])
        beam_search(scorer, 1, 2, alpha, LONGEST, "cpu")
        assert [call for call, _ in scorer.calls].count("logits") == steps


@pytest.mark.parametrize("alpha", [0, 0.6, 1])
def test_R29_beam_of_one_is_greedy_search(alpha):
    tables = [random_table(seed) for seed in range(200)]
    found = beam_search(Table(tables), len(tables), 1, alpha, LONGEST, "cpu")
    assert [hypothesis.pieces for hypothesis in found] == greedy(
        Table(tables), [LONGEST] * len(tables), "cpu"
    )


def test_one_reordering_a_step_and_sentences_leave_when_done():
    tables = [ending_early(), *(random_table(seed) for seed in range(5))]
    scorer = Table(tables)
    beam_search(scorer, len(tables), 3, 0.0, LONGEST, "cpu")
    names = [name for name, _ in scorer.calls]
    assert names == ["logits", "reorder"] * (len(names) // 2) + ["logits"]
    rows = [count for name, count in scorer.calls if name == "logits"]
    assert rows[0] == 6
    assert max(rows[1:]) <= 15  # the first sentence has left, the others have three hypotheses at most
    assert rows[-1] < 15


def test_sentences_do_not_disturb_each_other():
    tables = [random_table(seed) for seed in range(20)]
    together = beam_search(Table(tables), 20, 3, 0.6, LONGEST, "cpu")
    assert together == [beam_search(Table([table]), 1, 3, 0.6, LONGEST, "cpu")[0] for table in tables]


@pytest.mark.parametrize("protocol", Protocol)
@torch.no_grad()
def test_log_prob_is_the_models_own(protocol):
    """Recomputed by one full forward pass over the translation, over the tokens that may be chosen."""
    model = small_model(CORRECT).double()
    src = torch.tensor([[*source[:5], EOS] for source in random_sentences(300) if len(source) >= 5][:20])
    found = beam_search(scorers(protocol, model)(Source.read(model, [*src])), len(src), 4, 0.6, 9, "cpu")
    for source, hypothesis in zip(src, found, strict=True):
        logits = model(source[None], torch.tensor([[BOS, *hypothesis.pieces]]))[0]
        logits[:, [PAD, BOS]] = -torch.inf
        target = torch.tensor([*hypothesis.pieces, EOS])
        expected = logits.log_softmax(-1).gather(1, target[:, None]).sum()
        assert hypothesis.log_prob == pytest.approx(float(expected), abs=1e-9)
        assert hypothesis.score == pytest.approx(float(expected) / ((5 + len(target)) / 6) ** 0.6, abs=1e-9)


def test_length_penalty_of_the_paper():
    assert length_penalty(1, 0.6) == 1  # |Y| = 1 is EOS alone
    assert length_penalty(19, 0.6) == pytest.approx(4**0.6)
    assert length_penalty(30, 0) == 1


def test_wrong_use_is_an_error():
    table = random_table(0)
    for beam, alpha in ((0, 0.6), (2, -0.1)):
        with pytest.raises(ValueError, match="alpha from 0 and beam from 1"):
            beam_search(Table([table]), 1, beam, alpha, LONGEST, "cpu")
    endless = {prefix: {A: 0.5, B: 0.25, C: 0.25} for prefix in prefixes()}
    with pytest.raises(ValueError, match="EOS has no probability"):
        beam_search(Table([endless]), 1, 2, 0.6, LONGEST, "cpu")

"""A run against the grammar's gold: a model whose attention is known, and the text that is compared."""

from dataclasses import replace

import pytest
import torch

from attnlab.config import Site
from attnlab.data.corpus import load_corpus
from attnlab.data.grammar import GrammarPair, generate
from attnlab.inspection import gold
from attnlab.inspection.alignment import Agreement
from attnlab.inspection.gold import Reading, measure_alignments, measure_antecedents, measure_gold
from attnlab.inspection.words import word_pieces
from attnlab.model.recorder import AttentionRecord

PAIR = GrammarPair("The man sees it.", "Der Mann sieht es.", ((0, 0), (1, 1), (2, 2), (3, 3)), None)


class Pointing:
    """Stands for a run's model: a row of its cross-attention has all weight on one source piece."""

    def __init__(self, source_piece_of_row):
        self.rows = source_piece_of_row
        self.decoder = [None, None]  # two layers, the second looks at </s> alone

    def hidden(self, src, tgt_in, recorder):
        for layer in (1, 2):
            weights = torch.zeros(1, 2, tgt_in.shape[1], src.shape[1])
            for row, key in enumerate(self.rows):
                weights[0, :, row, key if layer == 1 else src.shape[1] - 1] = 1.0
            recorder.add(AttentionRecord(Site.cross, layer, *[torch.zeros(0)] * 4, weights, None, None))


@pytest.fixture
def pointing(tiny, monkeypatch):
    """A run whose first piece of target word j, as input or as prediction, looks at source word j."""
    monkeypatch.setattr(gold, "quiet", lambda model: torch.no_grad())
    src, tgt = (
        word_pieces(tiny.tokenizer.pieces(ids)) for ids in tiny.tokenizer.encode([PAIR.src, PAIR.tgt])
    )
    end = max(map(max, src)) + 1

    def make(shift):
        rows = [end] * (max(map(max, tgt)) + 3)  # before, the pieces, the full stop
        for source, target in zip(src, tgt, strict=True):
            for piece in target:
                rows[piece + shift] = source[0]
        return tiny._replace(model=Pointing(rows[: len(tiny.tokenizer.encode([PAIR.tgt])[0]) + 1]))

    return make


@pytest.mark.parametrize(("reading", "shift"), [(Reading.input, 1), (Reading.output, 0)])
def test_a_perfect_row_of_either_reading_has_no_error(pointing, reading, shift):
    found = measure_alignments(pointing(shift), [PAIR, PAIR])
    assert found.layers[reading][0] == Agreement(8, 8, 8)
    assert found.layers[reading][0].aer == 0
    assert found.layers[reading][1].aer == 1  # the layer that looks at </s> links nothing
    assert found.unlinked(reading) == [0, 1]
    other = next(one for one in Reading if one is not reading)
    assert found.layers[other][0].aer > 0.4
    assert (found.sentences, found.words) == (2, 8)
    assert found.diagonal.aer == found.best.aer == 0
    assert found.uniform.aer == pytest.approx(3 / 4)


def test_the_text_is_the_run_s_dev_split(tiny, monkeypatch):
    seen = []
    monkeypatch.setattr(gold, "measure_alignments", lambda _, pairs: seen.extend(pairs))
    monkeypatch.setattr(gold, "measure_antecedents", lambda _, pairs: pairs)
    dev = load_corpus(tiny.config.data).dev
    antecedents = measure_gold(tiny, 20).antecedents
    assert [(pair.src, pair.tgt, pair.alignment) for pair in seen] == list(
        zip(dev.src[:20], dev.tgt[:20], dev.alignments[:20], strict=True)
    )
    assert antecedents
    assert all(pair.antecedent and pair.src in dev.src for pair in antecedents)

    seen.clear()
    turned = replace(tiny.config.data, src="de", tgt="en")
    measured = measure_gold(tiny._replace(config=replace(tiny.config, data=turned)), 20)
    dev = load_corpus(turned).dev
    assert [(pair.src, pair.tgt, pair.alignment) for pair in seen] == list(
        zip(dev.src[:20], dev.tgt[:20], dev.alignments[:20], strict=True)
    )
    assert measured.antecedents is None
    assert "German" in measured.no_antecedents


def test_a_corpus_without_it_says_so(tiny, monkeypatch):
    pair = replace(PAIR, antecedent=None)
    monkeypatch.setattr(gold, "generate", lambda *_: {"dev": [pair]})
    measured = measure_gold(tiny, 5)
    assert measured.antecedents is None
    assert "no dev sentence" in measured.no_antecedents
    assert measured.alignments.sentences == 1


def test_equal_weights_look_at_the_antecedent_as_much_as_chance(tiny, monkeypatch):
    """With W_Q and W_K zero every score is 0 and every row uniform."""
    pairs = [pair for pair in generate(3, {"dev": 60})["dev"] if pair.antecedent]
    block = tiny.model.encoder[0].self_attention
    for part in (block.w_q, block.w_k):
        monkeypatch.setattr(part.weight, "data", torch.zeros_like(part.weight))
        monkeypatch.setattr(part.bias, "data", torch.zeros_like(part.bias))
    found = measure_antecedents(tiny, pairs)
    assert found.rows == len(pairs) > 5
    assert found.weight.shape == (1, 3)
    torch.testing.assert_close(found.weight, torch.full((1, 3), found.chance_weight))

"""`attnlab page --run`: the page's measurements on a model of ours, as new numbers."""

from dataclasses import replace

import pytest
import torch

from attnlab.config import Mask, ModelConfig, Norm, Scale, Score, Site
from attnlab.data.tokenizer import EOS
from attnlab.errors import UserError
from attnlab.model.initialise import build
from attnlab.theory import page
from attnlab.theory.factors import CORRECT
from attnlab.theory.page.rules import Outcome
from attnlab.theory.page.views import view_results


class WordTokenizer:
    """One id a word, from 4 on."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def encode(self, texts):
        self.words += [word for text in texts for word in text.split() if word not in self.words]
        return [[4 + self.words.index(word) for word in text.split()] for text in texts]

    def pieces(self, ids):
        return [f"▁{self.words[i - 4]}" if 4 <= i < 4 + len(self.words) else f"<{i}>" for i in ids]

    def decode(self, ids):
        return [" ".join(self.pieces(sequence)) for sequence in ids]


def model(factors, norm: Norm = Norm.pre):
    size = ModelConfig(
        name="test", d_model=24, heads=4, d_k=5, d_v=7, d_ff=16, encoder_layers=2, decoder_layers=3, dropout=0.1,
        attention_dropout=0.1, norm=norm, tie_embeddings=False,
    )  # fmt: skip
    return build(size, factors, 30, seed=3)


@pytest.mark.parametrize("norm", Norm)
@pytest.mark.parametrize("scale", [Scale.sqrt_d_k, Scale.none])
def test_new_numbers_of_a_run(norm, scale, capsys):
    arm = model(replace(CORRECT, scale=scale), norm)
    assert page.run(only=["S57"], run="x", load_run=lambda name: (arm, WordTokenizer())) == 0
    assert "1 new number" in capsys.readouterr().out
    by_id = {row.printed.id: row for row in page.weight_rows(page.views_of_run(arm, WordTokenizer()))}
    assert by_id["S33"].ours == "24 4 5 7 2 3"
    for id in ("S41.difference", "S45.difference", "S56.difference", "S54.released"):
        assert by_id[id].outcome is Outcome.passed
    assert {by_id[id].outcome for id in ("S36", "S37", "S42", "S44", "S57", "S65.difference")} == {
        Outcome.new
    }


@pytest.mark.parametrize("norm", Norm)
def test_the_blocks_have_the_inputs_that_the_model_gave_them(norm):
    """The correct arm's own weights, seen by the recorder, are those of the rebuilt blocks."""
    views = page.views_of_run(model(CORRECT, norm), WordTokenizer())
    for site in Site:
        _, weights = views.blocks[site].forward()
        torch.testing.assert_close(weights, views.weights[site][0], rtol=0, atol=1e-6)


def test_the_scale_counterfactual_of_an_unscaled_arm_starts_from_its_weights():
    views = page.views_of_run(model(replace(CORRECT, scale=Scale.none)), WordTokenizer())
    with_scale, without = dict(view_results(views))["S57"]
    it = views.position(views.source_tokens, "▁it", 7, 99)
    assert without.item() == pytest.approx(views.weights[Site.encoder][0][0, 0, it].max().item())
    assert with_scale != without


def test_a_leaking_arm_fails_the_triangle():
    views = page.views_of_run(model(replace(CORRECT, mask=Mask.none)), WordTokenizer())
    assert len(views.target_tokens) > 1
    (row,) = page.rows(only=["S54.released"], views=views)
    assert row.outcome is Outcome.failed


def test_arms_without_dot_products_are_refused():
    for factors in (
        replace(CORRECT, score=Score.additive, scale=Scale.none), replace(CORRECT, qk_norm=True, scale=Scale.none)
    ):  # fmt: skip
        with pytest.raises(UserError, match="score is q"):
            page.views_of_run(model(factors), WordTokenizer())


def test_the_source_ends_with_the_end_mark():
    views = page.views_of_run(model(CORRECT), WordTokenizer())
    assert views.source_tokens[-1] == f"<{EOS}>"

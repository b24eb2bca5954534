"""The results about trained weights, on a Marian model of the page's shapes with random weights, and a tiny tokenizer."""

import json
from dataclasses import replace

import pytest
import torch

from attnlab.config import Site
from attnlab.errors import UserError
from attnlab.theory import page
from attnlab.theory.page import marian, printed
from attnlab.theory.page.rules import Outcome
from attnlab.theory.page.views import view_results

transformers = pytest.importorskip("transformers")
WORDS = ["▁The", "▁cat", "▁sat", "▁on", "▁the", "▁mat", "▁because", "▁it", "▁was", "▁tired", "."]


def random_marian(width: int, layers: int, vocab_size: int) -> "transformers.MarianMTModel":
    torch.manual_seed(0)
    config = transformers.MarianConfig(
        vocab_size=vocab_size, d_model=width, encoder_layers=layers, decoder_layers=layers,
        encoder_attention_heads=8, decoder_attention_heads=8, encoder_ffn_dim=32, decoder_ffn_dim=32,
        max_position_embeddings=64, pad_token_id=vocab_size - 1, eos_token_id=0, forced_eos_token_id=None,
        decoder_start_token_id=vocab_size - 1, init_std=0.2,
    )  # fmt: skip
    return transformers.MarianMTModel(config)


@pytest.fixture(scope="module")
def same_shapes(tmp_path_factory) -> str:
    """The page's shapes: d_model 512, 8 heads, 6 + 6 layers; no tokenizer."""
    folder = tmp_path_factory.mktemp("marian")
    random_marian(512, 6, 100).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def with_tokenizer(tmp_path_factory) -> str:
    """A small model with a tokenizer that cuts the page's sentence into the page's 12 tokens."""
    import sentencepiece

    folder = tmp_path_factory.mktemp("tokenized")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([printed.SOURCE_SENTENCE, "other words fill up"] * 3),
        model_prefix=str(folder / "source"), vocab_size=40, user_defined_symbols=WORDS, hard_vocab_limit=False,
        minloglevel=2,
    )  # fmt: skip
    (folder / "source.model").rename(folder / "source.spm")
    (folder / "target.spm").write_bytes((folder / "source.spm").read_bytes())
    pieces = ["</s>", "<unk>", *WORDS, *(f"w{i}" for i in range(16)), "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"source_lang": "en", "target_lang": "de"}))
    random_marian(64, 3, len(pieces)).save_pretrained(folder)
    return str(folder)


def test_on_random_weights_of_the_same_shapes(same_shapes, capsys):
    rows = {row.printed.id: row for row in page.weight_rows(page.views_of_released(same_shapes))}
    for id in ("S39.difference", "S41.difference", "S45.difference", "S54.released", "S56.difference", "S67"):
        assert rows[id].outcome is Outcome.passed
    for id in (
        "S33",
        "S34.released",
        "S35.released",
        "S40",
    ):  # shapes: equal to the page's, though new numbers
        assert rows[id].outcome is Outcome.new
        assert rows[id].ours == rows[id].printed.rule.printed
    for id in ("S36", "S37", "S42", "S44"):
        assert rows[id].outcome is Outcome.needs_weights
        assert rows[id].ours == "no tokenizer"
    assert all(row.outcome is not Outcome.failed for row in rows.values())
    assert page.run(only=["S33", "S36"], released=same_shapes) == 0
    assert "new numbers of other weights than the page's" in capsys.readouterr().out


def test_a_model_with_a_tokenizer_is_judged_against_the_page(with_tokenizer, capsys):
    rows = {row.printed.id: row for row in page.weight_rows(page.views_of_released(with_tokenizer))}
    assert rows["S36"].outcome is Outcome.passed
    for id in ("S41.difference", "S45.difference", "S56.difference", "S54.released"):
        assert rows[id].outcome is Outcome.passed
    for id in ("S33", "S37", "S42", "S44", "S46", "S57"):  # random weights are not the page's
        assert rows[id].outcome is Outcome.failed
    assert page.run(only=["S33"], released=with_tokenizer) == 1
    assert "512 8 64 64 6 6" in capsys.readouterr().out


def test_the_views_equal_the_library_s_own_weights(with_tokenizer):
    """Top keys and tables are read off our block's weights where we have them, and off the library's elsewhere."""
    views = page.views_of_released(with_tokenizer)
    for site, block in views.blocks.items():
        y, weights = block.forward()
        torch.testing.assert_close(weights, views.weights[site][0], rtol=0, atol=1e-6)
        torch.testing.assert_close(y, block.library, rtol=0, atol=1e-5)
    results = dict(view_results(views))
    it = WORDS.index("▁it")
    assert results["S57"][0] == views.weights[Site.encoder][0][0, 0, it].max()
    top = results["S42"][0]
    assert top[0][1] >= top[1][1]
    assert top[0][0] in views.source_tokens
    assert len(results["S44"]) == len(views.target_tokens) - 1


def test_wrong_axes_and_scale_equal_the_reshapes_written_out(with_tokenizer):
    """S59, S65 and S66 with the library's projections and plain reshapes, as in the page's text."""
    model, _ = marian.load(with_tokenizer)
    views = page.views_of_released(with_tokenizer)
    attention, x = model.model.encoder.layers[0].self_attn, views.blocks[Site.encoder].x_q
    batch, n, width = x.shape
    heads, size = attention.num_heads, width // attention.num_heads
    projected = [part(x) for part in (attention.q_proj, attention.k_proj, attention.v_proj)]
    right = [part.view(batch, n, heads, size).transpose(1, 2) for part in projected]
    wrong = [part.view(batch, heads, n, size) for part in projected]

    def attend(q, k, v, scale=size**-0.5):
        return torch.softmax(scale * q @ k.transpose(-2, -1), dim=-1) @ v

    library = views.blocks[Site.encoder].library
    expected = {
        "S59": attend(*right, scale=1.0).transpose(1, 2).reshape(x.shape),
        "S65.difference": attend(*wrong).reshape(x.shape),
        "S66.difference": attend(*right).reshape(x.shape),
    }
    results = dict(view_results(views))
    for id, concat in expected.items():
        with torch.no_grad():
            difference = (attention.out_proj(concat) - library).abs().max().item()
        assert results[id] == pytest.approx(difference, rel=1e-4), id
        assert difference > 1e-3


def test_other_weights_are_never_compared_with_the_page(with_tokenizer):
    views = replace(page.views_of_released(with_tokenizer), are_the_page_s=False)
    rows = page.rows(only=["S33", "S36", "S37", "S42", "S44", "S57", "S59"], views=views)
    assert {row.outcome for row in rows} == {Outcome.new}


def test_a_model_that_cannot_be_loaded_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(marian, "reaches", lambda url, seconds: False)
    for path in (str(tmp_path / "nowhere"), str(tmp_path), "attnlab-tests/no-such-model"):
        with pytest.raises(UserError, match=r"released: got .* allowed: a folder"):
            page.run(released=path)


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    with pytest.raises(UserError, match=r"attnlab\[released\]"):
        page.run(released="anything")


def test_released_and_run_exclude_each_other():
    with pytest.raises(UserError, match="one of the two"):
        page.run(released="a", run="b")

"""`attnlab inspect` on a small run: what it shows against a forward pass, and what it refuses."""

import json

import pytest
import torch

from attnlab.cli import main
from attnlab.config import Axes, Protocol, Site
from attnlab.data.tokenizer import BOS, EOS
from attnlab.errors import UserError
from attnlab.inspection import inspect
from attnlab.inspection.figure import draw, heat_maps, layout
from attnlab.inspection.views import view
from attnlab.measure.decode import decode, translate
from attnlab.measure.maps import attention_maps
from attnlab.model.recorder import Recorder

SOURCE = "The man saw a dog because it was old."


@pytest.fixture(scope="module")
def shown(tiny):
    return view(tiny, SOURCE, None)


@pytest.fixture(scope="module")
def recorder(tiny, shown):
    """A forward pass of the sentence and its translation, by hand."""
    (src,) = tiny.tokenizer.encode([SOURCE])
    (tgt,) = decode(tiny.model, [src], tiny.config.decode, Protocol.prefix)
    assert tiny.tokenizer.pieces([BOS, *tgt]) == shown.target_tokens
    recorder = Recorder()
    with torch.no_grad():
        tiny.model(torch.tensor([[*src, EOS]]), torch.tensor([[BOS, *tgt]]), recorder=recorder)
    return recorder


def test_translation_is_the_one_of_attnlab_translate(tiny, shown):
    assert (
        shown.translation
        == translate(tiny.model, tiny.tokenizer, [SOURCE], tiny.config.decode, Protocol.prefix)[0]
    )
    assert shown.target_tokens[1:] == shown.next_tokens[:-1]
    assert (shown.target_tokens[0].strip(), shown.next_tokens[-1].strip()) == ("<s>", "</s>")


def test_shapes_of_the_three_uses(shown):
    s, t = len(shown.source_tokens), len(shown.target_tokens)
    for site, queries, keys in ((Site.encoder, s, s), (Site.decoder, t, t), (Site.cross, t, s)):
        assert shown.shapes()[site] == {
            "q": (1, 3, queries, 5), "k": (1, 3, keys, 5), "v": (1, 3, keys, 7), "weights": (1, 3, queries, keys),
        }  # fmt: skip


def test_weights_are_those_of_a_forward_pass(shown, recorder):
    by_hand = attention_maps(recorder.records, 0, shown.source_tokens, shown.target_tokens)
    ours = [head for record in shown.records for head in record.weights[0]]
    assert len(ours) == len(by_hand) == 3 * (1 + 2 + 2)
    for head, one in zip(ours, by_hand, strict=True):
        torch.testing.assert_close(head, torch.from_numpy(one.weights))


def test_top_keys_are_the_largest_weights_of_the_query_s_row(shown, recorder):
    assert (shown.query, shown.query_rows) == ("it", [shown.source_tokens.index("▁it")])
    weights = next(r.weights[0] for r in recorder.records if r.site is Site.encoder)
    for head, keys in zip(weights, shown.top_keys(), strict=True):
        row = head[shown.source_tokens.index("▁it")].tolist()
        largest = sorted(range(len(row)), key=lambda i: -row[i])[:3]
        assert [token for token, _ in keys] == [shown.source_tokens[i] for i in largest]
        assert [weight for _, weight in keys] == pytest.approx([row[i] for i in largest])


def test_a_query_of_several_pieces_is_the_mean_of_their_rows(tiny):
    shown = view(tiny, "The waitress thanked a princess.", "PRINCESS")
    assert shown.query == "princess."
    assert len(shown.query_rows) > 1
    assert "".join(shown.source_tokens[i] for i in shown.query_rows) == "▁princess"
    rows = shown.layers(Site.encoder)[0][:, shown.query_rows]
    torch.testing.assert_close(shown.query_weights(), rows.sum(1) / len(shown.query_rows))


def test_default_query_is_it_or_else_the_longest_word(tiny):
    assert view(tiny, "It sleeps, he said.", None).query == "It"
    assert view(tiny, "The waitress sleeps.", None).query == "waitress"


def test_alignment_and_decoder_table(shown, recorder):
    cross = [r.weights[0].mean(0) for r in recorder.records if r.site is Site.cross]
    for layer, weights in zip(shown.alignment(), cross, strict=True):
        assert [token for token, _ in layer] == [shown.source_tokens[i] for i in weights.argmax(1)]
    last = [r.weights[0].mean(0) for r in recorder.records if r.site is Site.decoder][-1]
    torch.testing.assert_close(shown.decoder_table(), last[:5, :5])


def test_an_empty_translation_is_shown(tiny, tiny_run, monkeypatch):
    monkeypatch.setattr("attnlab.inspection.views.decode", lambda *_: [[]])
    text = inspect(*tiny_run, SOURCE, None, 0, None, as_json=False)
    assert "(empty)" in text
    assert draw(view(tiny, SOURCE, None)).axes


def test_rows_that_are_no_tokens_are_named(tiny, monkeypatch):
    monkeypatch.setattr(tiny.config.attention, "split", Axes.no_transpose)
    monkeypatch.setattr(tiny.config.attention.where, "sites", [Site.decoder])
    assert view(tiny, SOURCE, None).not_tokens == ["decoder/layer1", "decoder/layer2"]


def test_text_has_every_view(tiny_run, capsys):
    run, output = tiny_run
    assert main(["inspect", run, "--output", str(output), "--source", SOURCE, "--sentences", "5"]) == 0
    text = capsys.readouterr().out
    for part in ("tokens", "(1, 3, ", "query 'it'", "cross-attention", "first rows", "alignment error rate", "5 dev sentences",
                 "its antecedent", "chance"):  # fmt: skip
        assert part in text


def test_json_holds_the_same_numbers(shown, tiny_run, capsys):
    run, output = tiny_run
    assert (
        main(["inspect", run, "--output", str(output), "--source", SOURCE, "--sentences", "5", "--json"]) == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert found["tokens"] == {"source": shown.source_tokens, "target": shown.target_tokens}
    assert found["shapes"]["cross"]["weights"] == [1, 3, len(shown.target_tokens), len(shown.source_tokens)]
    assert found["query"]["top_keys"] == shown.top_keys()
    assert [row["layers"] for row in found["alignment"]] == [
        list(row) for row in zip(*shown.alignment(), strict=True)
    ]
    assert found["decoder_table"] == shown.decoder_table().tolist()
    assert found["gold"]["alignments"]["sentences"] == 5
    for layer in (layer for layers in found["gold"]["alignments"]["layers"].values() for layer in layers):
        assert layer["aer"] == pytest.approx(1 - 2 * layer["agreed"] / (layer["found"] + layer["gold"]))
    assert 0 < found["gold"]["antecedents"]["chance_share"] < 1


def test_gold_can_be_left_out(tiny_run):
    assert json.loads(inspect(*tiny_run, SOURCE, None, 0, None, as_json=True))["gold"] is None


@pytest.mark.parametrize(
    ("source", "more", "message"),
    [
        ("  \t ", [], "--source: got no word"),
        (SOURCE, ["--query", "cat"], "--query: got 'cat', allowed: a word of the source (The, man, saw"),
        (SOURCE, ["--query", "."], "--query: got '.'"),
        (SOURCE, ["--figure", "a.pdf"], "--figure: got 'a.pdf'"),
        (SOURCE, ["--sentences", "-1"], "--sentences: got -1"),
    ],
)
def test_mistakes_are_one_sentence(tiny_run, capsys, source, more, message):
    run, output = tiny_run
    assert main(["inspect", run, "--output", str(output), "--source", source, *more]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"attnlab: {message}")
    assert error.count("\n") == 1


def test_an_unknown_run_is_one_sentence(tmp_path, capsys):
    assert main(["inspect", "nothing", "--output", str(tmp_path), "--source", SOURCE]) == 2
    assert "run: got 'nothing'" in capsys.readouterr().err


def test_a_figure_is_a_png_and_the_same_each_time(tiny_run, tmp_path):
    paths = [tmp_path / "new folder" / name for name in ("a.png", "b.png")]
    for path in paths:
        inspect(*tiny_run, "It costs $5$ & more.", None, 0, path, as_json=False)
    first, second = (path.read_bytes() for path in paths)
    assert first.startswith(b"\x89PNG")
    assert first == second
    assert len(first) < 300_000


def test_a_figure_that_cannot_be_written(tiny_run, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="--figure"):
        inspect(*tiny_run, SOURCE, None, 0, tmp_path / "file" / "a.png", as_json=False)


def test_panels_show_the_weights_with_their_tokens(shown):
    figure = draw(shown)
    maps = heat_maps(shown)
    assert len(maps) == 3 + 2
    for panel, heat_map in zip(figure.axes, maps, strict=False):
        assert panel.images[0].get_array().tolist() == heat_map.weights.tolist()
        assert [label.get_text() for label in panel.get_xticklabels()] == heat_map.columns
        assert [label.get_text() for label in panel.get_yticklabels()] == heat_map.rows
        rings = panel.lines[0].get_xydata().tolist()
        assert rings == [[float(best), row] for row, best in enumerate(heat_map.weights.argmax(1).tolist())]


def test_more_weight_is_darker_in_grey(shown):
    colours = draw(shown).axes[0].images[0].cmap(torch.linspace(0, 1, 50).numpy())
    grey = colours[:, :3] @ [0.299, 0.587, 0.114]  # luma of ITU-R BT.601
    assert (grey[1:] < grey[:-1]).all()
    assert grey[0] > 0.99
    assert grey[-1] < 0.2


def test_panels_lie_within_the_figure_and_apart(shown):
    boxes, width, height = layout(heat_maps(shown) * 3)
    for i, box in enumerate(boxes):
        assert box.left >= 0
        assert box.left + box.width <= width
        assert box.top + box.height <= height
        for other in boxes[:i]:
            beside = other.left + other.width < box.left or box.left + box.width < other.left
            assert beside or other.top + other.height < box.top

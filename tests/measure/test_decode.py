import random
from dataclasses import replace

import pytest
import torch
from arms import ARMS, CORRECT, NO_LEAK, WRONG_AXES, WRONG_MASK, random_sentences, small_model
from torch import Tensor

from attnlab.config import DecodeConfig, Norm, Precision, Protocol, TokenizerConfig, TokenizerKind
from attnlab.data.tokenizer import BOS, EOS, PAD, Tokenizer, train_model
from attnlab.measure.decode import decode, greedy, translate
from attnlab.measure.scorers import CachedScorer, PrefixScorer, next_logits, scorers
from attnlab.model.incremental import JoinedDecoder, Source

CONFIG = DecodeConfig(
    protocols=[*Protocol], beam=1, length_penalty=0.6, max_length_factor=1.5, max_length_extra=6, batch_sentences=16,
    sentences=None,
)  # fmt: skip


class Script:
    """A scorer that writes given pieces, then EOS; it notes how many rows it was asked for."""

    def __init__(self, texts: list[list[int]], vocab_size: int) -> None:
        self.texts, self.vocab_size, self.rows = [[*text, EOS] for text in texts], vocab_size, []

    def logits(self, prefix: Tensor) -> Tensor:
        self.rows.append(len(prefix))
        logits = torch.zeros(len(prefix), self.vocab_size)
        for row, text in enumerate(self.texts):
            logits[row, text[prefix.shape[1] - 1]] = 1.0
        logits[:, [PAD, BOS]] = 9.0  # the likeliest, and never allowed
        return logits

    def reorder(self, rows: Tensor) -> None:
        self.texts = [self.texts[row] for row in rows.tolist()]


def sources_and_prefixes(count=20, length=7):
    """Padded sources [count,S], and prefixes [count,length] that begin with BOS."""
    sources = random_sentences(count, longest=7)
    src = torch.full((count, 8), PAD)
    for row, source in enumerate(sources):
        src[row, : len(source) + 1] = torch.tensor([*source, EOS])
    generator = torch.Generator().manual_seed(5)
    prefix = torch.randint(4, 29, (count, length), generator=generator)
    prefix[:, 0] = BOS
    return src, prefix


def cached(model, src):
    return CachedScorer(JoinedDecoder(model), source_of(model, src))


def source_of(model, src):
    """What the decoder reads of padded sources [R,S]."""
    return Source.of(model, model.encode(src, src != PAD), src != PAD)


def stepwise(scorer, prefix):
    """Logits [R,t,V] that the scorer gives to growing prefixes."""
    return torch.stack([scorer.logits(prefix[:, :t]) for t in range(1, prefix.shape[1] + 1)], dim=1)


@torch.no_grad()
def one_by_one(model, source, max_length):
    """Greedy search as plainly as it can be written: one sentence, the whole model at each step."""
    src, output = torch.tensor([[*source, EOS]]), []
    while len(output) < max_length:
        logits = model(src, torch.tensor([[BOS, *output]]))[0, -1]
        token = max((t for t in range(len(logits)) if t not in (PAD, BOS)), key=lambda t: float(logits[t]))
        if token == EOS:
            break
        output.append(token)
    return output


# ------------------------------------------------------------------------ C12: equivalences of the two protocols


@pytest.mark.parametrize("norm", Norm)
@pytest.mark.parametrize("arm", [*NO_LEAK])
@torch.no_grad()
def test_correct_arms_full_forward_prefix_and_cache_agree(arm, norm):
    model = small_model(NO_LEAK[arm], norm=norm)
    src, prefix = sources_and_prefixes()
    full = model(src, prefix)
    torch.testing.assert_close(
        stepwise(PrefixScorer(model, source_of(model, src)), prefix), full, atol=1e-5, rtol=1e-5
    )
    torch.testing.assert_close(stepwise(cached(model, src), prefix), full, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("arm", [*WRONG_MASK])
@torch.no_grad()
def test_R04_cache_of_every_mask_variant_is_the_right_mask_over_its_weights(arm):
    wrong, right = small_model(WRONG_MASK[arm]), small_model(CORRECT)
    right.load_state_dict(wrong.state_dict())
    src, prefix = sources_and_prefixes()
    full = right(src, prefix)
    torch.testing.assert_close(stepwise(cached(wrong, src), prefix), full, atol=1e-5, rtol=1e-5)
    assert (wrong(src, prefix) - full).abs().max() > 0.01  # the arm does compute something else


@pytest.mark.parametrize("arm", ["after_softmax", "zero_fill", "no_mask"])
@torch.no_grad()
def test_protocols_agree_with_one_decoder_layer_and_part_with_two(arm):
    """The newest position has no future; from layer 2 on it reads older positions, which do."""
    src, prefix = sources_and_prefixes()
    gap = {}
    for layers in (1, 2):
        model = small_model(WRONG_MASK[arm], decoder_layers=layers)
        by_prefix, by_cache = (
            stepwise(scorers(protocol, model)(source_of(model, src)), prefix) for protocol in Protocol
        )
        gap[layers] = float((by_prefix - by_cache).abs().max())
    assert gap[1] < 1e-5
    assert gap[2] > 0.01


@pytest.mark.parametrize("arm", [*WRONG_AXES])
@torch.no_grad()
def test_protocols_part_at_once_where_axes_are_wrong(arm):
    model = small_model(WRONG_AXES[arm], decoder_layers=1)
    src, prefix = sources_and_prefixes()
    gap = stepwise(PrefixScorer(model, source_of(model, src)), prefix) - stepwise(cached(model, src), prefix)
    assert gap[:, 1:].abs().max() > 0.01


def test_cache_refuses_a_prefix_that_is_not_one_token_longer():
    model, (src, prefix) = small_model(), sources_and_prefixes()
    with pytest.raises(ValueError, match="cannot go on"):
        cached(model, src).logits(prefix)


# ------------------------------------------------------------------------ greedy search


@pytest.mark.parametrize("arm", [*ARMS])
def test_prefix_protocol_equals_the_plain_loop_over_the_arms_own_code(arm):
    model, sources = small_model(ARMS[arm]).double(), random_sentences(16, longest=9)
    limits = [int(1.5 * len(source)) + 6 for source in sources]
    expected = [one_by_one(model, source, limit) for source, limit in zip(sources, limits, strict=True)]
    assert decode(model, sources, CONFIG, Protocol.prefix) == expected
    if arm == "correct":
        ended = [len(output) for output, limit in zip(expected, limits, strict=True) if len(output) < limit]
        assert len(set(ended)) > 3


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("arm", [*NO_LEAK])
def test_both_protocols_translate_alike_in_correct_arms(arm, beam):
    model, sources = small_model(NO_LEAK[arm]).double(), random_sentences(16, longest=5)
    config = replace(CONFIG, beam=beam)
    by_prefix, by_cache = (decode(model, sources, config, protocol) for protocol in Protocol)
    assert by_prefix == by_cache


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("arm", [*WRONG_MASK])
def test_cached_protocol_of_a_wrong_mask_translates_as_the_right_one(arm, beam):
    wrong, right = small_model(WRONG_MASK[arm]).double(), small_model(CORRECT).double()
    right.load_state_dict(wrong.state_dict())
    sources, config = random_sentences(12, longest=4), replace(CONFIG, beam=beam)
    assert decode(wrong, sources, config, Protocol.cached) == decode(right, sources, config, Protocol.prefix)
    assert decode(wrong, sources, config, Protocol.prefix) != decode(right, sources, config, Protocol.prefix)


@torch.no_grad()
def smallest_margin(model, sources, outputs):
    """Least lead of a chosen token over the next one, recomputed from the translations of a correct arm."""
    margins = []
    for source, output in zip(sources, outputs, strict=True):
        logits = model(torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *output]]))[0]
        logits[:, [PAD, BOS]] = -torch.inf
        first, second = logits.topk(2).values.T
        margins.append(float((first - second).min()))
    return min(margins)


@pytest.mark.parametrize("protocol", Protocol)
@pytest.mark.parametrize("arm", ["correct", "wrong_split"])
def test_R30_translations_do_not_depend_on_the_batch_or_the_order(arm, protocol):
    model, sources = small_model(ARMS[arm], decoder_layers=2), random_sentences(200, longest=6)
    config = replace(CONFIG, max_length_factor=0.5, max_length_extra=2)
    alone = decode(model, sources, replace(config, batch_sentences=1), protocol)
    if arm == "correct":  # no ties: a difference below would be the batch's doing, not rounding
        assert smallest_margin(model, sources, alone) > 1e-5
    for size in (7, 64):
        assert decode(model, sources, replace(config, batch_sentences=size), protocol) == alone
    order = random.Random(3).sample(range(200), 200)
    assert decode(model, [sources[i] for i in order], config, protocol) == [alone[i] for i in order]


@pytest.mark.parametrize("protocol", Protocol)
def test_R30_dropout_is_off_while_decoding_and_on_again_after(protocol):
    model, sources = small_model(dropout=0.5), random_sentences(20)
    expected = decode(model, sources, CONFIG, protocol)
    model.train()
    before, torch_before = model.stream.state(), torch.get_rng_state()
    assert decode(model, sources, CONFIG, protocol) == expected
    assert all(module.training for module in model.modules())
    assert model.stream.state() == before
    assert torch.equal(torch.get_rng_state(), torch_before)


def test_finished_sentences_leave_the_batch_and_results_stay_in_place():
    texts = [[7, 7], [], [5, 6, 7, 8], [9, 9]]
    script = Script(texts, 12)
    assert greedy(script, [10] * 4, "cpu") == texts
    assert script.rows == [4, 3, 3, 1, 1]


def test_pad_and_bos_are_never_produced_and_length_is_bounded():
    assert greedy(Script([[4] * 30, [5] * 30], 12), [7, 7], "cpu") == [[4] * 7, [5] * 7]


def test_each_sentence_has_its_own_maximum_length():
    model = small_model()
    with torch.no_grad():
        model.projection[EOS] = 0  # logit 0, never the largest of 27
    sources = [[5, 6, 7], [], [8] * 11]
    config = replace(CONFIG, max_length_factor=1.5, max_length_extra=2)
    for protocol in Protocol:
        for beam in (1, 2):
            outputs = decode(model, sources, replace(config, beam=beam), protocol)
            assert beam > 1 or [len(output) for output in outputs] == [6, 2, 18]
            assert all(len(output) <= limit for output, limit in zip(outputs, [6, 2, 18], strict=True))


def test_no_source_and_source_without_pieces():
    model = small_model()
    assert decode(model, [], CONFIG, Protocol.prefix) == []
    assert decode(model, [[]], CONFIG, Protocol.cached) == [one_by_one(model, [], 6)]


def test_logits_are_chosen_from_in_fp32_whatever_the_model_computes_in():
    model, sources = small_model(), random_sentences(12)
    src = torch.tensor([[*sources[0], EOS]])
    for dtype, expected in ((torch.bfloat16, torch.float32), (torch.float64, torch.float64)):
        logits = next_logits(PrefixScorer(model, source_of(model.to(dtype), src)), torch.tensor([[BOS]]))
        assert logits.dtype == expected
        assert torch.isneginf(logits[:, [PAD, BOS]]).all()


@pytest.mark.parametrize("protocol", Protocol)
def test_half_precision_decodes_nearly_alike(protocol, monkeypatch):
    model, sources = small_model(), random_sentences(40, longest=4)
    config, seen = replace(CONFIG, max_length_factor=0, max_length_extra=2), set()

    for scorer in (PrefixScorer, CachedScorer):

        def watched(self, prefix, logits=scorer.logits):
            result = logits(self, prefix)
            seen.add(result.dtype)
            return result

        monkeypatch.setattr(scorer, "logits", watched)
    full = decode(model, sources, config, protocol)
    assert seen == {torch.float32}
    half = decode(model, sources, config, protocol, Precision.bf16)
    assert seen == {torch.float32, torch.bfloat16}
    assert sum(a == b for a, b in zip(full, half, strict=True)) > 30


def test_logits_that_are_not_a_number_are_an_error_and_not_a_token():
    model = small_model()
    with torch.no_grad():
        model.decoder[0].feed_forward.w_1.weight[0, 0] = torch.nan
    for beam in (1, 2):
        with pytest.raises(ValueError, match="not a number"):
            decode(model, [[5, 6]], replace(CONFIG, beam=beam), Protocol.cached)


def test_translations_longer_than_the_position_table_leave_a_model_that_can_be_trained():
    model = small_model()
    with torch.no_grad():
        model.projection[EOS] = 0
    decode(model, [[5, 6]], replace(CONFIG, max_length_extra=90), Protocol.prefix)
    positions = model.target_embedding.positions
    assert len(positions) > 90
    assert not positions.is_inference()
    model(torch.tensor([[5, 6, EOS]]), torch.tensor([[BOS, 7]])).sum().backward()


# ------------------------------------------------------------------------ text to text


@pytest.fixture(scope="module")
def tokenizer():
    lines = [
        "A dog runs.",
        "Ein Hund läuft </s> und <pad> bellt.",
        "two dogs run </s>",
        "zwei Hunde laufen",
    ] * 5
    return Tokenizer(train_model(lines, TokenizerConfig(TokenizerKind.bpe, 60)))


def test_R33_decoding_stops_on_the_id_and_not_on_text_that_looks_like_it(tokenizer):
    text = "Ein Hund </s> <pad> läuft </s>"
    pieces = tokenizer.encode([text])[0]
    output = greedy(Script([pieces], tokenizer.vocab_size), [99], "cpu")
    assert output == [pieces]
    assert tokenizer.decode(output) == [text]


def test_translate_gives_one_line_each_in_input_order(tokenizer):
    model = small_model(vocab_size=tokenizer.vocab_size)
    texts = ["two dogs run", "", "A dog runs. </s> A dog", "A"]
    lines = translate(model, tokenizer, texts, CONFIG, Protocol.prefix)
    expected = [
        one_by_one(model, pieces, int(1.5 * len(pieces)) + 6) for pieces in tokenizer.encode(texts)
    ]  # fmt: skip
    assert lines == tokenizer.decode(expected)
    assert len(set(lines)) > 1

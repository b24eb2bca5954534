import contextlib
import math

import numpy as np
import pytest
import torch
from arms import ARMS, NO_LEAK, WRONG_AXES, WRONG_MASK, random_sentences, small_model

from attnlab.config import Precision
from attnlab.data.batching import Encoded, collate
from attnlab.data.tokenizer import BOS, EOS, PAD
from attnlab.measure.evaluate import (
    TokenLoss,
    dev_metrics,
    equal_lengths,
    eval_mode,
    prefix_scored,
    teacher_forced,
)


def pairs(count=20, longest=7, seed=0):
    src, tgt = (random_sentences(count, longest=longest, seed=seed + side) for side in (0, 100))
    return Encoded(*([np.array(ids, dtype=np.int32) for ids in side] for side in (src, tgt)))


@torch.no_grad()
def log_probs_one_by_one(model, encoded, i, prefix_only):
    """[T,V] of one sentence without any padding: by one forward pass, or by one for each prefix."""
    src = torch.tensor([[*encoded.src[i].tolist(), EOS]])
    tgt_in = torch.tensor([[BOS, *encoded.tgt[i].tolist()]])
    if prefix_only:
        logits = torch.stack([model(src, tgt_in[:, : t + 1])[0, -1] for t in range(tgt_in.shape[1])])
    else:
        logits = model(src, tgt_in)[0]
    return logits.log_softmax(-1)


def by_hand(model, encoded, indices, prefix_only=False):
    """(nll a token, accuracy, nll of EOS) of sentences, one by one."""
    nll, right, eos = [], [], []
    for i in indices:
        target = [*encoded.tgt[i].tolist(), EOS]
        log_probs = log_probs_one_by_one(model, encoded, i, prefix_only)
        nll += [-float(log_probs[t, token]) for t, token in enumerate(target)]
        right += [int(log_probs[t].argmax()) == token for t, token in enumerate(target)]
        eos.append(nll[-1])
    return sum(nll) / len(nll), sum(right) / len(right), sum(eos) / len(eos)


@pytest.mark.parametrize("arm", [*ARMS])
def test_both_losses_equal_the_plain_loop_over_the_arms_own_code(arm):
    model, encoded = small_model(ARMS[arm]).double(), pairs(8)
    for measured, prefix_only in ((teacher_forced, False), (prefix_scored, True)):
        result = measured(model, encoded)
        nll, accuracy, eos_nll = by_hand(model, encoded, range(8), prefix_only)
        assert result.nll == pytest.approx(nll, abs=1e-10)
        assert result.accuracy == pytest.approx(accuracy)
        assert result.eos_nll == pytest.approx(eos_nll, abs=1e-10)
        assert result.ppl == pytest.approx(math.exp(nll))
        assert result.sentences == 8
        assert result.tokens == sum(len(ids) + 1 for ids in encoded.tgt)


@pytest.mark.parametrize("arm", [*NO_LEAK])
def test_prefix_loss_is_the_teacher_forced_one_without_a_leak(arm):
    model, encoded = small_model(NO_LEAK[arm]), pairs()
    assert prefix_scored(model, encoded).nll == pytest.approx(teacher_forced(model, encoded).nll, abs=1e-5)


@pytest.mark.parametrize("arm", [*(WRONG_MASK | WRONG_AXES)])
def test_prefix_loss_is_another_one_in_leaking_and_length_dependent_arms(arm):
    model, encoded = small_model(ARMS[arm]), pairs()
    assert abs(prefix_scored(model, encoded).nll - teacher_forced(model, encoded).nll) > 1e-4


@pytest.mark.parametrize("measured", [teacher_forced, prefix_scored])
@pytest.mark.parametrize("arm", ["correct", "wrong_split", "wrong_merge"])
def test_R30_losses_do_not_depend_on_the_batch(arm, measured):
    model, encoded = small_model(ARMS[arm]), pairs()
    alone = measured(model, encoded, batch_sentences=1).nll
    assert measured(model, encoded, batch_sentences=7).nll == pytest.approx(alone, abs=1e-6)
    parts = [measured(model, encoded, part) for part in (range(8), range(8, 20))]
    assert (parts[0] + parts[1]).nll == pytest.approx(alone, abs=1e-6)


@pytest.mark.parametrize("measured", [teacher_forced, prefix_scored])
def test_R30_dropout_is_off_while_scoring_and_on_again_after(measured):
    model, encoded = small_model(dropout=0.4), pairs(8)
    expected = measured(model, encoded)
    model.train()
    model.encoder_norm.eval()  # a part that someone froze stays frozen
    before, torch_before = model.stream.state(), torch.get_rng_state()
    assert measured(model, encoded) == expected
    assert model.training
    assert not model.encoder_norm.training
    assert model.stream.state() == before
    assert torch.equal(torch.get_rng_state(), torch_before)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_R30_mode_comes_back_after_an_error():
    model = small_model().train()
    with contextlib.suppress(KeyError), eval_mode(model):
        assert not any(module.training for module in model.modules())
        raise KeyError
    assert all(module.training for module in model.modules())


def test_R23_padding_does_not_count():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(5, 100, 29, generator=generator)
    target = torch.randint(4, 29, (5, 100), generator=generator)
    target[:, 7], target[:, 8:] = EOS, PAD
    short, padded = TokenLoss.of(logits[:, :10], target[:, :10]), TokenLoss.of(logits, target)
    assert short == padded
    assert short.tokens == 40
    expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD)
    assert short.nll == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.parametrize("measured", [teacher_forced, prefix_scored])
def test_no_sentence_is_an_error_and_not_a_nan(measured):
    with pytest.raises(ValueError, match="no sentence"):
        measured(small_model(), Encoded([], []))
    with pytest.raises(ValueError, match="no sentence"):
        measured(small_model(), pairs(3), [])


def test_half_precision_is_near_and_the_loss_itself_stays_in_fp32():
    model, encoded = small_model(), pairs()
    full, half = (
        teacher_forced(model, encoded, precision=precision) for precision in (Precision.fp32, Precision.bf16)
    )
    assert half.nll == pytest.approx(full.nll, abs=0.03)
    assert half.nll != full.nll
    logits, target = torch.tensor([[8.0, 0.0, 0.0]]), torch.tensor([0]) + 1
    wide = TokenLoss.of(logits.bfloat16(), target)
    assert wide.nll == pytest.approx(math.log(math.exp(8) + 2), rel=1e-7)


def test_dev_metrics_measure_the_gap_on_one_set_of_sentences():
    model, encoded = small_model(ARMS["after_softmax"]), pairs(14)
    metrics = dev_metrics(model, encoded, prefix_sentences=6)
    assert metrics["dev/nll"] == pytest.approx(teacher_forced(model, encoded).nll, abs=1e-6)
    assert metrics["dev/ppl"] == pytest.approx(math.exp(metrics["dev/nll"]))
    assert metrics["dev/accuracy"] == teacher_forced(model, encoded).accuracy
    prefix = prefix_scored(model, encoded, range(6))
    assert metrics["dev/prefix_nll"] == prefix.nll
    assert metrics["dev/leak_gap"] == prefix.nll - teacher_forced(model, encoded, range(6)).nll
    assert (
        dev_metrics(model, encoded, prefix_sentences=99)["dev/prefix_nll"]
        == prefix_scored(model, encoded).nll
    )


def test_batches_of_equal_lengths_hold_every_sentence_once_in_order():
    lengths = [3, 1, 3, 2, 3, 1]
    assert equal_lengths(lengths, 2) == [[1, 5], [3], [0, 2], [4]]
    assert equal_lengths([], 2) == []
    with pytest.raises(ValueError, match="at least 1"):
        equal_lengths(lengths, 0)


@pytest.mark.parametrize(("arm", "leaks"), [("correct", False), ("zero_fill", True)])
def test_R26_random_targets_can_only_be_guessed_by_a_model_that_sees_them(arm, leaks):
    """3 random pieces of 4, then EOS: 3/4 ln 4 nats a token, and less only for a model that was shown the answer."""
    model = small_model(ARMS[arm], vocab_size=8, decoder_layers=1).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    generator = torch.Generator().manual_seed(2)

    def texts(count):
        tgt = torch.randint(4, 8, (count, 3), generator=generator)
        return Encoded([np.zeros(0, dtype=np.int32)] * count, [*tgt.numpy().astype(np.int32)])

    for _ in range(200):
        batch = collate(texts(48), range(48))
        logits = model(batch.src, batch.tgt_in)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch.tgt_out.flatten()).backward()
        optimizer.step()

    held_out, chance = texts(200), 0.75 * math.log(4)
    forced, prefix = teacher_forced(model, held_out).nll, prefix_scored(model, held_out).nll
    assert prefix > chance - 0.02
    if leaks:
        assert forced < 0.7 * chance
        assert prefix > forced + 1
    else:
        assert forced == pytest.approx(chance, abs=0.05)
        assert prefix == pytest.approx(forced, abs=1e-5)

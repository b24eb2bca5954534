"""The loop on a few random sentences: resuming, accumulating, clipping, diverging, stopping early."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from attnlab.compose import load
from attnlab.data.batching import Encoded, collate, padding_share
from attnlab.errors import UserError
from attnlab.measure.gradients import parameter_norms
from attnlab.model.initialise import build
from attnlab.training.loop import Diverged, Interrupted, Looks, Trainer, due

SMALL = [
    "model.d_model=16", "model.heads=2", "model.d_ff=16", "model.encoder_layers=1", "model.decoder_layers=1",
    "train.batch_tokens=60", "train.steps=20", "train.warmup=2", "train.checkpoint_every=5", "measure.log_every=1",
    "measure.every=4", "measure.evaluate_every=4", "train.average_last=2",
]  # fmt: skip


def pairs(count=60, vocab=40):
    random = np.random.default_rng(0)
    sides = (
        [random.integers(4, vocab, random.integers(2, 9)).astype(np.int32) for _ in range(count)]
        for _ in range(2)
    )
    return Encoded(*sides)


def trainer(*overrides, data=None):
    config = load([*SMALL, *overrides])
    model = build(config.model, config.attention, 40, config.seed)
    return Trainer(model, data or pairs(), config, torch.device("cpu"))


def looks_of(one, *, stop_at=None, judge=lambda step: {"dev/prefix_nll": -step}):
    kept = {"records": [], "states": []}
    made = Looks(
        gradients=lambda: parameter_norms(one.model),
        probe=lambda step: {},
        evaluate=judge,
        record=lambda step, metrics: kept["records"].append((step, metrics)),
        save=lambda state: kept["states"].append(copy.deepcopy(state)),
        stop_asked=lambda: one.progress.step == stop_at,
    )
    return made, kept


def trained(one, **more):
    looks, kept = looks_of(one, **more)
    one.run(looks)
    return kept


def without_speed(records):
    return [(step, {k: v for k, v in metrics.items() if "speed" not in k}) for step, metrics in records]


@pytest.mark.parametrize(
    "stop", [3, 5, 8, 11, 19]
)  # in mid-epoch, at a checkpoint, near the edges of an epoch
@pytest.mark.parametrize(
    "more", [[], ["train.accumulate=3"], ["train.precision=bf16"], ["measure.log_every=4"]]
)
def test_R54_resumed_is_bit_for_bit_the_same_as_never_stopped(stop, more):
    straight = trainer(*more)
    whole = trained(straight)
    first = trainer(*more)
    looks, kept = looks_of(first, stop_at=stop)
    with pytest.raises(Interrupted):
        first.run(looks)
    second = trainer(*more)
    second.load_state(kept["states"][-1])
    rest = trained(second)
    for name, tensor in straight.averaged().items():
        assert torch.equal(tensor, second.averaged()[name]), name
    assert without_speed(kept["records"] + rest["records"]) == without_speed(whole["records"])


def test_R25_accumulated_micro_batches_equal_one_large_batch():
    data = pairs(32)
    whole, parts = (trainer("model.dropout=0", "model.attention_dropout=0", data=data) for _ in range(2))
    large = collate(data, range(32))
    small = [collate(data, range(start, start + 8)) for start in range(0, 32, 8)]
    sums = whole.backward([large]), parts.backward(small)
    torch.testing.assert_close(sums[0].nll, sums[1].nll)
    gradients = [torch.cat([p.grad.flatten() for p in one.model.parameters()]) for one in (whole, parts)]
    torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-6)
    norms = [
        one.update(lambda one=one: parameter_norms(one.model))["train/grad/norm"] for one in (whole, parts)
    ]
    assert norms[0] == pytest.approx(norms[1], rel=1e-5)


def test_R25_one_norm_is_recorded_for_each_optimiser_step():
    records = trained(trainer("train.accumulate=3", "train.steps=4"))["records"]
    assert [step for step, metrics in records if "train/grad/norm" in metrics] == [1, 2, 3, 4]


def test_R56_norms_before_and_after_clipping_have_their_own_names():
    one = trainer("train.clip=0.01")
    for _, metrics in trained(one)["records"][1:]:
        assert metrics["train/grad/norm"] > 0.01
        assert metrics["train/grad/norm_clipped"] == pytest.approx(0.01)
    norm = math.sqrt(sum(float(p.grad.square().sum()) for p in one.model.parameters()))
    assert norm == pytest.approx(0.01, rel=1e-3)  # the gradient that the last step used


def test_without_clipping_both_norms_are_equal():
    for _, metrics in trained(trainer("train.clip=null"))["records"][1:]:
        assert metrics["train/grad/norm_clipped"] == pytest.approx(metrics["train/grad/norm"])


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_R43_non_finite_loss_ends_as_diverged_at_its_step(broken):
    one = trainer()
    looks, _ = looks_of(one)
    looks = replace(looks, save=lambda state: torch.nn.init.constant_(one.model.projection, broken))
    with pytest.raises(Diverged, match="non-finite loss at step 6"):
        one.run(looks)


def test_R43_non_finite_gradients_end_as_diverged():
    one = trainer()
    one.backward([collate(one.data, range(8))])
    next(one.model.parameters()).grad[0] = math.nan
    with pytest.raises(Diverged, match="non-finite gradients"):
        one.update(dict)


def test_R56_overflow_of_the_fp16_scale_skips_the_step_and_counts_it():
    one = trainer("train.precision=fp16")
    one.backward([collate(one.data, range(8))])
    before = one.model.projection.detach().clone()
    one.model.projection.grad.fill_(math.inf)
    metrics = one.update(lambda: {"train/grad/norm": 0.0})
    assert torch.equal(before, one.model.projection)
    assert metrics["train/grad/skipped_steps"] == 1


def test_R56_gradients_that_stay_non_finite_under_fp16_are_a_divergence():
    one = trainer("train.precision=fp16", "train.steps=60")
    one.model.encoder[0].self_attention.w_q.weight.register_hook(lambda grad: grad * math.nan)
    looks, _ = looks_of(one)
    with pytest.raises(Diverged, match="non-finite gradients"):
        one.run(looks)


def test_a_checkpoint_of_another_kind_of_device_is_refused():
    one = trainer()
    with pytest.raises(UserError, match="begun on cuda"):
        one.load_state(one.state() | {"device": "cuda"})


def test_R56_fp16_norm_is_that_of_unscaled_gradients():
    norms = []
    for precision in ("fp32", "fp16"):
        one = trainer(f"train.precision={precision}", "model.dropout=0", "model.attention_dropout=0")
        one.backward([collate(one.data, range(8))])
        norms.append(one.update(lambda one=one: parameter_norms(one.model))["train/grad/norm"])
    assert norms[1] == pytest.approx(norms[0], rel=0.02)


def test_early_stop_counts_evaluations_without_a_better_prefix_loss():
    kept = trained(trainer("train.patience=2"), judge=lambda step: {"dev/prefix_nll": min(step, 4) * -1.0})
    assert kept["records"][-1][0] == 12  # best at 4, no better at 8 and 12


def test_steps_0_measures_the_fresh_model_and_trains_nothing():
    one = trainer("train.steps=0", "train.warmup=0")
    before = copy.deepcopy(one.model.state_dict())
    kept = trained(one)
    assert [step for step, _ in kept["records"]] == [0]
    assert all(torch.equal(before[name], tensor) for name, tensor in one.averaged().items())


def test_average_is_over_the_last_checkpoints():
    one = trainer()
    states = trained(one)["states"]
    expected = (states[-2]["model"]["projection"].double() + states[-1]["model"]["projection"].double()) / 2
    torch.testing.assert_close(one.averaged()["projection"].double(), expected)


def test_R53_every_arm_of_a_seed_sees_the_same_batches():
    seen = []
    for arm in ("correct", "no_scale", "zero_fill"):
        batches = trainer(f"attention={arm}").batches()
        seen.append([next(batches).indices for _ in range(15)])
    assert seen[0] == seen[1] == seen[2]
    other = trainer("seed=2").batches()
    assert seen[0] != [next(other).indices for _ in range(15)]


def test_padding_of_both_sides_is_recorded():
    one = trainer("measure.log_every=20")
    batches = trainer().batches()
    seen = [next(batches).indices for _ in range(20)]
    source, target = padding_share(one.data, seen)
    metrics = trained(one)["records"][-1][1]
    assert metrics["train/data/source_padding"] == pytest.approx(source)
    assert metrics["train/data/target_padding"] == pytest.approx(target) == 0


def test_due_is_each_so_many_steps_and_the_last():
    assert [step for step in range(1, 11) if due(step, 4, 10)] == [4, 8, 10]


@pytest.mark.parametrize("arm", ["correct", "no_scale", "zero_fill", "mask_after_softmax", "inverted_mask", "wrong_split", "wrong_merge", "additive", "qk_norm"])  # fmt: skip
def test_every_arm_learns_to_repeat_one_batch(arm):
    data = Encoded(pairs(8).src, [np.array([5, 6, 7, 8], dtype=np.int32)] * 8)
    one = trainer(
        f"attention={arm}", "train.steps=120", "train.lr=0.02", "train.label_smoothing=0", data=data
    )
    records = trained(one)["records"]
    assert records[-1][1]["train/loss/nll"] < 0.5 * records[1][1]["train/loss/nll"]


@pytest.mark.slow
def test_R10_unscaled_scores_that_overflow_fp16_are_a_divergence_and_not_a_bleu_of_0():
    one = trainer(
        "attention=no_scale", "model.d_k=512", "train.precision=fp16", "train.lr=1", "train.steps=200"
    )
    looks, _ = looks_of(one)
    with pytest.raises(Diverged, match="non-finite"):
        one.run(looks)

"""Tokens a second, against a clock that the test sets and against the batches themselves."""

import numpy as np
import pytest
import torch
from small_work import job

from attnlab.bench.meter import TokenMeter, watch_optimizer
from attnlab.bench.systems import ours, plain
from attnlab.compose import load
from attnlab.data.batching import epoch_batches
from attnlab.run import read_text
from attnlab.streams import stream_seed


def clock(*moments):
    left = iter(moments)
    return lambda: next(left)


def test_a_speed_is_all_counted_tokens_over_all_the_time_since_the_warm_up():
    meter = TokenMeter(2, clock(10.0, 14.0, 15.0, 17.0, 17.5))
    for tokens in (7, 100, 50, 80, 40):
        meter.step(tokens)
    values = meter.values()
    assert values["tokens_per_second"] == 170 / 3.5  # and no mean or median of 50, 40 and 80
    assert values["tokens_per_step"] == pytest.approx(170 / 3)
    assert values["first_step"] == 10.0
    assert values["peak_mb_1/4"] <= values["peak_mb_4/4"]


def test_the_first_step_has_no_beginning():
    with pytest.raises(ValueError, match="1 or more"):
        TokenMeter(0)
    meter = TokenMeter(1)
    meter.step(5)
    with pytest.raises(ValueError, match="1 optimiser steps ended, 1 of them"):
        meter.values()


def test_every_step_of_any_optimiser_counts_while_it_is_watched():
    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.ones(2)
    optimizers = [torch.optim.SGD([weight], lr=0.1), torch.optim.AdamW([weight], lr=0.1)]
    meter = TokenMeter(1)
    with watch_optimizer(meter, lambda: 11):
        for optimizer in (*optimizers, optimizers[0]):
            optimizer.step()
    optimizers[0].step()
    assert meter.tokens == [11, 11, 11]


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    return tmp_path_factory.mktemp("bench")


@pytest.mark.parametrize("seed", [1, 2])
def test_our_tokens_are_those_of_the_batches_of_the_round(output, seed):
    work = job(output, seed=seed)
    config = load(work.work.overrides("fp32", 1, 5))
    text = read_text(config)
    order = epoch_batches(text.train, 256, stream_seed(seed, "order"), 0, config.train.equal_target_lengths)
    counted = [sum(len(text.train.tgt[i]) + 1 for i in batch) for batch in order[1:5]]
    assert ours.measure(work)["tokens_per_step"] == sum(counted) / 4


@pytest.mark.parametrize("settings", [(), ("buckets",)])
def test_plain_tokens_are_those_of_its_batches(output, settings, monkeypatch):
    text = read_text(load(job(output).work.overrides("fp32", 1, 5)))
    cut = []

    def noted(*arguments):
        cut.extend(batches := list(real(*arguments)))
        return iter(batches)

    real = plain.batches
    monkeypatch.setattr(plain, "batches", noted)
    values = plain.measure(job(output, settings=settings, seed=3))
    counted = [sum(len(text.train.tgt[i]) + 1 for i in batch) for batch in cut[1:5]]
    assert values["tokens_per_step"] == sum(counted) / 4
    assert values["tokens_per_second"] > 0
    of_the_round = real(text.train, 256, bool(settings), np.random.default_rng(3))
    assert cut[:5] == [next(of_the_round) for _ in range(5)]


def test_a_seed_of_the_user_s_is_kept_in_all_rounds(output):
    assert [ours.ready(job(output, seed=seed), 2, ("seed=7",)).config.seed for seed in (1, 2)] == [7, 7]

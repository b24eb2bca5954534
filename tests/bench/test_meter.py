"""Tokens a second, against a clock that the test sets and against the batches themselves."""

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


def test_a_rate_is_the_step_s_tokens_over_the_time_since_the_step_before():
    meter = TokenMeter(2, clock(10.0, 14.0, 15.0, 17.0, 17.5))
    for tokens in (7, 100, 50, 80, 30):
        meter.step(tokens)
    assert meter.rates() == [50.0, 40.0, 60.0]
    values = meter.values()
    assert values["tokens_per_second"] == 50.0
    assert values["tokens_per_step"] == pytest.approx(160 / 3)
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


def test_our_tokens_are_those_of_the_batches(output):
    work = job(output)
    config = load(work.work.overrides("fp32", 1, 5))
    text = read_text(config)
    order = epoch_batches(
        text.train, 256, stream_seed(config.seed, "order"), 0, config.train.equal_target_lengths
    )
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
    values = plain.measure(job(output, settings=settings))
    counted = [sum(len(text.train.tgt[i]) + 1 for i in batch) for batch in cut[1:5]]
    assert values["tokens_per_step"] == sum(counted) / 4
    assert values["tokens_per_second"] > 0

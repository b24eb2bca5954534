"""The limit does exactly the matrix products of the model, by the count of torch itself."""

import pytest
import torch
from small_work import job, small
from torch.utils.flop_counter import FlopCounterMode

from attnlab.bench.systems import limit
from attnlab.bench.systems.limit import Attention, Linear, Shape, prepared, products
from attnlab.bench.systems.ours import ready
from attnlab.compose import load
from attnlab.data.tokenizer import EOS
from attnlab.model.initialise import build
from attnlab.training.loss import losses

VOCABULARY = 50


def counted(call) -> int:
    with FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


def test_the_operations_of_a_training_step_are_those_that_torch_counts(tmp_path):
    work = small(tmp_path)
    config = load(work.overrides("fp32", 1, 2))
    model = build(config.model, config.attention, VOCABULARY, 1)
    model.eval()  # dropout multiplies no matrices
    shape = Shape(sentences=3, source=7, target=5, tokens=15)
    draw = torch.Generator().manual_seed(1)
    src, tgt_in, tgt_out = (
        torch.randint(EOS + 1, VOCABULARY, (3, length), generator=draw) for length in (7, 5, 5)
    )

    def step():
        losses(model(src, tgt_in), tgt_out, 0.1).smoothed.backward()

    assert sum(product.flops for product in products(work, shape, VOCABULARY)) == counted(step)


def test_padding_of_the_target_does_not_reach_the_vocabulary(tmp_path):
    work = small(tmp_path)
    whole, padded = (products(work, Shape(3, 7, 5, tokens), VOCABULARY) for tokens in (15, 11))
    assert whole[:-1] == padded[:-1]
    assert padded[-1] == Linear(11, 16, VOCABULARY)


@pytest.mark.parametrize("product", [Linear(6, 4, 5), Attention(4, 3, 7, 2)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_timed_is_what_is_counted(product, dtype):
    call = prepared(product, dtype)
    assert counted(call) == product.flops


def test_the_flops_of_one_product_by_hand():
    assert Linear(6, 4, 5).flops == 3 * 2 * 6 * 4 * 5
    assert Attention(4, 3, 7, 2).flops == 6 * 2 * 4 * 3 * 7 * 2


def test_the_limit_is_all_counted_tokens_over_all_their_time(tmp_path, monkeypatch):
    asked = job(tmp_path, warmup=1, steps=2)
    cut = [Shape(2, 5, 4, tokens) for tokens in (8, 6, 7)]
    monkeypatch.setattr(limit, "shapes", lambda _: ((shape, VOCABULARY) for shape in cut))
    clock = iter([0.0, 9.0, 10.0, 12.0, 20.0, 20.5])  # 2 s and 0.5 s count
    monkeypatch.setattr(limit.time, "perf_counter", lambda: next(clock))
    values = limit.measure(asked)
    assert values["tokens_per_second"] == 13 / 2.5
    flops = sum(product.flops for shape in cut[1:] for product in products(asked.work, shape, VOCABULARY))
    assert values["gflop_per_second"] == pytest.approx(flops / 2.5 / 1e9)


def test_the_limit_has_the_shapes_of_our_batches_of_the_round(tmp_path):
    first, second = ([shape for shape, _ in limit.shapes(job(tmp_path, seed=seed))] for seed in (1, 2))
    batches = ready(job(tmp_path, seed=2), 5).trainer.batches()
    assert [shape.tokens for shape in second] == [next(batches).target_tokens for _ in range(5)]
    assert first != second

"""The limit does exactly the matrix products of the model, by the count of torch itself."""

import pytest
import torch
from small_work import small
from torch.utils.flop_counter import FlopCounterMode

from attnlab.bench.systems.limit import Attention, Linear, Shape, prepared, products
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

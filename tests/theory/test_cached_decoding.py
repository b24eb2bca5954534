"""Cached decoding of a mask-bug model is the correct mask over the same weights, whatever the depth.

A cache holds no future, so the newest row's buggy term is exactly absent: after-softmax has m = 1, zero-fill f = 0.
Recomputing the prefix is the same only for one decoder layer: with two, older rows of layer 1 still carry the bug.
"""

from dataclasses import replace

import pytest
import torch

from attnlab.config import Mask, ModelConfig, Norm
from attnlab.model.initialise import build
from attnlab.theory.factors import CORRECT

ARMS = {
    "after_softmax": replace(CORRECT, mask=Mask.after_softmax),
    "zero_fill": replace(CORRECT, mask_fill=0.0),
    "no_mask": replace(CORRECT, mask=Mask.none),
}


def models(arm: str, layers: int):
    size = ModelConfig(
        name="test", d_model=12, heads=3, d_k=None, d_v=None, d_ff=16, encoder_layers=1, decoder_layers=layers,
        dropout=0.0, attention_dropout=0.0, norm=Norm.pre, tie_embeddings=True,
    )  # fmt: skip
    return [build(size, factors, 20, seed=1).double().eval() for factors in (ARMS[arm], CORRECT)]


def cached_logits(model, src, tgt):
    state = model.start(model.encode(src, src != 0), src != 0)
    return torch.stack([state.step(tgt[:, t]) for t in range(tgt.shape[1])], dim=1)


def prefix_logits(model, src, tgt):
    return torch.stack([model(src, tgt[:, : t + 1])[:, -1] for t in range(tgt.shape[1])], dim=1)


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(2)
    return torch.randint(4, 20, (3, 6), generator=generator), torch.randint(
        4, 20, (3, 7), generator=generator
    )


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("layers", [1, 2])
@torch.no_grad()
def test_R04_cached_is_the_correct_mask(arm, layers, batch):
    wrong, right = models(arm, layers)
    torch.testing.assert_close(cached_logits(wrong, *batch), right(*batch), rtol=0, atol=1e-12)
    assert (wrong(*batch) - right(*batch)).abs().max() > 1e-4


@pytest.mark.parametrize("arm", ARMS)
@torch.no_grad()
def test_prefix_recomputation_is_the_correct_mask_for_one_layer_only(arm, batch):
    wrong, right = models(arm, 1)
    torch.testing.assert_close(prefix_logits(wrong, *batch), right(*batch), rtol=0, atol=1e-12)
    wrong, right = models(arm, 2)
    assert (prefix_logits(wrong, *batch) - right(*batch)).abs().max() > 1e-4

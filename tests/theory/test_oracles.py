"""Our attention against four independent ones, with distinct sizes so that no transpose hides.

B = 2 sentences, H = 3 heads, Q = 5 queries, K = 7 keys, dk = 4, dv = 6 where the oracle allows it.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attnlab.config import Axes, Mask, Scale
from attnlab.model.attention import MultiHeadAttention, attend
from attnlab.theory.factors import CORRECT

B, H, Q, K, DK, DV = 2, 3, 5, 7, 4, 6


def random(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.fixture
def qkv() -> tuple[torch.Tensor, ...]:
    return random(B, H, Q, DK, seed=0), random(B, H, K, DK, seed=1), random(B, H, K, DV, seed=2)


@pytest.fixture
def keep() -> torch.Tensor:
    """[Q,K], True = may attend, no row empty, not symmetric."""
    return torch.ones(Q, K, dtype=torch.bool).tril(1)


def numpy_attention(q, k, v, keep):
    """Equation 1 in loops over sentence, head and query."""
    out = np.zeros((B, H, Q, DV))
    for b in range(B):
        for h in range(H):
            for i in range(Q):
                allowed = [j for j in range(K) if keep[i, j]]
                scores = [
                    sum(q[b, h, i, c] * k[b, h, j, c] for c in range(DK)) / math.sqrt(DK) for j in allowed
                ]
                exponentials = [math.exp(score) for score in scores]
                for weight, j in zip(exponentials, allowed, strict=True):
                    out[b, h, i] += weight / sum(exponentials) * v[b, h, j]
    return out


def test_numpy_from_scratch(qkv, keep):
    exact = numpy_attention(*(x.numpy() for x in qkv), keep.numpy())
    np.testing.assert_allclose(attend(*qkv, keep).out.numpy(), exact, rtol=0, atol=1e-14)


def test_R01_scaled_dot_product_attention_reads_true_as_may_attend(qkv, keep):
    torch.testing.assert_close(
        attend(*qkv, keep).out, F.scaled_dot_product_attention(*qkv, attn_mask=keep), rtol=0, atol=1e-14
    )
    opposite = F.scaled_dot_product_attention(*qkv, attn_mask=~keep)
    assert (attend(*qkv, keep).out - opposite).abs().max() > 0.1
    # an inverted table is our `inverted`; rows that it empties are zeros in both
    torch.testing.assert_close(attend(*qkv, keep, mask=Mask.inverted).out, opposite, rtol=0, atol=1e-14)


def copied(block: MultiHeadAttention, heads: int) -> nn.MultiheadAttention:
    """The library's block with our weights; it computes x W^T as nn.Linear does."""
    library = nn.MultiheadAttention(block.w_q.in_features, heads, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        library.in_proj_weight.copy_(torch.cat([block.w_q.weight, block.w_k.weight, block.w_v.weight]))
        library.in_proj_bias.copy_(torch.cat([block.w_q.bias, block.w_k.bias, block.w_v.bias]))
        library.out_proj.weight.copy_(block.w_o.weight)
        library.out_proj.bias.copy_(block.w_o.bias)
    return library


def block(factors=CORRECT, heads: int = H) -> MultiHeadAttention:
    torch.manual_seed(4)
    return MultiHeadAttention(heads * DK, heads, DK, DK, factors).double()


@pytest.mark.parametrize("heads", [1, 2, 8])
def test_R11_multihead_attention_with_copied_weights(heads, keep):
    ours = block(heads=heads)
    x_q, x_kv = random(B, Q, heads * DK, seed=5), random(B, K, heads * DK, seed=6)
    theirs, _ = copied(ours, heads)(x_q, x_kv, x_kv, attn_mask=~keep)  # True = may NOT attend
    torch.testing.assert_close(ours(x_q, x_kv, keep), theirs, rtol=0, atol=1e-14)


def test_padding_in_the_library_s_convention():
    ours = block()
    x_q, x_kv = random(B, Q, H * DK, seed=5), random(B, K, H * DK, seed=6)
    real = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])
    theirs, _ = copied(ours, H)(x_q, x_kv, x_kv, key_padding_mask=~real)
    torch.testing.assert_close(ours(x_q, x_kv, None, real[:, None, None]), theirs, rtol=0, atol=1e-14)


@pytest.mark.parametrize("factor", ["scale", "mask", "mask_fill", "split", "merge"])
def test_each_wrong_factor_differs_from_the_library(factor):
    wrong = {
        "scale": Scale.none, "mask": Mask.after_softmax, "mask_fill": 0.0, "split": Axes.no_transpose,
        "merge": Axes.no_transpose,
    }[factor]  # fmt: skip
    x, keep = random(B, Q, H * DK, seed=5), torch.ones(Q, Q, dtype=torch.bool).tril()
    theirs, _ = copied(block(), H)(x, x, x, attn_mask=~keep)
    difference = (block(replace(CORRECT, **{factor: wrong}))(x, x, keep) - theirs).abs().max()
    assert difference > 1e-3


@pytest.mark.parametrize("masked", [True, False])
def test_marian_blocks(masked, keep):
    """Marian adds 0 or -inf to the scores: the third convention."""
    transformers = pytest.importorskip("transformers")
    from transformers.models.marian.modeling_marian import MarianAttention

    config = transformers.MarianConfig(d_model=H * DK, attn_implementation="eager")
    ours = block()
    library = MarianAttention(H * DK, H, config=config).double().eval()
    names = {"q_proj": "w_q", "k_proj": "w_k", "v_proj": "w_v", "out_proj": "w_o"}
    for theirs, mine in names.items():
        getattr(library, theirs).load_state_dict(getattr(ours, mine).state_dict())
    x_q, x_kv = random(B, Q, H * DK, seed=5), random(B, K, H * DK, seed=6)
    additive = torch.zeros(Q, K, dtype=torch.float64).masked_fill(~keep, -math.inf) if masked else None
    y, _ = library(x_q, x_kv, attention_mask=additive)
    torch.testing.assert_close(ours(x_q, x_kv, keep if masked else None), y, rtol=0, atol=1e-14)

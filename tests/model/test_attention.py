"""Where an arm's setting holds, and what the arms are to each other. The library oracles are in tests/theory."""

import math
from dataclasses import replace

import pytest
import torch

from attnlab.compose import load
from attnlab.config import Axes, Mask, Site
from attnlab.model.attention import MultiHeadAttention, attend, attention_weights, merge_heads, split_heads
from attnlab.model.dropout import Dropout, DropoutStream
from attnlab.model.initialise import build
from attnlab.model.masks import causal, real_keys
from attnlab.model.places import factors_at


def block(*overrides, dropout=None, heads=4):
    factors = load([*overrides]).attention
    made = MultiHeadAttention(12, heads, 3, 5, factors, dropout=dropout)
    for name, parameter in made.named_parameters():
        torch.nn.init.normal_(parameter, generator=torch.Generator().manual_seed(len(name)))
    return made


X = torch.randn(2, 6, 12, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("arm", ["no_scale", "zero_fill", "mask_after_softmax", "no_mask", "inverted_mask"])
def test_a_mistake_in_some_heads_is_the_arm_there_and_correct_elsewhere(arm):
    some = block(f"attention={arm}", "attention.where.heads=[2,4]")
    wrong, right = block(f"attention={arm}"), block("attention=correct")
    keep = causal(6)
    parts = [
        one.attend(*one.project(X, one.w_q, one.w_k, one.w_v), keep, None) for one in (some, wrong, right)
    ]
    for head in range(4):
        expected = parts[1] if head in (1, 3) else parts[2]
        for ours, theirs in zip(parts[0], expected, strict=True):
            torch.testing.assert_close(ours[:, head], theirs[:, head])


def test_all_heads_marked_is_the_arm_and_shares_its_dropout():
    one, all_marked = (
        block("attention=zero_fill", *more, dropout=Dropout(0.5, DropoutStream(1)))
        for more in ([], ["attention.where.heads=[1,2,3,4]"])
    )
    torch.testing.assert_close(one(X, X, causal(6)), all_marked(X, X, causal(6)))


def test_setting_holds_at_the_named_sites_and_layers_alone():
    arm = load(
        ["attention=wrong_merge", "attention.where.sites=[decoder]", "attention.where.layers=[2]"]
    ).attention
    for site in Site:
        for layer in (1, 2):
            merge = Axes.no_transpose if (site, layer) == (Site.decoder, 2) else Axes.heads_first
            assert factors_at(arm, site, layer).merge is merge


def test_renormalised_mask_after_the_softmax_is_the_right_mask():
    scores = 3 * torch.randn(2, 3, 6, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    real = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])[:, None, None, :]
    right, control = (
        attention_weights(scores, causal(6), real, mask)
        for mask in (Mask.before_softmax, Mask.after_softmax_renormalized)
    )
    torch.testing.assert_close(right, control)


@pytest.mark.parametrize("fill", [0.0, -1.0, -10.0, -1e4])
def test_finite_fill_never_lets_padding_in(fill):
    real = torch.tensor([[True] * 4 + [False] * 2])[:, None, None, :]
    weights = attention_weights(torch.zeros(1, 1, 6, 6), causal(6), real, Mask.before_softmax, fill)
    assert weights[..., 4:].abs().max() == 0
    expected = (
        math.exp(fill) * 3 / (1 + 3 * math.exp(fill))
    )  # first query: one right key, three real keys of the future
    assert weights[0, 0, 0, 1:4].sum().item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("mask", [*Mask])
def test_R05_every_placement_works_in_every_precision(dtype, mask):
    q, k, v = (torch.randn(1, 2, 5, 4, dtype=dtype) for _ in range(3))
    for fill in (-math.inf, 0.0, -1e9) if mask is Mask.before_softmax else (-math.inf,):
        out, weights, _ = attend(q, k, v, causal(5), mask=mask, mask_fill=fill)
        assert out.dtype is dtype
        assert torch.isfinite(out).all()
        if mask is Mask.before_softmax and fill != 0.0:
            assert weights.triu(1).abs().max() == 0


def test_R06_a_key_that_both_masks_exclude_is_excluded_once():
    real = torch.tensor([[False, True, True, True]])[
        :, None, None, :
    ]  # left-padded: key 0 is padding, row 0 is empty
    scores = torch.randn(1, 1, 4, 4, requires_grad=True)
    weights = attention_weights(scores.bfloat16(), causal(4), real, Mask.before_softmax)
    both = torch.softmax(scores.bfloat16().float().masked_fill(~(causal(4) & real), -math.inf), -1)
    torch.testing.assert_close(weights[..., 1:, :], both[..., 1:, :])
    weights.sum().backward()
    assert torch.isfinite(scores.grad).all()


@pytest.mark.parametrize("mask", [Mask.before_softmax, Mask.inverted])
def test_R02_a_query_without_a_key_gives_zeros_and_finite_gradients(mask):
    q, k, v = (torch.randn(1, 1, 3, 4, requires_grad=True) for _ in range(3))
    keep = torch.tensor([[1, 1, 0], [0, 0, 0], [1, 0, 1]], dtype=torch.bool)
    out, weights, _ = attend(q, k, v, keep if mask is Mask.before_softmax else ~keep, mask=mask)
    assert weights[0, 0, 1].abs().max() == out[0, 0, 1].abs().max() == 0
    out.sum().backward()
    assert all(torch.isfinite(one.grad).all() for one in (q, k, v))


def test_R11_changing_one_token_s_value_changes_that_output_alone_under_identity_attention():
    heads = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(2))
    changed = heads.clone()
    changed[:, 3] += 1
    moved = [
        (merge_heads(split_heads(changed, 4, axes), merge) - merge_heads(split_heads(heads, 4, axes), merge)).abs().sum((0, 2)) > 0
        for axes, merge in ((Axes.heads_first, Axes.heads_first), (Axes.heads_first, Axes.no_transpose))
    ]  # fmt: skip
    assert moved[0].tolist() == [False, False, False, True, False]
    assert moved[1].sum() > 1


@pytest.mark.parametrize(
    "arm", ["correct", "no_scale", "additive", "qk_norm", "mask_after_softmax_renormalized"]
)
def test_R13_what_stands_in_padded_positions_changes_no_real_logit(arm):
    config = load([f"attention={arm}", "model.d_model=16", "model.heads=2", "model.dropout=0"])
    model = build(config.model, config.attention, 30, 1).double().eval()
    src, tgt = torch.randint(4, 30, (3, 7)), torch.randint(4, 30, (3, 5))
    src_keep, tgt_keep = torch.ones(3, 7, dtype=torch.bool), torch.ones(3, 5, dtype=torch.bool)
    src_keep[1, 4:] = tgt_keep[1, 3:] = False
    before = model(src, tgt, src_keep, tgt_keep)
    src[1, 4:], tgt[1, 3:] = 9, 11
    after = model(src, tgt, src_keep, tgt_keep)
    torch.testing.assert_close(before[tgt_keep], after[tgt_keep], rtol=0, atol=1e-12)
    assert torch.isfinite(after).all()
    torch.testing.assert_close(model(src[1:2, :4], tgt[1:2, :3])[0], after[1, :3], rtol=0, atol=1e-12)


def test_only_padding_is_refused_and_no_padding_is_no_mask():
    assert real_keys(torch.ones(2, 3, dtype=torch.bool)) is None
    with pytest.raises(ValueError, match="only padding"):
        real_keys(torch.tensor([[True, False], [False, False]]))


def test_additive_scores_are_bahdanau_s():
    one = block("attention=additive")
    q, k = torch.randn(2, 4, 5, 3), torch.randn(2, 4, 6, 3)
    scores = one.additive_scores(q, k)
    for b, h, i, j in ((0, 0, 0, 0), (1, 3, 4, 5), (0, 2, 3, 1)):
        assert scores[b, h, i, j].item() == pytest.approx(
            float(one.v_score[h] @ torch.tanh(q[b, h, i] + k[b, h, j])), rel=1e-4
        )


def test_qk_norm_scores_are_cosines_times_the_gain():
    one = block("attention=qk_norm")
    q, k, v = one.project(X, one.w_q, one.w_k, one.w_v)
    expected = one.gain * torch.nn.functional.cosine_similarity(
        q[..., :, None, :], k[..., None, :, :], dim=-1
    )
    torch.testing.assert_close(one.attend(q, k, v, None, None).scores, expected)


@pytest.mark.parametrize("name", ["scale", "mask", "split", "merge"])
def test_correct_has_no_mistake_left(name):
    wrong = load(["attention=no_scale"]).attention
    assert getattr(
        factors_at(replace(wrong, where=replace(wrong.where, sites=[])), Site.cross, 1), name
    ) == getattr(load([]).attention, name)

"""The loss against torch's own, and the fused path against the plain one."""

import pytest
import torch
import torch.nn.functional as F

from attnlab.data.tokenizer import PAD
from attnlab.training.loss import ROWS, losses, projected_losses


def example(tokens=40, vocab=30, width=8, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(4, tokens // 4, width, generator=generator, dtype=dtype, requires_grad=True)
    projection = torch.randn(vocab, width, generator=generator, dtype=dtype, requires_grad=True)
    targets = torch.randint(1, vocab, (4, tokens // 4), generator=generator)
    return hidden, projection, targets


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_R23_smoothed_and_plain_loss_are_torch_s_over_real_tokens(smoothing):
    hidden, projection, targets = example()
    targets[1, 3:] = PAD
    logits = hidden @ projection.T
    ours = losses(logits, targets, smoothing)
    kept = logits.flatten(0, 1)[targets.flatten() != PAD], targets[targets != PAD]
    torch.testing.assert_close(
        ours.smoothed, F.cross_entropy(*kept, label_smoothing=smoothing, reduction="sum")
    )
    torch.testing.assert_close(ours.nll, F.cross_entropy(*kept, reduction="sum"))
    assert ours.tokens == len(kept[1]) == 33
    assert not ours.nll.requires_grad


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("tokens", [40, 4 * ROWS, 4 * ROWS + 4])
def test_fused_path_has_the_plain_path_s_losses_and_gradients(smoothing, tokens):
    hidden, projection, targets = example(tokens)
    targets[2, 5:] = PAD
    plain, fused = (
        losses(hidden @ projection.T, targets, smoothing),
        projected_losses(hidden, projection, targets, smoothing),
    )
    torch.testing.assert_close(fused.smoothed, plain.smoothed)
    torch.testing.assert_close(fused.nll, plain.nll)
    assert fused.tokens == plain.tokens
    for ours, theirs in zip(
        torch.autograd.grad(fused.smoothed * 3, [hidden, projection]),
        torch.autograd.grad(plain.smoothed * 3, [hidden, projection]), strict=True,
    ):  # fmt: skip
        torch.testing.assert_close(ours, theirs)


def test_gradcheck():
    hidden, projection, targets = example(8, 6, 3)
    assert torch.autograd.gradcheck(
        lambda h, w: projected_losses(h, w, targets, 0.1).smoothed, (hidden, projection)
    )


def test_half_precision_products_stay_near_the_fp32_loss():
    hidden, projection, targets = example(dtype=torch.float32)
    exact = projected_losses(hidden, projection, targets, 0.1)
    with torch.autocast("cpu", torch.bfloat16):
        half = projected_losses(hidden, projection, targets, 0.1)
    assert half.smoothed.dtype is torch.float32
    torch.testing.assert_close(half.smoothed, exact.smoothed, rtol=1e-2, atol=0)


def test_R23_same_pairs_padded_more_have_the_same_loss():
    hidden, projection, targets = example()
    longer = torch.cat([hidden, torch.randn(4, 90, 8, dtype=torch.float64)], dim=1)
    padded = torch.cat([targets, torch.full((4, 90), PAD)], dim=1)
    torch.testing.assert_close(
        projected_losses(longer, projection, padded, 0.1).smoothed,
        projected_losses(hidden, projection, targets, 0.1).smoothed,
    )


def test_R23_only_padding_is_zero_tokens_and_zero_loss():
    hidden, projection, targets = example()
    nothing = projected_losses(hidden, projection, torch.full_like(targets, PAD), 0.1)
    assert (nothing.smoothed.item(), nothing.nll.item(), nothing.tokens) == (0.0, 0.0, 0)

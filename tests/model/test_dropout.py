"""Dropout: the rate, the scale, and a stream that nothing else moves."""

import pytest
import torch

from attnlab.model.dropout import Dropout, DropoutStream


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_rate_and_scale(p, dtype):
    mask = DropoutStream(1).mask(torch.empty(1000, 999, dtype=dtype), p)
    dropped = (mask == 0).double().mean().item()
    assert dropped == pytest.approx(
        p, abs=4 * (p * (1 - p) / 999_000) ** 0.5 + 1 / 65536
    )  # 4 SE and the rounding
    assert len(mask.unique()) == 2
    assert mask.max().item() == pytest.approx(1 / (1 - p), rel=0.005 if dtype is torch.bfloat16 else 1e-3)
    assert mask.dtype is dtype


def test_elements_are_independent():
    kept = (DropoutStream(3).mask(torch.empty(400, 500), 0.5) > 0).double() - 0.5
    for shift in (1, 2, 4, 500):
        a, b = kept.flatten()[:-shift], kept.flatten()[shift:]
        assert abs((a * b).mean().item()) * 4 < 4 / len(a) ** 0.5  # correlation within 4 SE of 0


def test_gradient_is_the_mask():
    x = torch.randn(50, 60, requires_grad=True)
    layer = Dropout(0.3, DropoutStream(1))
    layer(x).sum().backward()
    torch.testing.assert_close(x.grad, DropoutStream(1).mask(x, 0.3))


def test_identity_in_eval_mode_and_no_draw_is_spent():
    stream = DropoutStream(1)
    layer = Dropout(0.3, stream).eval()
    x = torch.randn(5, 5)
    assert layer(x) is x
    assert stream.state() == DropoutStream(1).state()


def test_state_goes_on_where_it_was_taken():
    stream = DropoutStream(1)
    stream.mask(torch.empty(7), 0.5)
    state, other = stream.state(), DropoutStream(2)
    other.load_state(state, torch.device("cpu"))
    assert torch.equal(stream.mask(torch.empty(1000), 0.5), other.mask(torch.empty(1000), 0.5))


def test_torch_s_global_stream_is_left_alone():
    before = torch.get_rng_state()
    DropoutStream(1).mask(torch.empty(100), 0.5)
    assert torch.equal(before, torch.get_rng_state())

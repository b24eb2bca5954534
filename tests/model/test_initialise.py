"""Initial weights: the spread that an arm starts from, and what two arms share."""

import math

import pytest
import torch

from attnlab.compose import load
from attnlab.model.attention import MultiHeadAttention
from attnlab.model.initialise import build, query_key_std
from attnlab.streams import stream_seed

WIDE = [
    "model.d_model=256",
    "model.heads=2",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "model.dropout=0",
]


def model(*overrides, seed=1, vocab=50):
    config = load([*WIDE, *overrides])
    return build(config.model, config.attention, vocab, seed)


@pytest.mark.parametrize("init", ["xavier", "xavier_packed", "torch_linear", "normal_002"])
@pytest.mark.parametrize("d_k", [16, 64])
def test_logit_sd_of_a_fresh_layer_is_gamma_squared_root_d_k(init, d_k):
    """Closed form: normalised x gives q.k the sd d_model std^2 sqrt(d_k), whatever the distribution's shape."""
    block = model(f"attention.init={init}", f"model.d_k={d_k}").encoder[0].self_attention
    x = torch.nn.functional.layer_norm(
        torch.randn(64, 40, 256, generator=torch.Generator().manual_seed(0)), [256]
    )
    q, k = block.project(x, block.w_q, block.w_k)
    scores = (q @ k.transpose(-2, -1)).detach()
    off_diagonal = ~torch.eye(40, dtype=torch.bool)
    expected = 256 * query_key_std(load([f"attention.init={init}"]).attention.init, 256) ** 2 * math.sqrt(d_k)
    assert scores[..., off_diagonal].std().item() == pytest.approx(expected, rel=0.12)


def test_init_stds_are_those_of_the_libraries():
    linear, packed = torch.nn.Linear(128, 128), torch.nn.MultiheadAttention(128, 4)
    inits = {
        name: load([f"attention.init={name}"]).attention.init for name in ("torch_linear", "xavier_packed")
    }
    assert query_key_std(inits["torch_linear"], 128) == pytest.approx(linear.weight.std().item(), rel=0.02)
    assert query_key_std(inits["xavier_packed"], 128) == pytest.approx(
        packed.in_proj_weight.std().item(), rel=0.02
    )


def test_folded_scale_computes_the_scaled_function_at_step_0():
    src, tgt = torch.randint(4, 50, (3, 7)), torch.randint(4, 50, (3, 5))
    scaled, folded, unscaled = (
        model(f"attention={arm}").eval()(src, tgt) for arm in ("correct", "no_scale_folded", "no_scale")
    )
    torch.testing.assert_close(folded, scaled, rtol=0, atol=1e-5)
    assert (unscaled - scaled).abs().max() > 1e-2


def test_folded_scale_in_one_head_changes_that_head_alone():
    whole, one = model("attention=correct"), model("attention=no_scale_folded", "attention.where.heads=[2]")
    before, after = (m.decoder[0].self_attention.w_q.weight.view(2, 128, 256) for m in (whole, one))
    assert torch.equal(before[0], after[0])
    torch.testing.assert_close(before[1] / math.sqrt(128), after[1])


@pytest.mark.parametrize(
    "other", ["attention=additive", "attention=qk_norm", "attention=wrong_split", "model.d_k=8"]
)
def test_arms_of_one_seed_share_every_parameter_of_equal_name_and_shape(other):
    ours, theirs = dict(model().named_parameters()), dict(model(other).named_parameters())
    shared = [name for name in ours if name in theirs and ours[name].shape == theirs[name].shape]
    assert len(shared) > 20
    assert all(torch.equal(ours[name], theirs[name]) for name in shared)


def test_another_seed_draws_other_weights_and_the_same_seed_the_same():
    one, same, other = (model(seed=seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(
        one["encoder.0.feed_forward.w_1.weight"], other["encoder.0.feed_forward.w_1.weight"]
    )


@pytest.mark.parametrize("tie", ["true", "false"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_R27_first_loss_is_that_of_unit_variance_logits(tie, norm):
    """Normalised hidden states against rows of variance 1 / d_model: logits N(0, 1), E nll = ln V + 1/2.

    Where the matrix is tied, one logit stands out by construction: the hidden state still holds its own input token,
    whose logit is up to sqrt(d_model). It is left out here.
    """
    fresh = model(f"model.tie_embeddings={tie}", f"model.norm={norm}", vocab=2000).eval()
    generator = torch.Generator().manual_seed(0)
    src, tgt, out = (torch.randint(4, 2000, (64, 9), generator=generator) for _ in range(3))
    logits = fresh(src, tgt)
    if tie == "true":
        own = logits.gather(-1, tgt[..., None])
        assert 0 < own.mean().item() < 16
        logits = logits.scatter(-1, tgt[..., None], -math.inf)
        out = torch.where(out == tgt, (out + 1) % 2000, out)
    nll = torch.nn.functional.cross_entropy(logits.flatten(0, 1), out.flatten()).item()
    assert nll == pytest.approx(math.log(2000) + 0.5, abs=0.15)


def test_R27_tied_matrices_are_one_and_count_once():
    tied, free = model("model.tie_embeddings=true"), model("model.tie_embeddings=false")
    assert (
        tied.projection.data_ptr()
        == tied.source_embedding.weight.data_ptr()
        == tied.target_embedding.weight.data_ptr()
    )
    count = {m: sum(p.numel() for p in m.parameters()) for m in (tied, free)}
    assert count[free] - count[tied] == 2 * 50 * 256
    assert tied.projection[0].abs().max() == 0


def test_R09_each_block_has_the_scale_of_its_own_key_size():
    for heads in (1, 2, 4, 8, 16):
        for block in model(f"model.heads={heads}", "model.d_model=512").modules():
            if isinstance(block, MultiHeadAttention):
                assert block.scale == pytest.approx((512 / heads) ** -0.5)


def test_streams_are_apart():
    seeds = {stream_seed(seed, name) for seed in range(50) for name in ("init/a", "order", "dropout")}
    assert len(seeds) == 150

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from arms import CORRECT
from small_model import random_batch, small_model
from torch import Tensor

from attnlab.config import Mask, Scale, Site
from attnlab.data.tokenizer import PAD
from attnlab.measure.gradients import activation_gradients, gradient_metrics, parameter_norms
from attnlab.model.attention import attend
from attnlab.model.masks import causal
from attnlab.model.recorder import AttentionRecord, Recorder
from attnlab.model.transformer import Transformer


def backward(model: Transformer) -> Transformer:
    batch = random_batch([(5, 7), (9, 4)])
    logits = model(batch.src, batch.tgt_in).flatten(0, 1)
    F.cross_entropy(logits, batch.tgt_out.flatten(), ignore_index=PAD).backward()
    return model


def norm_of(*gradients: Tensor) -> float:
    return math.sqrt(sum(float(gradient.double().square().sum()) for gradient in gradients))


def test_global_norm_is_that_of_torch_with_the_tied_matrix_once() -> None:
    model = backward(small_model())
    norms = parameter_norms(model)
    assert model.source_embedding.weight is model.projection
    assert norms["train/grad/norm"] == pytest.approx(
        torch.nn.utils.clip_grad_norm_(model.parameters(), math.inf).item(), rel=1e-6
    )
    assert norms["train/grad/embedding"] == pytest.approx(norm_of(model.projection.grad), rel=1e-6)


def test_groups_hold_what_they_say() -> None:
    model = backward(small_model())
    norms = parameter_norms(model)
    for part in ("w_q", "w_k", "w_v", "w_o"):
        for site, blocks in {
            "encoder": [layer.self_attention for layer in model.encoder],
            "decoder": [layer.self_attention for layer in model.decoder],
            "cross": [layer.cross_attention for layer in model.decoder],
        }.items():
            gradients = [getattr(block, part).weight.grad for block in blocks]
            assert norms[f"train/grad/{part}/{site}"] == pytest.approx(norm_of(*gradients), rel=1e-6)
            assert norms[f"train/grad/{part}/{site}/layer2"] == pytest.approx(norm_of(gradients[1]), rel=1e-6)
    layer = [parameter.grad for parameter in model.decoder[0].parameters()]
    assert norms["train/grad/decoder/layer1"] == pytest.approx(norm_of(*layer), rel=1e-6)
    layers = [f"{stack}/layer{i}" for stack in ("encoder", "decoder") for i in (1, 2)]
    parts = [norms[f"train/grad/{name}"] for name in ("embedding", "final_norm", *layers)]
    assert math.hypot(*parts) == pytest.approx(norms["train/grad/norm"])


def test_norms_before_the_first_backward_are_an_error() -> None:
    with pytest.raises(ValueError, match="after backward"):
        parameter_norms(small_model())


def test_R56_norm_is_that_before_clipping() -> None:
    model = backward(small_model())
    before = parameter_norms(model)["train/grad/norm"]
    torch.nn.utils.clip_grad_norm_(model.parameters(), before / 2)
    assert parameter_norms(model)["train/grad/norm"] == pytest.approx(before / 2, rel=1e-4)


# ------------------------------------------------------------------------------------ gradients to scores, q, k


def closed_form(mask: Mask, d_k: int = 5) -> tuple[AttentionRecord, Tensor, dict[str, Tensor]]:
    """A causal block in float64 with its loss, and dS, dQ, dK by hand: dS = p (dP - D).

    dP = dO v^T, D = sum p dP; forbidden pairs have dP = 0 where the mask comes after the softmax. dQ = c dS
    K.
    """
    generator = torch.Generator().manual_seed(3)
    q, k, v, upstream = torch.randn(4, 2, 3, 7, d_k, dtype=torch.float64, generator=generator)
    q, k = q.requires_grad_(), k.requires_grad_()
    keep, scale = causal(7), d_k**-0.5
    attended = attend(q, k, v, keep, mask=mask)
    record = AttentionRecord(Site.decoder, 1, q, k, v, attended.scores, attended.weights, keep, None)
    with torch.no_grad():
        visible = torch.ones_like(keep) if mask is Mask.after_softmax else keep
        p = attended.scores.masked_fill(~visible, -math.inf).softmax(dim=-1)
        d_p = (upstream @ v.mT).masked_fill(~keep, 0.0)
        d_s = p * (d_p - (p * d_p).sum(-1, keepdim=True))
        oracle = {"scores": d_s, "q": scale * d_s @ k, "k": scale * d_s.mT @ q}
    return record, (attended.out * upstream).sum(), oracle


@pytest.mark.parametrize("mask", [Mask.before_softmax, Mask.after_softmax])
def test_activation_gradients_are_the_closed_form(mask: Mask) -> None:
    record, loss, oracle = closed_form(mask)
    real = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])
    metrics = gradient_metrics([record], loss, real, real)
    for part, gradient in oracle.items():
        norms = gradient.norm(dim=-1)
        if part == "k":
            chosen, entries = norms.flatten().numpy(), gradient.flatten()
        else:  # real queries that have two keys or more
            chosen = torch.cat([norms[0, :, 1:7].flatten(), norms[1, :, 1:4].flatten()]).numpy()
            entries = torch.cat([gradient[0, :, 1:7], gradient[1, :, 1:4]], dim=1)
            if part == "scores":  # zero at forbidden keys by construction: no part of the spread
                entries = entries[:, torch.cat([causal(7)[1:], causal(7)[1:4]])]
            entries = entries.flatten()
        expected = {
            "rms": math.sqrt(np.mean(chosen**2)), "mean": np.mean(chosen), "median": np.median(chosen),
            "p10": np.quantile(chosen, 0.1), "p90": np.quantile(chosen, 0.9),
            "kurtosis": float((entries**4).mean() / (entries**2).mean() ** 2),
        }  # fmt: skip
        for name, value in expected.items():
            key = f"probe/grad_{part}_{name}/decoder"
            assert metrics[key] == pytest.approx(value, rel=1e-9), key
        assert metrics[f"probe/grad_{part}_median/decoder/layer1"] == pytest.approx(expected["median"])


RATIOS = [(16, 3.86, 3.11, 2.57), (64, 6.13, 3.87, 1.56), (128, 7.45, 4.02, 0.637)]


@pytest.mark.parametrize(("d_k", "rms", "mean", "median"), RATIOS)
def test_footnote_4_ratio_of_unscaled_to_scaled(d_k: int, rms: float, mean: float, median: float) -> None:
    """An independent simulation of 14 keys, unit Gaussians: the rms grows, the median alone vanishes."""
    generator = torch.Generator().manual_seed(d_k)
    n, rows = 14, 6_000
    q, upstream = (torch.randn(rows, 1, 1, d_k, generator=generator) for _ in range(2))
    k, v = (torch.randn(rows, 1, n, d_k, generator=generator) for _ in range(2))
    real, found = torch.ones(rows, 1, dtype=torch.bool), []
    for scale in (1.0, None):
        q_, k_ = q.clone().requires_grad_(), k.clone().requires_grad_()
        attended = attend(q_, k_, v, scale=scale)
        record = AttentionRecord(Site.cross, 1, q_, k_, v, attended.scores, attended.weights, None, None)
        found.append(gradient_metrics([record], (attended.out * upstream).sum(), real, real))
    unscaled, scaled = found
    for name, expected, tolerance in (("rms", rms, 0.05), ("mean", mean, 0.05), ("median", median, 0.08)):
        ratio = unscaled[f"probe/grad_q_{name}/cross"] / scaled[f"probe/grad_q_{name}/cross"]
        assert ratio == pytest.approx(expected, rel=tolerance), name


def test_activation_gradients_of_a_model_are_those_of_a_plain_backward() -> None:
    model, batch = small_model(), random_batch([(5, 7), (9, 4)])
    found = activation_gradients(model, batch)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert model.training

    recorder = Recorder(retain_grad=True)
    logits = model.eval()(batch.src, batch.tgt_in, recorder=recorder)
    nll = F.cross_entropy(logits.flatten(0, 1), batch.tgt_out.flatten(), reduction="none")
    (nll * (batch.tgt_out.flatten() != PAD)).sum().div(8 + 5).backward()
    record = next(record for record in recorder.records if record.site is Site.cross and record.layer == 2)
    for part, gradient, lengths in (("q", record.q.grad, (8, 5)), ("k", record.k.grad, (6, 10))):
        real = torch.cat([gradient[i, :, :n].flatten(0, 1) for i, n in enumerate(lengths)])
        rms = real.norm(dim=-1).square().mean().sqrt().item()
        assert found[f"probe/grad_{part}_rms/cross/layer2"] == pytest.approx(rms, rel=1e-5)
    layers = [found[f"probe/grad_q_median/cross/layer{layer}"] for layer in (1, 2)]
    assert found["probe/grad_q_median/cross"] == pytest.approx(np.mean(layers))


def test_an_arm_in_some_heads_still_has_gradients_of_q_and_k() -> None:
    arm = replace(CORRECT, scale=Scale.none, where=replace(CORRECT.where, heads=[1]))
    metrics = activation_gradients(small_model(arm), random_batch([(5, 7)]))
    assert metrics["probe/grad_q_rms/encoder"] > 0

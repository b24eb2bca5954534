"""Gradients: norms of what the optimiser gets, quantiles of what reaches the queries, keys and logits.

Footnote 4 of the paper says that large dot products leave "extremely small gradients". That is true of the
median query and false of the rms: past saturation the gradient is heavy-tailed. So no mean is ever given
without a median. Shapes: B sentences, H heads, Q queries, K keys.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from attnlab.config import Site
from attnlab.data.batching import Batch
from attnlab.data.tokenizer import PAD
from attnlab.measure.probes import Metrics, quiet, rows_with_choice
from attnlab.model.attention import MultiHeadAttention
from attnlab.model.recorder import AttentionRecord, Recorder
from attnlab.model.transformer import Transformer

PROJECTIONS = ("w_q", "w_k", "w_v", "w_o")
PER_LAYER = ("rms", "median")


def parameter_norms(model: Transformer) -> Metrics:
    """L2 norms of the parameters' .grad as they stand: call it once a step, unscaled and before clipping.

    `train/grad/norm` over all; `train/grad/embedding` (with the projection to the vocabulary); and for each
    stack and layer `train/grad/<encoder|decoder>/layer<l>`; `train/grad/<w_q|w_k|w_v|w_o>/<site>` and
    `.../layer<l>` of the matrices alone. A shared parameter counts once; parameters without gradient count as
    zero. Raises ValueError before the first backward pass.
    """
    # a shared parameter has one name here
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    if not gradients:
        raise ValueError("no parameter has a gradient: call parameter_norms after backward")
    norms = torch.stack(torch._foreach_norm(list(gradients.values()))).tolist()
    squares = {name: norm * norm for name, norm in zip(gradients, norms, strict=True)}

    sums: dict[str, float] = {}
    groups = _matrix_groups(model)
    for name, square in squares.items():
        for group in ("norm", _place(name), *groups.get(name, ())):
            sums[group] = sums.get(group, 0.0) + square
    return {f"train/grad/{group}": math.sqrt(total) for group, total in sums.items()}


def _place(name: str) -> str:
    """The part of the model that a parameter belongs to: decoder.0.norm_ff.weight -> decoder/layer1."""
    match name.split("."):
        case [("encoder" | "decoder") as stack, index, *_]:
            return f"{stack}/layer{int(index) + 1}"
        case _ if name.endswith(("embedding.weight", "projection")):
            return "embedding"
        case _:
            return "final_norm"


def _matrix_groups(model: nn.Module) -> dict[str, tuple[str, str]]:
    """Name of each attention matrix -> the groups that it is counted in besides its layer."""
    return {
        f"{name}.{part}.weight": (f"{part}/{block.site}", f"{part}/{block.site}/layer{block.layer}")
        for name, block in model.named_modules() if isinstance(block, MultiHeadAttention)
        for part in PROJECTIONS
    }  # fmt: skip


def mean_nll(logits: Tensor, targets: Tensor) -> Tensor:
    """Nats per token of logits [B,T,V] for targets [B,T]: a mean over all tokens that are not PAD."""
    return nn.functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), ignore_index=PAD)


def activation_gradients(model: Transformer, batch: Batch) -> Metrics:
    """Gradient of the batch's mean nll to scores, q and k, with dropout off: see `gradient_metrics`.

    Leaves no trace: parameters' .grad, the model's mode and all random streams stay as they are.
    """
    src_real, tgt_real = batch.src != PAD, batch.tgt_in != PAD
    with quiet(model), torch.enable_grad():
        recorder = Recorder()
        logits = model(batch.src, batch.tgt_in, src_real, tgt_real, recorder)
        return gradient_metrics(recorder.records, mean_nll(logits, batch.tgt_out), src_real, tgt_real)


def gradient_metrics(
    records: list[AttentionRecord], loss: Tensor, src_real: Tensor, tgt_real: Tensor
) -> Metrics:
    """`probe/grad_<scores|q|k>_<rms|mean|median|p10|p90|kurtosis>/<site>`, rms and median per layer too.

    `loss` is a scalar whose graph holds `records`; the graph is freed. Taken of |dL/ds_i|, |dL/dq_i| (a
    vector norm for each real query with two allowed keys or more, and head) and |dL/dk_j| (each real key and
    head), pooled within a layer, then averaged over the layers. Kurtosis is E g^4 / (E g^2)^2 of the single
    entries (of the scores: at allowed keys): 3 for a Gaussian.
    """
    tensors = [(part, record) for record in records for part in ("scores", "q", "k")]
    # inputs are named, so that nothing accumulates in .grad; an arm in some heads alone has no one score tensor
    inputs = [getattr(record, part) for part, record in tensors]
    gradients = torch.autograd.grad(loss, inputs, allow_unused=True)
    by_site: dict[str, list[float]] = {}
    metrics: Metrics = {}
    for (part, record), gradient in zip(tensors, gradients, strict=True):
        if gradient is None:
            continue
        queries = rows_with_choice(record, src_real if record.site is Site.encoder else tgt_real)
        match part:
            case "scores":
                spread = _spread(gradient, queries, queries[..., None] & record.allowed())
            case "q":
                spread = _spread(gradient, queries, queries[..., None])
            case "k":
                keys = _real_keys(record)
                spread = _spread(gradient, keys, keys[..., None])
        for name, value in spread.items():
            by_site.setdefault(f"probe/grad_{part}_{name}/{record.site}", []).append(value)
            if name in PER_LAYER:
                metrics[f"probe/grad_{part}_{name}/{record.site}/layer{record.layer}"] = value
    return {name: float(np.mean(values)) for name, values in by_site.items()} | metrics


def _real_keys(record: AttentionRecord) -> Tensor:
    """[B,1,K] bool: keys that are tokens."""
    batch, _, keys, _ = record.k.shape
    if record.real is None:
        return torch.ones(batch, 1, keys, dtype=torch.bool, device=record.k.device)
    return record.real[:, :, 0]


def _spread(gradient: Tensor, rows: Tensor, entries: Tensor) -> dict[str, float]:
    """Size of the vectors of `gradient` [B,H,N,d] in `rows` [B,1,N], tail of its `entries` [B,1,N,d or 1].

    Nothing without a row; no kurtosis of gradients that are all zero.
    """
    gradient = gradient.double()
    norms = gradient.norm(dim=-1)[rows.expand(gradient.shape[:-1])].cpu().numpy()
    if not len(norms):
        return {}
    p10, median, p90 = np.quantile(norms, [0.1, 0.5, 0.9])
    spread = {
        "rms": math.sqrt(np.mean(norms**2)), "mean": norms.mean(), "median": median, "p10": p10, "p90": p90,
    }  # fmt: skip
    single = gradient[entries.expand(gradient.shape)]
    second, fourth = single.square().mean().item(), single.pow(4).mean().item()
    if second != 0:
        spread["kurtosis"] = fourth / second**2
    return {name: float(value) for name, value in spread.items()}

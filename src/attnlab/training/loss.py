"""Token-weighted cross-entropy with label smoothing (Szegedy et al. 2016), and the plain nll beside it."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from attnlab.data.tokenizer import PAD

ROWS = 256  # tokens a chunk: the [ROWS,V] logits stay in the cache, and [N,V] never exists


class Losses(NamedTuple):
    """Sums over the real target tokens of a batch, in nats."""

    smoothed: Tensor  # differentiable
    nll: Tensor  # detached: what is reported, without the smoothing's floor
    tokens: int


def losses(logits: Tensor, targets: Tensor, smoothing: float) -> Losses:
    """logits [B,T,V], targets [B,T] ids -> sums over the tokens that are not PAD: the plain path.

    smoothed = (1 - smoothing) nll + smoothing * mean over V of -log p, as torch's `label_smoothing`.
    """
    logits, targets, tokens = _real(logits, targets)
    log_p = torch.log_softmax(logits.float() if logits.dtype.itemsize < 4 else logits, dim=-1)
    nll = -log_p.gather(-1, targets[:, None]).sum()
    return Losses((1 - smoothing) * nll - smoothing * log_p.mean(dim=-1).sum(), nll.detach(), tokens)


def projected_losses(hidden: Tensor, projection: Tensor, targets: Tensor, smoothing: float) -> Losses:
    """`losses` of the logits hidden [B,T,D] @ projection [V,D]^T, which are never held as a whole."""
    hidden, targets, tokens = _real(hidden, targets)
    smoothed, nll = ProjectedCrossEntropy.apply(hidden, projection, targets, smoothing)
    return Losses(smoothed, nll, tokens)


def _real(values: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, int]:
    """Rows of the real tokens, their targets and their number."""
    values, targets = values.flatten(0, -2), targets.flatten()
    real = targets != PAD
    tokens = int(real.sum())
    return (values, targets, tokens) if tokens == len(targets) else (values[real], targets[real], tokens)


class ProjectedCrossEntropy(torch.autograd.Function):
    """hidden [N,D], projection [V,D], targets [N] -> (sum of smoothed losses, sum of nll), gradients with them.

    The gradient to the logits is p - (1 - smoothing) onehot - smoothing / V. It is made in the forward pass, chunk
    by chunk while the chunk's softmax is at hand, and goes straight into the gradients of hidden and projection:
    three matrix products and one softmax, where log-softmax and its backward pass over [N,V] seven times. Under
    autocast the products take the half type, softmax and sums fp32, as autocast itself would do.
    """

    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx, hidden: Tensor, projection: Tensor, targets: Tensor,
        smoothing: float,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        device = hidden.device.type
        half = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else projection.dtype
        if (
            half is torch.float16
        ):  # p is made before the loss scale could lift its small entries into fp16's range
            half = projection.dtype
        wide = torch.promote_types(half, torch.float32)
        with torch.autocast(device, enabled=False):
            weight = projection.to(half)
            grad_hidden = torch.empty_like(hidden)
            grad_projection = torch.zeros_like(projection)
            smoothed, nll = hidden.new_zeros((), dtype=wide), hidden.new_zeros((), dtype=wide)
            for start in range(0, len(targets), ROWS):
                rows = slice(start, start + ROWS)
                h, index = hidden[rows].to(half), targets[rows, None]
                logits = (h @ weight.T).to(wide)
                label, mean, top = (
                    logits.gather(-1, index),
                    logits.mean(-1, keepdim=True),
                    logits.amax(-1, keepdim=True),
                )
                p = logits.sub_(top).exp_()
                total = p.sum(-1, keepdim=True)
                lse = top + total.log()
                nll += (lse - label).sum()
                smoothed += (lse - (1 - smoothing) * label - smoothing * mean).sum()
                p.div_(total).sub_(smoothing / len(projection))
                p.scatter_add_(-1, index, p.new_full(index.shape, smoothing - 1))
                grad = p.to(half)
                grad_hidden[rows] = grad @ weight
                grad_projection += grad.T @ h
        ctx.save_for_backward(grad_hidden, grad_projection)
        ctx.mark_non_differentiable(nll)
        return smoothed, nll

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor, Tensor, None, None]:
        grad_hidden, grad_projection = ctx.saved_tensors
        return grad_hidden * grad, grad_projection * grad, None, None

"""Token-weighted cross-entropy with label smoothing (Szegedy et al. 2016), and the plain nll beside it."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from attnlab.data.tokenizer import PAD

ROWS = 256  # tokens a chunk: its [ROWS,V] logits stay in the cache, and [N,V] never exists


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


def projected_losses(
    hidden: Tensor, projection: Tensor, targets: Tensor, smoothing: float, tokens: int | None = None
) -> Losses:
    """`losses` of the logits hidden [B,T,D] @ projection [V,D]^T, which are never held as a whole.

    tokens: how many targets are real, where the caller knows it; counting them would wait for a GPU.
    """
    hidden, targets, tokens = _real(hidden, targets, tokens)
    smoothed, nll = ProjectedCrossEntropy.apply(hidden, projection, targets, smoothing)
    return Losses(smoothed, nll, tokens)


def _real(values: Tensor, targets: Tensor, tokens: int | None = None) -> tuple[Tensor, Tensor, int]:
    """Rows of the real tokens, their targets and their number."""
    values, targets = values.flatten(0, -2), targets.flatten()
    tokens = int((targets != PAD).sum()) if tokens is None else tokens
    if tokens < len(targets):
        real = targets != PAD
        values, targets = values[real], targets[real]
    return values, targets, tokens


class ProjectedCrossEntropy(torch.autograd.Function):
    """hidden [N,D], projection [V,D], targets [N] -> (sum of smoothed losses, sum of nll), gradients with them.

    The gradient to the logits is p - (1 - smoothing) onehot - smoothing / V. It is made in the forward pass, chunk
    by chunk while exp(logits) is at hand, and goes straight into the gradients of hidden and projection. What divides
    or shifts a whole row is done to the [N,D] side of a product, so that few passes over [N,V] entries are left.
    Under autocast the products take the half type, softmax and sums fp32, as autocast itself would do.
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
        ):  # p is made before the loss scale could lift small entries into fp16's range
            half = projection.dtype
        wide = torch.promote_types(half, torch.float32)
        uniform = smoothing / len(projection)
        with torch.autocast(device, enabled=False):
            weight, mean_weight = projection.to(half), projection.mean(0)
            grad_hidden = torch.empty_like(hidden)
            grad_projection = torch.zeros_like(projection)
            smoothed, nll = hidden.new_zeros((), dtype=wide), hidden.new_zeros((), dtype=wide)
            # written again by each chunk: fresh memory of this size costs a page fault every 4 KB
            size = (min(ROWS, len(targets)), len(projection))
            logits = weight.new_empty(size)
            e = logits if half == wide else logits.new_empty(size, dtype=wide)
            for start in range(0, len(targets), ROWS):
                rows = slice(start, start + ROWS)
                h, index = hidden[rows].to(half), targets[rows, None]
                chunk = slice(len(h))
                torch.mm(h, weight.T, out=logits[chunk])
                if half != wide:
                    e[chunk].copy_(logits[chunk])
                label, top = e[chunk].gather(-1, index), e[chunk].amax(-1, keepdim=True)
                total = e[chunk].sub_(top).exp_().sum(-1, keepdim=True)
                lse = top + total.log()
                nll += (lse - label).sum()
                smoothed += (lse - (1 - smoothing) * label).sum()
                grad = e[chunk].scatter_add_(-1, index, (smoothing - 1) * total)  # of the logits, times total
                if half != wide:
                    grad = logits[chunk].copy_(grad)
                grad_hidden[rows] = (grad @ weight) / total
                grad_projection += grad.T @ (hidden[rows] / total).to(half)
            smoothed -= smoothing * (hidden.to(wide) @ mean_weight).sum()
            grad_hidden -= smoothing * mean_weight
            grad_projection -= uniform * hidden.sum(0, dtype=wide)
        ctx.save_for_backward(grad_hidden, grad_projection)
        ctx.mark_non_differentiable(nll)
        return smoothed, nll

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor, Tensor, None, None]:
        grad_hidden, grad_projection = ctx.saved_tensors
        return grad_hidden * grad, grad_projection * grad, None, None

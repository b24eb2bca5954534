"""How a subject is asked: random tokens, which output moves with which input, and the weights it uses."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from attnlab.model.masks import causal
from attnlab.theory.detectors.subject import Subject

TOKENS = 7  # no multiple of a usual number of heads: wrong axes then mix tokens
STRESS = 200.0  # on x: scores grow by 4e4, past the -15,000 to which training drove a model with a -1e4 mask
SENTENCES = 16  # where scores are large: in half of them the first token's only score is very negative


def draw(subject: Subject, sentences: int, tokens: int, generator: torch.Generator) -> Tensor:
    """Random tokens [B,N,D] of unit variance."""
    return torch.randn(sentences, tokens, subject.width, generator=generator, dtype=torch.float64).to(
        subject.dtype
    )


def keep_for(subject: Subject, tokens: int) -> Tensor | None:
    """The causal mask, for a subject that takes one."""
    return causal(tokens) if subject.takes_keep else None


def dependence(f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """[n,n]: how much output i moves with input j, the largest |d(u.y_i)/dx_j| for a random direction u.

    By autograd, or by finite changes of x where the output has no gradient (NumPy). NaN counts as moving.
    """
    x = x.detach().requires_grad_()
    try:
        y = f(x)
    except RuntimeError:  # "Can't call numpy() on Tensor that requires grad"
        y = f(x.detach())
    n, generator = x.shape[1], torch.Generator().manual_seed(1)
    if y.requires_grad:
        direction = torch.randn(y.shape, generator=generator, dtype=torch.float64).to(y.dtype)
        rows = [
            torch.autograd.grad((y[:, i] * direction[:, i]).sum(), x, retain_graph=True)[0] for i in range(n)
        ]
        moved = torch.stack([row.abs().amax((0, 2)) for row in rows])
    else:
        with torch.no_grad():
            columns = []
            for j in range(n):
                changed = x.detach().clone()
                changed[:, j] += torch.randn(
                    changed[:, j].shape, generator=generator, dtype=torch.float64
                ).to(x.dtype)
                columns.append((f(changed) - y.detach()).abs().amax((0, 2)))
            moved = torch.stack(columns, dim=1)
    return moved.nan_to_num(nan=math.inf)


def moving(moves: Tensor, tolerance: float) -> Tensor:
    """[n,n] bool: the cells of `dependence` that are more than rounding."""
    finite = moves[moves.isfinite()]
    return moves > tolerance * (finite.max() if finite.numel() else 1.0)


def leaking(moves: Tensor, tolerance: float) -> Tensor:
    """[n,n] bool: those above the diagonal, a later token that moves an earlier output."""
    return moving(moves, tolerance).triu(1)


def masked_weights(
    subject: Subject, hide_future: bool, generator: torch.Generator, amplitude: float = 1.0
) -> Tensor | None:
    """Weights [B,H,N,N] or [B,N,N] on random tokens; with or without the future hidden, as far as the subject can.

    From the subject itself, or from its kernel on values that are unit vectors, whose output is the weights.
    `amplitude` multiplies the tokens.
    """
    if (subject.hides_future and not hide_future) or (hide_future and not subject.causal):
        return None
    keep = keep_for(subject, TOKENS) if hide_future else None
    x = amplitude * draw(subject, SENTENCES, TOKENS, generator)
    weights = subject.forward(x, keep, None).weights
    if weights is not None or subject.kernel is None:
        return weights
    q, k, keys = ready_heads(subject, generator)
    keep = causal(keys) if hide_future and subject.takes_keep else None
    return kernel_weights(subject, amplitude * q, amplitude * k, keep)


def ready_heads(subject: Subject, generator: torch.Generator) -> tuple[Tensor, Tensor, int]:
    """Random q, k [B,H,N,dk] for the kernel and N, at most dk so that unit vectors fit into the values."""
    assert subject.d_k is not None
    assert subject.heads is not None
    keys = min(TOKENS, subject.d_k)
    q, k = torch.randn(
        2, SENTENCES, subject.heads, keys, subject.d_k, generator=generator, dtype=torch.float64
    ).to(subject.dtype)
    return q, k, keys


def kernel_weights(subject: Subject, q: Tensor, k: Tensor, keep: Tensor | None) -> Tensor:
    """Weights [B,H,N,N] of the kernel: shown, or read off unit vectors as values."""
    assert subject.kernel is not None
    n = k.shape[2]
    v = torch.eye(n, q.shape[3], dtype=subject.dtype).expand(*k.shape[:2], n, q.shape[3])
    seen = subject.kernel(q, k, v, keep)
    return seen.out[..., :n] if seen.weights is None else seen.weights


def difference(a: Tensor, b: Tensor) -> float:
    """Largest |a - b| over the largest |b|; infinite where either is not a number."""
    change = ((a - b).abs().max() / b.abs().max().clamp_min(1e-300)).item()
    return math.inf if math.isnan(change) else change

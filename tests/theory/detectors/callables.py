"""Attentions as people write them, right and wrong: what `detect` and `attnlab check` are tried on."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def by_hand(q, k, v, mask):
    """One head at a time, [N,d], as in a tutorial; the mask must be given."""
    scores = q @ k.T / math.sqrt(q.shape[1])
    weights = torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)
    return weights @ v, weights


def batched(query, key, value, attn_mask=None):
    """[B*H,N,d] by bmm, without weights."""
    scores = torch.bmm(query, key.transpose(1, 2)) / math.sqrt(query.shape[-1])
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, -math.inf)
    return torch.bmm(torch.softmax(scores, dim=-1), value)


def numpy_only(q, k, v, mask):
    q, k, v, mask = (np.asarray(x) for x in (q, k, v, mask))
    scores = np.where(mask, q @ k.T / np.sqrt(q.shape[1]), -np.inf)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ v


def sdpa(q, k, v, mask=None):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def always_causal(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def drop_convention(q, k, v, mask=None):
    """True = may NOT attend."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask, -math.inf)
    return torch.softmax(scores, dim=-1) @ v


def additive_mask(q, k, v, attention_mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if attention_mask is not None:
        scores = scores + attention_mask
    return torch.softmax(scores, dim=-1) @ v


def unscaled(q, k, v, mask=None):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1.0)


def masked_after(q, k, v, mask=None):
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
    return (weights if mask is None else weights * mask) @ v


def zero_filled(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return torch.softmax(scores if mask is None else scores.masked_fill(~mask, 0.0), dim=-1) @ v


def multiplied_mask(q, k, v, mask=None):
    """Scores times the mask: the same as filling with 0."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return torch.softmax(scores if mask is None else scores * mask, dim=-1) @ v


def mask_forgotten(q, k, v, mask=None):
    return F.scaled_dot_product_attention(q, k, v)


def over_queries(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-2)
    return weights @ v, weights


def no_maximum(q, k, v, mask=None):
    """exp without subtracting the maximum."""
    weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).exp()
    weights = weights if mask is None else weights * mask
    return weights / weights.sum(-1, keepdim=True) @ v


def by_half(q, k, v, mask=None):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1 / q.shape[-1])


def random_dropout(q, k, v, mask=None):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=0.5)


class TokensIn(nn.Module):
    """A causal block of tokens, x [B,N,16], with mistakes on request; no weights to be seen."""

    def __init__(self, mistake: str = "", heads: int = 4) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.heads, self.mistake = heads, mistake
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.positions = nn.Parameter(torch.randn(64, 16))
        self.dropout = nn.Dropout(0.5)

    def forward(self, x):
        if self.mistake == "positions":
            x = x + self.positions[: x.shape[1]]
        batch, n, width = x.shape
        if self.mistake == "length":
            x = x - x.mean(1, keepdim=True).detach()
        q, k, v = (
            part.reshape(batch, self.heads, n, -1)
            if self.mistake == "split"
            else part.view(batch, n, self.heads, -1).transpose(1, 2)
            for part in self.qkv(x).chunk(3, dim=-1)
        )
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), -1)
        keep = torch.ones(n, n, dtype=torch.bool).tril()
        match self.mistake:
            case "after":
                weights = weights * keep
            case "no_mask":
                pass
            case _:
                scores = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).masked_fill(~keep, -math.inf)
                weights = torch.softmax(scores, -1)
        heads = weights @ v
        heads = heads if self.mistake in ("merge", "split") else heads.transpose(1, 2)
        return self.out(self.dropout(heads.reshape(batch, n, width)))


class NeedsArguments(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()


def makes_a_block() -> nn.Module:
    torch.manual_seed(0)
    return nn.MultiheadAttention(12, 3, batch_first=True)

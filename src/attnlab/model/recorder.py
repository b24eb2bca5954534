"""What a forward pass shows of its attention, on request: records in a list, no hooks, nothing left on modules."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from attnlab.config import Site


@dataclass
class AttentionRecord:
    """One attention block in one forward pass (B batch, H heads, Q queries, K keys).

    `keep` and `real` are what a *correct* model may attend, whatever the arm did: `keep` [Q,K] is False for the
    future (None: no such mask at this site), `real` [B,1,1,K] is False for padding (None: no padding).
    """

    site: Site
    layer: int  # from 1
    q: Tensor  # [B,H,Q,dk]
    k: Tensor  # [B,H,K,dk]
    v: Tensor  # [B,H,K,dv]
    scores: Tensor  # [B,H,Q,K], scaled, before any mask
    weights: Tensor  # [B,H,Q,K], as used on the values, before dropout
    keep: Tensor | None
    real: Tensor | None

    def allowed(self) -> Tensor:
        """[B,1,Q,K] bool: the pairs that a correct model may attend (all pairs where nothing is masked)."""
        batch, _, queries, keys = self.scores.shape
        allowed = torch.ones(batch, 1, queries, keys, dtype=torch.bool, device=self.scores.device)
        for mask in (self.keep, self.real):
            if mask is not None:
                allowed = allowed & mask
        return allowed


@dataclass
class Recorder:
    """Collects the records of one forward pass; with `retain_grad`, q, k and scores keep .grad after backward."""

    retain_grad: bool = False
    records: list[AttentionRecord] = field(default_factory=list)

    def add(self, record: AttentionRecord) -> None:
        """Called by an attention block."""
        if self.retain_grad:
            for tensor in (record.q, record.k, record.scores):
                tensor.retain_grad()
        self.records.append(record)

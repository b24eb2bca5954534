"""What a softmax did: numbers for each row of a recorded attention, then means over rows, heads and layers.

Shapes: B sentences, H heads, Q queries, K keys, S source and T target tokens, L layers. docs/metrics.md has
every formula and its source. Statistics are computed in float64 whatever the model's precision, since 1 - p
of a saturated fp32 row is all rounding, and outside autograd.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import torch
from torch import Tensor, nn

from attnlab.config import Site
from attnlab.measure.evaluate import eval_mode
from attnlab.model.recorder import AttentionRecord
from attnlab.theory import jacobian

Metrics = dict[str, float]

DEAD = 1e-3  # a softmax row without a Jacobian entry above this passes hardly any gradient
PER_HEAD = ("entropy_normalized", "logit_std", "max_weight", "row_sum", "future_mass")
QUANTILES = {"p10": 0.1, "p50": 0.5, "p90": 0.9}


@contextmanager
def quiet(model: nn.Module) -> Iterator[None]:
    """Dropout off, autocast off, fp32 products in full; on leaving, each module's mode is what it was."""
    device = next(model.parameters()).device
    precision = torch.get_float32_matmul_precision()
    if device.type == "cuda":  # otherwise "medium" and "high" are TF32: 10 bits of a logit of 60
        torch.set_float32_matmul_precision("highest")
    try:
        with eval_mode(model), torch.autocast(device.type, enabled=False):
            yield
    finally:
        torch.set_float32_matmul_precision(precision)


class Reduce(StrEnum):
    """How rows become the number of a head."""

    mean = "mean"
    root_mean = "root_mean"  # a variance becomes a standard deviation
    largest = "largest"  # over rows, and then over heads and layers too


@dataclass(frozen=True)
class Rows:
    """A quantity of every query row, `values` [B,H,Q], and the rows that count, `counted` [B,1 or H,Q] bool.

    A row that does not count may hold any value; one that counts and is NaN makes the result NaN.
    """

    values: Tensor
    counted: Tensor
    reduce: Reduce = Reduce.mean

    def heads(self) -> Tensor:
        """The number of each head [H]; without meaning where `counts` is 0."""
        values = torch.where(self.counted, self.values, 0.0)
        match self.reduce:
            case Reduce.mean:
                return values.sum(dim=(0, 2)) / self.counts()
            case Reduce.root_mean:
                return (values.sum(dim=(0, 2)) / self.counts()).sqrt()
            case Reduce.largest:
                return values.amax(dim=(0, 2))

    def counts(self) -> Tensor:
        """Rows that count in each head [H]."""
        return self.counted.expand(self.values.shape).sum(dim=(0, 2))

    def pooled(self) -> Tensor:
        """The counted rows of all heads in one vector."""
        return self.values[self.counted.expand(self.values.shape)]


def rows_with_choice(record: AttentionRecord, real_queries: Tensor) -> Tensor:
    """[B,1,Q] bool: real queries (`real_queries` [B,Q]) with two allowed keys or more.

    A single key gets weight 1 whatever the model does; the first row of a decoder says nothing.
    """
    return real_queries[:, None] & (record.allowed().sum(dim=-1) >= 2)


@torch.no_grad()
def row_statistics(record: AttentionRecord, real_queries: Tensor) -> dict[str, Rows]:
    """Every quantity of every query row of one attention block; `real_queries` [B,Q] bool leaves padding out.

    Shape quantities (entropy to jacobian_dead) describe p, the row's weights on its allowed keys divided by
    their sum, so that they compare across masks; what that sum was, and what lay on the future, is told
    apart.
    """
    weights, scores = record.weights.double(), record.scores.double()
    allowed, real = record.allowed(), real_queries[:, None]
    keys, choice = allowed.sum(dim=-1), rows_with_choice(record, real_queries)
    on_allowed, on_future = weights.masked_fill(~allowed, 0.0), weights.masked_fill(allowed, 0.0)
    mass, future_mass = on_allowed.sum(dim=-1), on_future.sum(dim=-1)
    row_sum = mass + future_mass
    p = on_allowed / mass.masked_fill(mass == 0, 1.0)[..., None]
    entropy, largest = jacobian.entropy(p), jacobian.largest_entry(p)
    frobenius_squared = jacobian.frobenius_squared(p).clamp_min(0.0)  # rounding must not reach the root
    mean = torch.where(allowed, scores, 0.0).sum(dim=-1, keepdim=True) / keys[..., None]
    deviations = torch.where(allowed, scores - mean, 0.0).square().sum(dim=-1)

    defined = choice & (mass != 0)  # NaN counts: a broken row must show
    rows = {
        "entropy": Rows(entropy, defined),
        "entropy_normalized": Rows(entropy / keys.double().log(), defined),
        "max_weight": Rows(p.amax(dim=-1), defined),
        "participation": Rows(jacobian.effective_keys(p), defined),
        "jacobian_trace": Rows(jacobian.trace(p), defined),
        "jacobian_frobenius": Rows(frobenius_squared.sqrt(), defined),
        "jacobian_frobenius_squared": Rows(frobenius_squared, defined),
        "jacobian_max": Rows(largest, defined),
        "jacobian_dead": Rows((largest < DEAD).double().masked_fill(largest.isnan(), torch.nan), defined),
        "logit_std": Rows(deviations / (keys - 1), choice, Reduce.root_mean),
        "logit_max": Rows(torch.where(allowed, scores, 0.0).abs().amax(dim=-1), choice, Reduce.largest),
        "keys": Rows(keys.double().expand(mass.shape), choice),
        "row_sum": Rows(row_sum, real),
        "empty_rows": Rows((row_sum == 0).double(), real),
    }
    if record.keep is not None:  # a site without a mask of the future has none
        row = (on_allowed + on_future) / row_sum.masked_fill(row_sum == 0, 1.0)[..., None]
        rows["future_mass"] = Rows(future_mass, real)
        rows["entropy_all"] = Rows(jacobian.entropy(row), choice & (row_sum != 0))
    return rows


def attention_metrics(records: list[AttentionRecord], src_real: Tensor, tgt_real: Tensor) -> Metrics:
    """The records of one forward pass -> `probe/<quantity>/<site>` and, for PER_HEAD, `.../layer<l>/head<h>`.

    src_real [B,S] and tgt_real [B,T] mark real tokens. The order of means is rows, heads, layers; a head,
    layer or site without a row that counts has no number, and `probe/rows/<site>` says so.
    """
    metrics: Metrics = {}
    for site in Site:
        blocks = [record for record in records if record.site is site]
        if blocks:
            queries = src_real if site is Site.encoder else tgt_real
            metrics |= _site_metrics(site, [block.layer for block in blocks],
                                     [row_statistics(block, queries) for block in blocks])  # fmt: skip
    return metrics


def _site_metrics(site: Site, layers: list[int], tables: list[dict[str, Rows]]) -> Metrics:
    metrics: Metrics = {}
    names = list(tables[0])
    # one transfer for all quantities: [2, quantities, L, H]
    values, counts = torch.stack([
        torch.stack([torch.stack([table[name].heads() for table in tables]) for name in names]),
        torch.stack([torch.stack([table[name].counts() for table in tables]) for name in names]),
    ]).cpu().numpy()  # fmt: skip
    for name, by_head, count in zip(names, values, counts, strict=True):
        filled = [heads[rows > 0] for heads, rows in zip(by_head, count, strict=True) if rows.any()]
        if filled:
            over = np.max if tables[0][name].reduce is Reduce.largest else np.mean
            metrics[f"probe/{name}/{site}"] = float(over([over(heads) for heads in filled]))
        if name in PER_HEAD:
            for layer, heads, rows in zip(layers, by_head, count, strict=True):
                metrics |= {
                    f"probe/{name}/{site}/layer{layer}/head{head}": float(value)
                    for head, (value, n) in enumerate(zip(heads, rows, strict=True), start=1) if n
                }  # fmt: skip
    metrics[f"probe/rows/{site}"] = float(counts[names.index("entropy")].mean())
    entropies = torch.cat([table["entropy"].pooled() for table in tables]).cpu().numpy()
    if len(entropies):
        for name, cut in QUANTILES.items():
            metrics[f"probe/entropy_{name}/{site}"] = float(np.quantile(entropies, cut))
    return metrics

"""Measurements: pure functions of a model and a batch that return named numbers and never change training."""

from __future__ import annotations

import torch

from attnlab.data.batching import Batch
from attnlab.data.tokenizer import PAD
from attnlab.measure.gradients import gradient_metrics, mean_nll
from attnlab.measure.leakage import leak_metrics
from attnlab.measure.probes import Metrics, attention_metrics, quiet
from attnlab.model.recorder import Recorder
from attnlab.model.transformer import Transformer


def probe(model: Transformer, batch: Batch, *, leakage: bool) -> Metrics:
    """Everything that is looked at inside the softmax, on one fixed batch: names in docs/metrics.md.

    One forward and one backward pass with dropout off and in fp32, plus with `leakage` the causality tests on
    a few sentences. Training goes on bit for bit as if this had not been called: parameters' .grad, the
    modules' modes, the dropout stream and torch's random state are untouched.
    """
    src_real, tgt_real = batch.src != PAD, batch.tgt_in != PAD
    recorder = Recorder()
    with quiet(model), torch.enable_grad():
        logits = model(batch.src, batch.tgt_in, src_real, tgt_real, recorder)
        gradients = gradient_metrics(recorder.records, mean_nll(logits, batch.tgt_out), src_real, tgt_real)
    metrics = attention_metrics(recorder.records, src_real, tgt_real) | gradients
    return metrics | leak_metrics(model, batch) if leakage else metrics

"""The training loop: set up, then one step after another, with the periodic looks in between.

It reads from top to bottom. Whatever is measured on the way is read-only: no probe or evaluation draws from the
streams of training, so a run is bit for bit the same with and without them (CPU).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from attnlab.config import Config, Precision
from attnlab.data.batching import Batch, Encoded, collate, epoch_batches
from attnlab.device import autocast, bound_kernels
from attnlab.errors import UserError
from attnlab.model.transformer import Transformer
from attnlab.streams import stream_seed
from attnlab.training import checkpoint
from attnlab.training.loss import Losses, projected_losses
from attnlab.training.optimizer import AdamW
from attnlab.training.schedule import learning_rate

Metrics = dict[str, float]


class Interrupted(Exception):
    """A signal asked the run to stop; its checkpoint is written."""


class Diverged(Exception):
    """Loss or gradients are no longer finite: a result of the run, not an error of the program."""


@dataclass
class Looks:
    """What the loop looks at on the way; each takes the step and returns metrics to record."""

    gradients: Callable[[], Metrics]  # norms of the unscaled, unclipped gradients of the step
    probe: Callable[[int], Metrics]
    evaluate: Callable[[int], Metrics]
    record: Callable[[int, Metrics], None]
    save: Callable[[dict[str, Any]], None]
    stop_asked: Callable[[], bool] = lambda: False
    progress: Callable[[int, Metrics], None] = lambda step, metrics: None


@dataclass
class Window:
    """Sums since the last record of training metrics, token-weighted."""

    smoothed: float = 0.0
    nll: float = 0.0
    tokens: int = 0
    source_tokens: int = 0
    source_positions: int = 0
    target_positions: int = 0
    seconds: float = 0.0

    def metrics(self) -> Metrics:
        return {
            "train/loss/smoothed": self.smoothed / self.tokens,
            "train/loss/nll": self.nll / self.tokens,
            "train/loss/ppl": math.exp(min(self.nll / self.tokens, 700)),
            "train/data/target_tokens": self.tokens,
            "train/data/source_padding": 1 - self.source_tokens / self.source_positions,
            "train/data/target_padding": 1 - self.tokens / self.target_positions,
            "train/speed/tokens_per_second": self.tokens / self.seconds,
        }


@dataclass
class Progress:
    """Where training stands, apart from weights and optimiser: plain numbers in the checkpoint."""

    step: int = 0
    epoch: int = 0
    batch: int = 0  # within the epoch
    tokens: int = 0
    best: float = math.inf  # dev/prefix_nll
    without_better: int = 0  # evaluations
    skipped_steps: int = 0  # overflows of the fp16 loss scale
    window: Window = field(default_factory=Window)


class Trainer:
    """One model, its optimiser and its place in the data."""

    def __init__(self, model: Transformer, data: Encoded, config: Config, device: torch.device) -> None:
        train = config.train
        bound_kernels(train.precision, device)
        self.model, self.data, self.config, self.device = model, data, config, device
        self.optimizer = AdamW(
            model.parameters(), lr=0.0, betas=(train.betas[0], train.betas[1]), eps=train.eps, weight_decay=train.weight_decay,
            fused=True,
        )  # fmt: skip
        self.scaler = torch.amp.GradScaler(device.type, enabled=train.precision is Precision.fp16)
        self.progress = Progress()
        self.snapshots: list[checkpoint.Weights] = []

    def run(self, looks: Looks) -> None:
        """Train to train.steps or to the early stop; raises Diverged or Interrupted."""
        train, measure, progress = self.config.train, self.config.measure, self.progress
        if progress.step == 0:
            looks.record(0, looks.probe(0) | looks.evaluate(0))
        batches = self.batches()
        while progress.step < train.steps and not self.out_of_patience():
            # ---------------------------------------------------------------- one step
            started = time.perf_counter()
            step = progress.step + 1
            lr = learning_rate(train, step, self.config.model.d_model)
            for group in self.optimizer.param_groups:
                group["lr"] = lr
            micro_batches = [next(batches) for _ in range(train.accumulate)]
            sums = self.backward(micro_batches)
            metrics = self.update(looks.gradients if due(step, measure.log_every, train.steps) else dict)
            progress.step, progress.tokens = step, progress.tokens + sums.tokens
            self.count(sums, micro_batches, time.perf_counter() - started)
            # ---------------------------------------------------------------- once in a while
            if due(step, measure.log_every, train.steps):
                metrics |= progress.window.metrics() | {"train/lr": lr}
                progress.window = Window()
            if due(step, measure.every, train.steps):
                metrics |= looks.probe(step)
            if due(step, measure.evaluate_every, train.steps):
                metrics |= self.judged(looks.evaluate(step))
            if metrics:
                looks.record(step, metrics)
            looks.progress(step, metrics)
            if due(step, train.checkpoint_every, train.steps):
                self.snapshots = [*self.snapshots, checkpoint.clone(self.model.state_dict())][
                    -train.average_last :
                ]
                looks.save(self.state())
            if looks.stop_asked():
                looks.save(self.state())
                raise Interrupted

    def batches(self) -> Iterator[Batch]:
        """Training batches from the present place on, without end; the order depends on seed and epoch alone."""
        train, progress = self.config.train, self.progress
        seed = stream_seed(self.config.seed, "order")
        while True:
            order = epoch_batches(
                self.data, train.batch_tokens, seed, progress.epoch, train.equal_target_lengths
            )
            while progress.batch < len(order):
                indices = order[progress.batch]
                progress.batch += 1
                yield collate(self.data, indices).to(self.device)
            progress.epoch, progress.batch = progress.epoch + 1, 0

    def backward(self, batches: list[Batch]) -> Losses:
        """Gradients of the mean smoothed loss over all tokens of `batches`, as if they were one batch."""
        train = self.config.train
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        tokens = sum(batch.target_tokens for batch in batches)
        smoothed, nll = torch.zeros((), device=self.device), torch.zeros((), device=self.device)
        for batch in batches:
            with autocast(train.precision, self.device):
                hidden = self.model.hidden(batch.src, batch.tgt_in)
                part = projected_losses(
                    hidden, self.model.projection, batch.tgt_out, train.label_smoothing, batch.target_tokens
                )
            self.scaler.scale(part.smoothed / tokens).backward()
            smoothed, nll = smoothed + part.smoothed.detach(), nll + part.nll
        total = Losses(smoothed.cpu(), nll.cpu(), tokens)  # where a GPU is waited for, and in clipping
        if not math.isfinite(float(total.smoothed)):
            raise Diverged(f"non-finite loss at step {self.progress.step + 1}")
        return total

    def update(self, gradients: Callable[[], Metrics]) -> Metrics:
        """One optimiser step on the unscaled, clipped gradients; their norms before and after clipping.

        One record an optimiser step, never mid-accumulation.
        """
        self.scaler.unscale_(self.optimizer)
        metrics = gradients()
        clip = self.config.train.clip
        norm = float(
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), math.inf if clip is None else clip)
        )
        if not math.isfinite(
            norm
        ):  # with a loss scale it may be an overflow: the step is skipped, the scale halved
            if not self.scaler.is_enabled() or self.scaler.get_scale() <= 1:
                raise Diverged(f"non-finite gradients at step {self.progress.step + 1}")
            self.progress.skipped_steps += 1
        self.scaler.step(self.optimizer)
        self.scaler.update()
        if metrics:
            clipped = norm if clip is None or not math.isfinite(norm) else min(norm, clip)
            metrics |= {"train/grad/norm_clipped": clipped}
            if self.scaler.is_enabled():
                metrics |= {"train/grad/skipped_steps": self.progress.skipped_steps}
        return metrics

    def count(self, sums: Losses, batches: list[Batch], seconds: float) -> None:
        """Add a step to the sums of the next record."""
        window = self.progress.window
        window.smoothed += float(sums.smoothed)
        window.nll += float(sums.nll)
        window.tokens += sums.tokens
        window.source_tokens += sum(batch.source_tokens for batch in batches)
        window.source_positions += sum(batch.src.numel() for batch in batches)
        window.target_positions += sum(batch.tgt_out.numel() for batch in batches)
        window.seconds += seconds

    def judged(self, evaluation: Metrics) -> Metrics:
        """Note whether dev/prefix_nll improved: a leaking arm must not be stopped, or kept, by its own leak."""
        progress = self.progress
        if evaluation["dev/prefix_nll"] < progress.best:
            progress.best, progress.without_better = evaluation["dev/prefix_nll"], 0
        else:
            progress.without_better += 1
        return evaluation

    def out_of_patience(self) -> bool:
        patience = self.config.train.patience
        return patience is not None and self.progress.without_better >= patience

    def state(self) -> dict[str, Any]:
        """Everything to go on from here, as tensors and plain types."""
        progress = vars(self.progress) | {"window": vars(self.progress.window)}
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "dropout": self.model.stream.state(),
            "device": self.device.type,
            "progress": progress,
            "snapshots": self.snapshots,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Stand where `state()` was taken. Raises UserError on another kind of device: its dropout is another."""
        if state["device"] != self.device.type:
            raise UserError(
                f"device: got {self.device.type} for a run begun on {state['device']}, allowed: the same kind of "
                "device, or force=true to train afresh"
            )
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scaler.load_state_dict(state["scaler"])
        self.model.stream.load_state(state["dropout"], self.device)
        self.progress = Progress(**state["progress"] | {"window": Window(**state["progress"]["window"])})
        self.snapshots = state["snapshots"]

    def averaged(self) -> checkpoint.Weights:
        """The mean of the last checkpoints, or the weights as they are before the first."""
        return (
            checkpoint.average(self.snapshots)
            if self.snapshots
            else checkpoint.clone(self.model.state_dict())
        )


def due(step: int, every: int, last: int) -> bool:
    """The one rule of periodic work: each `every` steps, and at the end."""
    return step % every == 0 or step == last

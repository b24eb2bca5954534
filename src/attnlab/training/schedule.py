"""Learning rate as a function of the step."""

from __future__ import annotations

from attnlab.config import Schedule, TrainConfig


def learning_rate(train: TrainConfig, step: int, d_model: int) -> float:
    """Rate of optimiser step 1, 2, ...: linear warm-up, then falling with 1 / sqrt(step).

    `inverse_sqrt` peaks at train.lr at the end of the warm-up; `paper` is equation 3 of Vaswani et al. 2017 times
    train.lr.
    """
    warmup = max(train.warmup, 1)
    match train.schedule:
        case Schedule.inverse_sqrt:
            return train.lr * min(step / warmup, (warmup / step) ** 0.5)
        case Schedule.paper:
            return train.lr * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)

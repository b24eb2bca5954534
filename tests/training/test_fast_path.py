"""Trained by the fast path, the control is as good as trained by the plain one: a difference far below a seed's."""

import math
import statistics
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor

from attnlab.compose import load
from attnlab.measure.evaluate import teacher_forced
from attnlab.model import fast
from attnlab.model.initialise import build
from attnlab.run import read_text
from attnlab.training import loop
from attnlab.training.loop import Looks, Trainer
from attnlab.training.loss import Losses, losses

SEEDS = (1, 2, 3)
STEPS = 150


def dev_nll(seed: int, cache: Path) -> float:
    config = load(
        ["data.train_pairs=3000", "data.dev_pairs=300", f"train.steps={STEPS}", "train.warmup=50",
         f"seed={seed}", f"output={cache}"]
    )  # fmt: skip
    text = read_text(config)
    model = build(config.model, config.attention, text.tokenizer.vocab_size, seed)
    nothing = Looks(
        gradients=dict,
        probe=lambda step: {},
        evaluate=lambda step: {"dev/prefix_nll": 0.0},
        record=lambda step, metrics: None,
        save=lambda state: None,
    )
    Trainer(model, text.train, config, torch.device("cpu")).run(nothing)
    return teacher_forced(model, text.dev).nll


def plain_projected(
    hidden: Tensor, projection: Tensor, targets: Tensor, smoothing: float, tokens: int | None = None
) -> Losses:
    return losses(hidden @ projection.T, targets, smoothing)


def make_plain(patch: pytest.MonkeyPatch, module: ModuleType) -> None:
    patch.setattr(fast, "hide", lambda scores, hidden: scores.masked_fill(hidden, -math.inf))
    patch.setattr(fast, "softmax", lambda scores: torch.softmax(scores, dim=-1))
    patch.setattr(module, "projected_losses", plain_projected)


@pytest.mark.slow
def test_the_fast_path_trains_as_the_plain_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    quick = [dev_nll(seed, tmp_path) for seed in SEEDS]
    make_plain(monkeypatch, loop)
    plain = [dev_nll(seed, tmp_path) for seed in SEEDS]
    with capsys.disabled():
        print(f"\ndev nll after {STEPS} steps, fast {quick}, plain {plain}")
    differences = [abs(ours - theirs) for ours, theirs in zip(quick, plain, strict=True)]
    assert max(differences) < statistics.stdev(plain) / 2

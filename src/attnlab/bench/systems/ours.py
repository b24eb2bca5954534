"""Our own training, through the same calls as `attnlab run`; it looks at nothing on the way (see sections/probes.py)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnlab.bench.child import Values, main
from attnlab.bench.environment import prepare_torch
from attnlab.bench.meter import TokenMeter
from attnlab.bench.work import Job

if TYPE_CHECKING:
    from attnlab.config import Config
    from attnlab.run import Text
    from attnlab.training.loop import Looks, Trainer


@dataclass(frozen=True)
class Ready:
    """All that a run has before its first step."""

    config: Config
    text: Text
    trainer: Trainer


def ready(job: Job, steps: int, overrides: tuple[str, ...] = ()) -> Ready:
    """Text, model and trainer of the job's work, to be trained for `steps`; a seed in `overrides` is kept in all rounds."""
    from attnlab.compose import load
    from attnlab.device import pick_device
    from attnlab.model.initialise import build
    from attnlab.run import read_text
    from attnlab.training.loop import Trainer

    work = job.work.overrides(job.precision, job.threads, steps, job.device)
    config = load([*work, f"seed={job.seed}", *overrides])
    device = pick_device(config.device)
    text = read_text(config)
    model = build(config.model, config.attention, text.tokenizer.vocab_size, config.seed).to(device)
    return Ready(config, text, Trainer(model, text.train, config, device))


def silent(trainer: Trainer, step: Callable[[int], None], stop: Callable[[], bool] = lambda: False) -> Looks:
    """Looks that measure nothing and call `step` with the real target tokens of each optimiser step at its end."""
    from attnlab.training.loop import Looks

    seen = trainer.progress.tokens

    def ended(number: int, _: dict[str, float]) -> None:
        nonlocal seen
        tokens, seen = trainer.progress.tokens - seen, trainer.progress.tokens
        step(tokens)

    return Looks(
        gradients=dict, probe=lambda _: {}, evaluate=lambda _: {"dev/prefix_nll": 0.0}, record=lambda *_: None,
        save=lambda _: None, stop_asked=stop, progress=ended,
    )  # fmt: skip


def measure(job: Job) -> Values:
    """Train warm-up and counted steps."""
    prepare_torch(job)
    trainer = ready(job, job.warmup + job.steps, job.settings).trainer
    meter = TokenMeter(job.warmup)
    trainer.run(silent(trainer, meter.step))
    return meter.values()


if __name__ == "__main__":
    main(measure)

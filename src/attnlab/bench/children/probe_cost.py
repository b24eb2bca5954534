"""What looking costs: training in blocks, every other one with all looks at its end, in one process."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

from attnlab.bench.child import Values, main
from attnlab.bench.environment import prepare_torch
from attnlab.bench.systems.ours import ready
from attnlab.bench.work import Job
from attnlab.measure import probe
from attnlab.measure.evaluate import dev_metrics
from attnlab.measure.gradients import parameter_norms
from attnlab.run import probe_batch
from attnlab.training.loop import Looks, Metrics

WARM = 2  # blocks without and with looks, not counted


class Blocks:
    """Seconds of each block without its looks, and of each look by its name."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.blocks: dict[int, float] = defaultdict(float)
        self.looks: dict[str, list[float]] = defaultdict(list)
        self._looked = 0.0  # since the last step ended
        self._ended = time.perf_counter()

    def number(self, step: int) -> int:
        """The block of a step, from 0; step 0, before training, is in block -1."""
        return (step - 1) // self.size

    def look(self, name: str, step: int, at: Callable[[], Metrics]) -> Metrics:
        """Do it in every other block, and before training, and note its time."""
        number = self.number(step)
        if number % 2 == 0:
            return {}
        began = time.perf_counter()
        metrics = at()
        seconds = time.perf_counter() - began
        self._looked += seconds
        if number >= WARM:
            self.looks[name].append(seconds)
        return metrics

    def ended(self, step: int) -> None:
        """A step has ended, its looks included."""
        now = time.perf_counter()
        if step > 1:  # the first one began with the looks before training
            self.blocks[self.number(step)] += now - self._ended - self._looked
        self._ended, self._looked = now, 0.0


def measure(job: Job) -> Values:
    """Blocks of `job.steps`; `job.settings[0]` pairs of blocks count, the rest are settings of ours."""
    prepare_torch(job)
    pairs, *overrides = job.settings
    count = WARM + 2 * int(pairs)
    run = ready(job, count * job.steps, tuple(overrides))
    trainer, model = run.trainer, run.trainer.model
    cadence = run.config.measure
    trainer.config = replace(
        run.config, measure=replace(cadence, log_every=job.steps, every=job.steps, evaluate_every=job.steps)
    )
    batch = probe_batch(run.config, run.text, trainer.device)
    blocks = Blocks(job.steps)
    trainer.run(
        Looks(
            gradients=lambda: blocks.look("norms", trainer.progress.step + 1, lambda: parameter_norms(model)),
            probe=lambda step: blocks.look("probe", step, lambda: probe(model, batch, leakage=True)),
            evaluate=lambda step: (
                {"dev/prefix_nll": 0.0}
                | blocks.look(
                    "evaluate", step, lambda: dev_metrics(model, run.text.dev, cadence.prefix_sentences)
                )
            ),
            record=lambda *_: None,
            save=lambda _: None,
            progress=lambda step, _: blocks.ended(step),
        )
    )
    without = [blocks.blocks[number] for number in range(WARM, count, 2)]
    beside = [blocks.blocks[number] for number in range(WARM + 1, count, 2)]
    return {
        "step": statistics.median(without) / job.steps,
        "after": statistics.median(b / a for a, b in zip(without, beside, strict=True)),
        "norms_every": cadence.log_every,
        "probe_every": cadence.every,
        "evaluate_every": cadence.evaluate_every,
    } | {name: statistics.median(seconds) for name, seconds in blocks.looks.items()}


if __name__ == "__main__":
    main(measure)

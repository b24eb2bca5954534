"""The progress of a run on the terminal: a bar with rate and time left, or plain lines where there is none."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from tqdm import tqdm

from attnlab.terminal import one_line

QUIET_SECONDS = 10.0  # between plain lines


class ProgressBar:
    """A context manager; `update` after each step. Writes to stderr, so that results can be piped."""

    def __init__(self, steps: int, done: int, title: str, shown: bool) -> None:
        self.steps, self.done, self.title, self.shown = steps, done, one_line(title), shown
        self._bar: tqdm | None = None
        self._started = self._spoke = time.monotonic()
        self._facts: dict[str, str] = {}

    def __enter__(self) -> ProgressBar:
        if self.shown and sys.stderr.isatty():
            self._bar = tqdm(
                total=self.steps, initial=self.done, desc=self.title, unit="step", dynamic_ncols=True
            )
        elif self.shown:
            print(f"{self.title}: step {self.done} of {self.steps}", file=sys.stderr, flush=True)
        return self

    def update(self, step: int, metrics: dict[str, float]) -> None:
        """Show that `step` is done; `metrics` are those recorded at it, none on most steps."""
        names = {"train/loss/nll": "nll", "dev/nll": "dev nll", "train/speed/tokens_per_second": "tokens/s"}
        for name, short in names.items():
            if name in metrics:
                value = metrics[name]
                self._facts[short] = f"{value:,.0f}" if value > 100 else f"{value:.3f}"
        now = time.monotonic()
        if self._bar is not None:
            self._bar.set_postfix(self._facts, refresh=False)
            self._bar.update(step - self._bar.n)
        elif self.shown and (now - self._spoke > QUIET_SECONDS or step == self.steps):
            self._spoke = now
            rate = (step - self.done) / (now - self._started)
            left = (self.steps - step) / rate
            facts = ", ".join(f"{name} {value}" for name, value in self._facts.items())
            print(
                f"{self.title}: step {step} of {self.steps}, {rate:.1f} steps/s, {left:.0f} s left, {facts}",
                file=sys.stderr, flush=True,
            )  # fmt: skip

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()

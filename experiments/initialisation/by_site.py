"""What the missing scale does to the gradient of a query before training, by site and by d_k; and through what.

`python experiments/initialisation/by_site.py` writes results/by_site.{md,csv,png} (extra: figures; two minutes of one
core). Looked at after the study's claims were judged, so it confirms and refutes nothing.

Models, text and probe are those of the study: `nano` with one head, `xavier`, the first 64 dev sentences of the grammar.
A ratio is unscaled over scaled, of the rms or the median of |dL/dq| over queries; geometric mean and 95% t-interval of
the log over seeds. By the chain rule dL/dq = c dS K with c = 1 and not 1/sqrt(d_k), so a ratio of sqrt(d_k) says that the
gradient of the scores themselves is what it was: tables and figure show the ratio divided by it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from attnlab.compose import load
from attnlab.config import Config, Site
from attnlab.measure.gradients import activation_gradients
from attnlab.model.attention import Attended
from attnlab.model.initialise import build
from attnlab.model.transformer import Transformer
from attnlab.report.paper import INK, MUTED, interval, plain, pyplot, save
from attnlab.run import Text, probe_batch, read_text
from attnlab.study.statistics import Estimate, ratio

RESULTS = Path(__file__).parent / "results"
SEEDS = range(1, 9)
SIZES = (4, 8, 16, 32, 64, 128, 256, 512, 1024)  # d_k
PARTS = ("rms", "median")
NUMBERS = ("ratio", "ratio_low", "ratio_high", "divided", "divided_low", "divided_high")
COLORS = {Site.encoder: INK, Site.decoder: "#c44e00", Site.cross: "#0068a8"}
SYMBOLS = {Site.encoder: "o", Site.decoder: "s", Site.cross: "^"}


def config_of(seed: int, *overrides: str) -> Config:
    """A run of the study with one head."""
    return load(["model.heads=1", "data.dev_pairs=64", f"seed={seed}", "track=none", *overrides])


def gradients(
    text: Text, seed: int, *overrides: str, change: Callable[[Transformer], None] = lambda model: None
) -> dict[str, float]:
    """`probe/grad_q_<rms|median>/<site>` of the untrained model, after `change`."""
    config = config_of(seed, *overrides)
    model = build(config.model, config.attention, text.tokenizer.vocab_size, seed)
    change(model)
    return activation_gradients(model, probe_batch(config, text, next(model.parameters()).device))


def times_cross_keys(factor: float) -> Callable[[Transformer], None]:
    """Multiplies the gradient that leaves the keys of cross-attention, and changes no output."""

    def change(model: Transformer) -> None:
        for layer in model.decoder_layers():
            block = layer.cross_attention

            def attend(
                q: Tensor, k: Tensor, *rest: Any, plainly: Callable[..., Attended] = block.attend
            ) -> Attended:
                return plainly(q, k.detach() + factor * (k - k.detach()), *rest)

            block.attend = attend

    return change


def compared(
    arm: Mapping[int, dict[str, float]], control: Mapping[int, dict[str, float]], metric: str
) -> Estimate:
    """Geometric mean of arm over control, paired by seed."""
    found = ratio({s: one[metric] for s, one in arm.items()}, {s: one[metric] for s, one in control.items()})
    assert found is not None
    return found


def scaled(one: Estimate, by: float) -> tuple[float, float, float]:
    """Mean, low, high, each divided by `by`."""
    assert one.interval is not None
    return one.mean / by, one.interval.low / by, one.interval.high / by


def main() -> None:
    """Measure, and write the three files."""
    text = read_text(config_of(1))
    rows = []
    for d_k in SIZES:
        arms = {
            arm: {seed: gradients(text, seed, f"attention={arm}", f"model.d_k={d_k}") for seed in SEEDS}
            for arm in ("no_scale", "correct")
        }
        for site in Site:
            for part in PARTS:
                one = compared(arms["no_scale"], arms["correct"], f"probe/grad_q_{part}/{site}")
                rows.append((d_k, str(site), part, *scaled(one, 1.0), *scaled(one, d_k**0.5)))
    with (RESULTS / "by_site.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["d_k", "site", "part", *NUMBERS])
        writer.writerows([*row[:3], *(f"{value:.6g}" for value in row[3:])] for row in rows)
    (RESULTS / "by_site.md").write_text(f"{by_site(rows)}\n\n{through_what(text)}\n")
    draw(rows)


def by_site(rows: list[tuple]) -> str:
    """A table: the ratio divided by sqrt(d_k)."""
    head = [f"{part}, {site}" for part in PARTS for site in Site]
    lines = [f"| d_k | {' | '.join(head)} |", "|---" * (len(head) + 1) + "|"]
    for d_k in SIZES:
        cells = [
            f"{row[6]:.2g} [{row[7]:.2g}, {row[8]:.2g}]"
            for part in PARTS for site in Site for row in rows if row[:3] == (d_k, str(site), part)
        ]  # fmt: skip
        lines.append(f"| {d_k} | {' | '.join(cells)} |")
    return (
        "|dL/dq| without the scale over with it, divided by the sqrt(d_k) of the chain rule; geometric mean [95%] over "
        f"{len(SEEDS)} seeds. 1: the gradient of the scores is what it was.\n\n" + "\n".join(lines)
    )


def through_what(text: Text) -> str:
    """The encoder's rms at d_k 64 with the scale missing at one site alone, and with the keys of cross-attention held."""
    keys = times_cross_keys
    cases = {
        "missing in the encoder": (("attention=no_scale", "attention.where.sites=[encoder]"), keys(1)),
        "missing in the decoder": (("attention=no_scale", "attention.where.sites=[decoder]"), keys(1)),
        "missing in cross-attention": (("attention=no_scale", "attention.where.sites=[cross]"), keys(1)),
        "... with the gradient of its keys divided by 8": (
            ("attention=no_scale", "attention.where.sites=[cross]"), keys(1 / 8),
        ),
        "missing nowhere, the gradient of cross-attention's keys times 8": (("attention=correct",), keys(8)),
        "missing everywhere": (("attention=no_scale",), keys(1)),
    }  # fmt: skip
    control = {seed: gradients(text, seed) for seed in SEEDS}
    lines = ["| the scale is | rms of dL/dq in the encoder, over that of `correct` [95%] |", "|---|---|"]
    for name, (overrides, change) in cases.items():
        arm = {seed: gradients(text, seed, *overrides, change=change) for seed in SEEDS}
        mean, low, high = scaled(compared(arm, control, "probe/grad_q_rms/encoder"), 1.0)
        lines.append(f"| {name} | {mean:.3g} [{low:.3g}, {high:.3g}] |")
    return f"At d_k 64, {len(SEEDS)} seeds:\n\n" + "\n".join(lines)


def draw(rows: list[tuple]) -> None:
    """Both parts against d_k, by site."""
    figure, panels = pyplot().subplots(1, 2, figsize=(8.4, 3.4), sharey=True, layout="constrained")
    for axes, part in zip(panels, PARTS, strict=True):
        for site in Site:
            mine = [row for row in rows if row[1:3] == (str(site), part)]
            axes.plot(
                SIZES,
                [row[6] for row in mine],
                color=COLORS[site],
                marker=SYMBOLS[site],
                markersize=5,
                label=str(site),
            )
            for row in mine:
                interval(axes, [row[0]] * 2, row[7:9], COLORS[site])
        axes.set(xscale="log", yscale="log", xlabel="d_k")
        axes.set_xticks(SIZES, [str(size) for size in SIZES])
        axes.minorticks_off()
        axes.axhline(1, color=MUTED, linewidth=0.8)
        axes.set_title(
            f"{part} of |dL/dq| / sqrt(d_k), unscaled over scaled", loc="left", fontsize=9, color=INK
        )
        plain(axes, "y")
        axes.tick_params(length=0, labelsize=8, labelcolor=MUTED)
    panels[0].legend(frameon=False, fontsize=8, labelcolor=INK)
    save(figure, RESULTS / "by_site.png")


if __name__ == "__main__":
    main()

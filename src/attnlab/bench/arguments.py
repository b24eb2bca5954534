"""The options of `attnlab bench`."""

from __future__ import annotations

import argparse
from pathlib import Path

EXAMPLES = """
examples:
  attnlab bench                                        training, 1 thread, on the embedded corpus: a few minutes
  attnlab bench --data path/to/multi30k all --rounds 3 --steps 20 --threads 1,2 --write docs/performance.md
  attnlab bench --variant plain_loss='train.label_smoothing=0' --systems ours     two settings of ours, in turns
  attnlab bench --peer eole='sh eole.sh' --environments shipped,tuned             see docs/performance.md
  attnlab bench gpu --runs 1,4,8,16                    runs side by side on one GPU
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare them; command.py reads them."""
    option = parser.add_argument
    option(
        "sections", nargs="*", metavar="section", default=["training"],
        help="training, memory, decoding, probes, sweep, all (these five), gpu (default: training)",
    )  # fmt: skip
    option(
        "--data", default="grammar", help="folder in the layout of data=files (default: the embedded corpus)"
    )
    option("--rounds", type=int, default=2, help="times that each system is measured, in turns (default: 2)")
    option("--steps", type=int, default=10, help="optimiser steps that count (default: 10)")
    option("--warmup", type=int, default=2, help="steps before them (default: 2)")
    option("--threads", default="1", help="comma-separated, such as 1,2 (default: 1)")
    option("--precisions", default="fp32,bf16", help="comma-separated (default: fp32,bf16)")
    option("--environments", default="shipped", help="shipped, tuned, or both (default: shipped)")
    option(
        "--systems", default="all", help="comma-separated: ours, plain, plain_buckets, marian, marian_eager"
    )
    option(
        "--peer", action="append", default=[], metavar="NAME=COMMAND",
        help="another toolkit as a row: a command that prints tokens_per_second; may be repeated",
    )  # fmt: skip
    option(
        "--variant", action="append", default=[], metavar="NAME='KEY=VALUE ...'",
        help="ours with other settings as a row; may be repeated",
    )  # fmt: skip
    option(
        "--set", action="append", default=[], dest="overrides", metavar="KEY=VALUE", help="a setting of ours"
    )
    option("--runs", default="1,4,8,16", help="gpu: runs side by side (default: 1,4,8,16)")
    option("--seconds", type=float, default=20.0, help="gpu: how long they are measured (default: 20)")
    option("--device", default="cuda", help="gpu: the device (default: cuda)")
    option("--output", default="outputs", help="folder whose cache/ holds the tokenizer (default: outputs)")
    option("--json", action="store_true", help="JSON in place of Markdown")
    option("--write", type=Path, metavar="PATH.md", help="also put the tables into this document")

"""A whole configuration with every value spelled out, and child processes that use it."""

from __future__ import annotations

import functools
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np

from attnlab.config import (
    AttentionConfig,
    Axes,
    Config,
    DataConfig,
    DecodeConfig,
    Init,
    LaunchConfig,
    Launcher,
    Mask,
    MeasureConfig,
    ModelConfig,
    Norm,
    Overlap,
    Precision,
    Protocol,
    Scale,
    Schedule,
    Score,
    Site,
    Source,
    StudyConfig,
    TokenizerConfig,
    TokenizerKind,
    TrackConfig,
    Tracking,
    TrackMode,
    TrainConfig,
    WhereConfig,
)
from attnlab.study.grid import Study, expand
from attnlab.tracking.folder import RunFolder
from attnlab.tracking.tracker import Tracker

Child = Callable[..., CompletedProcess[str]]


def child_command(output: Path, code: str) -> list[str]:
    """Python code for a process of its own, in which the names of this module and `output` are defined."""
    return [sys.executable, "-c", f"from tracking_example import *\noutput = Path({str(output)!r})\n{code}"]


def child_environment() -> dict[str, str]:
    here = Path(__file__).resolve()
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(here.parents[2] / "src"), str(here.parent)])}


def make_config(output: Path, name: Tracking = Tracking.wandb, mode: TrackMode = TrackMode.offline) -> Config:
    return Config(
        data=DataConfig(
            name="grammar",
            source=Source.grammar,
            src="en",
            tgt="de",
            train="train",
            dev="dev",
            test="test",
            dir=None,
            repository=None,
            subset=None,
            revision=None,
            train_pairs=100,
            dev_pairs=10,
            test_pairs=10,
            corpus_seed=1,
            max_pieces=64,
            overlap=Overlap.remove,
            tokenizer=TokenizerConfig(kind=TokenizerKind.bpe, vocab_size=500),
        ),
        model=ModelConfig(
            name="nano",
            d_model=64,
            heads=4,
            d_k=8,
            d_v=None,
            d_ff=128,
            encoder_layers=2,
            decoder_layers=2,
            dropout=0.1,
            attention_dropout=0.1,
            norm=Norm.pre,
            tie_embeddings=True,
        ),
        attention=AttentionConfig(
            name="no_scale",
            scale=Scale.none,
            mask=Mask.before_softmax,
            mask_fill=-math.inf,
            split=Axes.heads_first,
            merge=Axes.heads_first,
            score=Score.dot,
            qk_norm=False,
            qk_norm_length=32,
            init=Init.xavier,
            where=WhereConfig(sites=[Site.encoder, Site.decoder], layers=None, heads=[1, 2]),
        ),
        train=TrainConfig(
            steps=50,
            batch_tokens=512,
            equal_target_lengths=True,
            accumulate=1,
            schedule=Schedule.paper,
            lr=1e-3,
            warmup=10,
            betas=[0.9, 0.98],
            eps=1e-9,
            weight_decay=0.0,
            label_smoothing=0.1,
            clip=None,
            precision=Precision.fp32,
            checkpoint_every=10,
            average_last=1,
            patience=None,
        ),
        measure=MeasureConfig(
            every=10,
            evaluate_every=10,
            log_every=1,
            probe_sentences=8,
            prefix_sentences=8,
            enabled=True,
            images=True,
        ),
        decode=DecodeConfig(
            protocols=[Protocol.prefix, Protocol.cached],
            beam=1,
            length_penalty=0.6,
            max_length_factor=1.5,
            max_length_extra=10,
            batch_sentences=32,
            sentences=None,
        ),
        track=TrackConfig(
            name=name,
            mode=mode,
            project="attnlab-tests",
            entity=None,
            tags=["test", "tracking"],
            init_timeout=5.0,
            finish_timeout=5.0,
        ),
        launch=LaunchConfig(name=Launcher.serial, workers=None),
        study=StudyConfig(
            name="demo",
            question="?",
            control="correct",
            grid={"model.d_k": [8, 16], "seed": [1, 2]},
            cells=[],
        ),
        seed=1,
        device="cpu",
        threads=1,
        output=str(output),
        force=False,
        retry=False,
        fail_fast=False,
    )


@functools.cache
def expanded(study: str) -> Study:
    """A study of conf/experiment with all its cells; about a second each."""
    return expand([f"experiment={study}"])


def make_folder(output: Path, run_id: str = "0123456789") -> RunFolder:
    folder = RunFolder(output / "runs" / run_id)
    folder.create()
    return folder


def make_tracker(folder: RunFolder, config: Config, resume_step: int = 0) -> Tracker:
    return Tracker(
        folder,
        config,
        run_id=folder.path.name,
        group="demo",
        job_type=config.attention.name,
        resume_step=resume_step,
    )


def log_steps(tracker: Tracker, first: int, last: int) -> None:
    """Numbers of two cadences, with a NaN and infinities among them, and a picture each ten steps."""
    for step in range(first, last + 1):
        bad = {3: math.nan, 4: math.inf, 5: -math.inf}.get(step, 0.1 + step / 3)
        tracker.log(step, {"train/loss/nll": bad, "train/lr": 1e-5 * step})
        if step % 10 == 0:
            tracker.log(step, {"dev/nll": math.nan if step == 20 else 5 - step / 7, "dev/ppl": 2.0**step})
            tracker.image(step, "probe/maps/cross", np.full((4, 5), 0.03))


FULL_RUN = """
from attnlab.tracking.status import State
config = make_config(output, mode=TrackMode.{mode})
with make_tracker(make_folder(output), config) as tracker:
    for step in range(20):
        tracker.log(step, {{"train/loss/nll": 1.0 * step}})
    tracker.image(20, "probe/maps/cross", np.eye(3))
    tracker.table(20, "test/samples", ["a"], [["b"]])
    tracker.finish(State.done)
"""

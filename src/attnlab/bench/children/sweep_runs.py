"""A small sweep as `attnlab run experiment=...` does it: short nano runs, told apart by their seeds."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path

from attnlab.bench.child import Values, main
from attnlab.bench.work import Job

SHORT = (  # the study `demo`, which is a grid, cut down to one arm and to little text
    "experiment=demo", "attention=correct", "train.warmup=10", "measure.images=false", "data.dev_pairs=64",
    "data.test_pairs=64", "measure.prefix_sentences=16", "decode.sentences=16",
)  # fmt: skip


def measure(job: Job) -> Values:
    """settings: number of runs, number of workers, then settings of ours. Seconds in the training loop, of a run."""
    from attnlab.run import folder_of
    from attnlab.study.grid import expand
    from attnlab.study.launch import launch
    from attnlab.tracking.status import State

    runs, workers, *overrides = job.settings
    track = "wandb" if importlib.util.find_spec("wandb") else "none"
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(job.work.output) / "cache"
        cache.mkdir(parents=True, exist_ok=True)
        (Path(folder) / "cache").symlink_to(cache)  # shared by all runs of a study, and made by the first
        seeds = ",".join(str(seed) for seed in range(1, int(runs) + 1))
        study = expand(
            [
                *SHORT, f"seed={seeds}", f"train.steps={job.steps}", f"measure.every={job.steps}",
                f"measure.evaluate_every={job.steps}", f"train.checkpoint_every={job.steps}", f"output={folder}",
                f"track={track}", f"launch.workers={workers}", f"threads={job.threads}", *overrides,
            ]
        )  # fmt: skip
        states = launch(study)
        if wrong := [state for state in states.values() if state is not State.done]:
            raise RuntimeError(f"{len(wrong)} of {runs} runs ended as {wrong[0]}")
        records = [record for run in study.runs for record in folder_of(run.config).read_metrics()]
        seconds = sum(
            record["train/data/target_tokens"] / record["train/speed/tokens_per_second"]
            for record in records
            if "train/speed/tokens_per_second" in record
        )
    return {"training": seconds / int(runs), "tracked": float(track == "wandb")}


if __name__ == "__main__":
    main(measure)

"""A work of the benchmark that takes moments: little text, a small model."""

import time
from pathlib import Path

from attnlab.bench.work import Job, Work

TEXT = (
    "data.train_pairs=300", "data.dev_pairs=20", "data.test_pairs=20", "data.tokenizer.vocab_size=300",
)  # fmt: skip


def small(output, **changes) -> Work:
    return Work(
        output=str(output), layers=2, d_model=16, heads=2, d_ff=24, batch_tokens=256, limits=TEXT, **changes
    )


def job(output, **changes) -> Job:
    return Job(small(output), **{"warmup": 1, "steps": 4} | changes)


def is_gone(pid: int) -> bool:
    """Ended within seconds; a process whose parent was ended may stay as a name until somebody collects it."""
    stat = Path(f"/proc/{pid}/stat")
    for _ in range(100):
        try:
            if stat.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.05)
    return False

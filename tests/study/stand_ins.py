"""What a worker may do with a run in place of training; apart from the tests, which import torch, as workers import this."""

import os
import signal
from pathlib import Path

from attnlab.study.attempt import Attempt


def killed_once(config):
    """In a worker: the first run of all kills its own process, as an out-of-memory killer would."""
    flag = Path(config.output) / "killed"
    if config.attention.name == "zero_fill" and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return Attempt(None)


def killed_always(config):
    """The same each time it is tried."""
    if config.attention.name == "zero_fill" and config.seed == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return Attempt(None)


def noisy(config):
    print("chatter of a library")
    os.write(2, b"and of one that is written in C\n")
    return Attempt(None)

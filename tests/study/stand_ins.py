"""What a worker may do with a run in place of training; apart from the tests, which import torch, as workers import this."""

import os
import signal
import threading
import time
from pathlib import Path

from attnlab.compose import typed
from attnlab.study.attempt import Attempt
from attnlab.tracking.folder import folder_of
from attnlab.tracking.status import State, Status


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


def killed_when_idle(config):
    """The worker of the first seed's run is killed a moment after it has told what became of it."""
    if config.seed == 1:
        (Path(config.output) / "idle").write_text(str(os.getpid()))
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGKILL)).start()
    return Attempt(None)


def job_killed(composed):
    """What a job of a cluster does: zero_fill is killed at once, the others are done later than that."""
    config = typed(composed)
    if config.attention.name == "zero_fill":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(5)
    folder = folder_of(config)
    folder.create()
    folder.save_status(Status(State.done))


def noisy(config):
    print("chatter of a library")
    os.write(2, b"and of one that is written in C\n")
    return Attempt(None)

"""What every test shares: one thread a process, and no account, key or network of the person who runs them."""

import os
import signal

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
# In `make test-all &` a Ctrl-C is ignored, and would be by all that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _no_account(monkeypatch):
    for name in ("WANDB_API_KEY", "WANDB_MODE", "WANDB_DIR", "WANDB_RUN_ID", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _threads():
    import torch

    torch.set_num_threads(1)

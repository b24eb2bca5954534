"""The kernels that oneDNN compiles for each shape of a batch, kept in bounds; each growth is of a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from attnlab.compose import load
from attnlab.data.batching import Encoded
from attnlab.device import KERNELS
from attnlab.model.initialise import build
from attnlab.training.loop import Trainer

CACHES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")

# Resident memory after 300 products of as many shapes over that after 60, in MB
GROWTH = """
import sys
import torch
from attnlab.device import bound_kernels

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6

if sys.argv[1] == "bound":
    bound_kernels()
x, w = torch.ones(600, 128, dtype=torch.bfloat16), torch.ones(128, 512, dtype=torch.bfloat16)
for rows in range(1, 301):
    x[:rows] @ w
    if rows == 60:
        before = resident()
print(resident() - before)
"""


def growth(mode):
    environment = {name: value for name, value in os.environ.items() if name not in CACHES}
    done = subprocess.run(
        [sys.executable, "-c", GROWTH, mode], env=environment, check=True, capture_output=True, text=True
    )
    return float(done.stdout)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_products_of_many_shapes_take_no_more_and_more_memory():
    free = growth("free")
    if free < 50:
        pytest.skip(f"bf16 products compile no kernels here: {free:.0f} MB over 240 shapes")
    assert growth("bound") < 0.3 * free


def test_a_trainer_bounds_them_and_leaves_the_users_own_bound(monkeypatch):
    for name in CACHES:
        monkeypatch.setenv(name, "")  # so that what the trainer sets is undone
        monkeypatch.delenv(name)
    monkeypatch.setenv(CACHES[0], "7")
    config = load(["model=nano"])
    Trainer(
        build(config.model, config.attention, 8, config.seed), Encoded([], []), config, torch.device("cpu")
    )
    assert [os.environ[name] for name in CACHES] == ["7", str(KERNELS)]

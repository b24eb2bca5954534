"""The kernels that oneDNN compiles for each shape of a batch, kept in bounds; each growth is of a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from attnlab.config import Precision
from attnlab.device import KERNELS, bound_kernels

CACHES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "DNNL_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")

# A Trainer, then products of ever other shapes: how far resident memory grows from the first `few` of them to the last.
GROWTH = """
import os
import sys
import torch
from attnlab.compose import load
from attnlab.data.batching import Encoded
from attnlab.model.initialise import build
from attnlab.training.loop import Trainer

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

few, many, precision = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
config = load(["model=nano", f"train.precision={precision}"])
Trainer(build(config.model, config.attention, 8, config.seed), Encoded([], []), config, torch.device("cpu"))
x, w = torch.ones(many, 128, dtype=torch.bfloat16), torch.ones(128, 512, dtype=torch.bfloat16)
for rows in range(1, many + 1):
    x[:rows] @ w
    if rows == few:
        before = resident()
print(resident() - before)
"""


def growth(precision):
    """In MB, of a process in which a training of this precision was set up."""
    environment = {name: value for name, value in os.environ.items() if name not in CACHES}
    words = [str(KERNELS), str(5 * KERNELS), precision]
    done = subprocess.run(
        [sys.executable, "-c", GROWTH, *words], env=environment, check=True, stdout=subprocess.PIPE, text=True,
        timeout=120,
    )  # fmt: skip
    return float(done.stdout)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_products_of_many_shapes_take_no_more_and_more_memory():
    free = growth("fp32")  # such a training leaves the caches as they are
    if free < 50:
        pytest.skip(f"bf16 products compile no kernels here: {free:.0f} MB")
    assert growth("bf16") < 0.3 * free


@pytest.mark.parametrize(
    ("precision", "users", "bound"),
    [
        ("bf16", {}, {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": str(KERNELS), "LRU_CACHE_CAPACITY": str(KERNELS)}),
        ("bf16", {"LRU_CACHE_CAPACITY": "7"}, {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": str(KERNELS), "LRU_CACHE_CAPACITY": "7"}),
        ("bf16", {"DNNL_PRIMITIVE_CACHE_CAPACITY": "7"}, {"DNNL_PRIMITIVE_CACHE_CAPACITY": "7", "LRU_CACHE_CAPACITY": str(KERNELS)}),
        ("fp32", {}, {}),
    ],
)  # fmt: skip
def test_the_caches_are_bounded_where_they_matter_and_the_users_own_bound_stands(
    monkeypatch, precision, users, bound
):
    for name in CACHES:
        monkeypatch.setenv(name, "")  # so that what is set below is undone
        monkeypatch.delenv(name)
    for name, value in users.items():
        monkeypatch.setenv(name, value)
    bound_kernels(Precision(precision), torch.device("cpu"))
    assert {name: os.environ[name] for name in CACHES if name in os.environ} == bound

"""What a child finds when it starts: threads and allocator by variables, set before the process is there.

glibc gives large blocks back to the system and faults them in again at each step; the settings below keep them.
They must stand in the environment, since the allocator reads them once.
"""

from __future__ import annotations

import os

from attnlab.bench.work import Environment, Job

ALLOCATOR = {
    "MALLOC_MMAP_THRESHOLD_": str(4 << 30),  # bytes: nothing is mapped by itself
    "MALLOC_TRIM_THRESHOLD_": str(8 << 30),  # nothing goes back
    "MALLOC_TOP_PAD_": str(256 << 20),
}
TRUE_FP32 = 1e-5  # largest relative error of a product that may be called fp32; bf16 has 3e-3


def variables(job: Job) -> dict[str, str]:
    """The whole environment of a job's process; what external commands may want to know is in it as well."""
    kept = {name: value for name, value in os.environ.items() if name not in ALLOCATOR}
    threads = {name: str(job.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    told = {
        "ATTNLAB_BENCH_DATA": job.work.data,
        "ATTNLAB_BENCH_PRECISION": job.precision,
        "ATTNLAB_BENCH_THREADS": str(job.threads),
        "ATTNLAB_BENCH_STEPS": str(job.warmup + job.steps),
        "ATTNLAB_BENCH_SEED": str(job.seed),
        "ATTNLAB_BENCH_ENVIRONMENT": job.environment.value,
    }
    quiet = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    return kept | threads | told | quiet | (ALLOCATOR if job.environment is Environment.tuned else {})


def prepare_torch(job: Job) -> None:
    """Inside the child: the threads, and in the tuned environment fp32 products by oneDNN where they are fp32."""
    import torch

    torch.set_num_threads(job.threads)
    if job.environment is Environment.tuned and job.precision == "fp32":
        fp32_by_onednn()


def fp32_by_onednn() -> float:
    """Route fp32 matrix products to oneDNN, if they are fp32 there; the relative error of such a product.

    MKL is slow on some processors. torch's name for the route is "medium", which allows bf16 where the processor
    multiplies bf16 matrices in hardware (AMX): above TRUE_FP32 it is taken back.
    """
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    draw = torch.Generator().manual_seed(1)  # torch's own random state stays as it is
    a, b = torch.randn(512, 512, generator=draw), torch.randn(512, 512, generator=draw)
    exact = a.double() @ b.double()
    error = float((a @ b - exact).abs().max() / exact.abs().max())
    if error > TRUE_FP32:
        torch.set_float32_matmul_precision(before)
    return error

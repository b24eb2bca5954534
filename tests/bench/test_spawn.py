"""A child is weighed and timed from outside, and however it ends, the parent goes on."""

import sys
import time

from small_work import is_gone

from attnlab.bench.environment import ALLOCATOR, fp32_by_onednn, variables
from attnlab.bench.spawn import Running, run_child
from attnlab.bench.work import Environment, Job, Work

EXTERNAL = "attnlab.bench.systems.external"


def command(text, **changes) -> Job:
    return Job(Work(), settings=(text,), **changes)


def test_a_job_comes_back_from_json_as_it_was():
    job = Job(Work("folder", limits=("a=1",)), "bf16", 2, 4, 5, Environment.tuned, "cpu", ("x", "y"), 6)
    assert Job.from_json(job.as_json()) == job


def test_memory_is_that_of_the_process_that_needs_most():
    grown = f"{sys.executable} -c \"b = bytearray(300 << 20); print('tokens_per_second 1')\""
    peak = run_child(EXTERNAL, command(grown)).values["peak_mb"]
    assert 300 < peak < 400


def test_a_killed_child_says_by_which_signal():
    # the command ends the child that waits for it
    assert run_child(EXTERNAL, command("kill -KILL $PPID; sleep 1")).problem == "killed by SIGKILL"


def test_a_child_that_takes_too_long_is_ended_with_its_command(tmp_path):
    mark = tmp_path / "pid"
    started = time.monotonic()
    ended = run_child(EXTERNAL, command(f"echo $$ > {mark}; sleep 60"), timeout=1.0)
    assert ended.problem == "not done after 1 s"
    assert time.monotonic() - started < 20
    assert is_gone(int(mark.read_text()))


def test_leaving_early_ends_the_child_and_its_command(tmp_path):
    mark = tmp_path / "pid"
    with Running(EXTERNAL, command(f"echo $$ > {mark}.new; mv {mark}.new {mark}; sleep 60")) as running:
        while not mark.exists():
            time.sleep(0.01)
        assert not running.has_ended()
    assert is_gone(int(mark.read_text()))


def test_what_a_dead_child_leaves_behind_is_ended(tmp_path, monkeypatch):
    mark = tmp_path / "pid"
    dies = f"import os; pid = os.fork() or os.execlp('sleep', 'sleep', '60'); open({str(mark)!r}, 'w').write(str(pid))"
    (tmp_path / "dies.py").write_text(dies)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert run_child("dies", Job(Work())).problem == "exit code 0 without a word"
    assert is_gone(int(mark.read_text()))


def test_threads_and_allocator_stand_in_the_environment(monkeypatch):
    monkeypatch.setenv("MALLOC_TOP_PAD_", "7")
    shipped = variables(Job(Work("folder"), "bf16", 2, 3, 8, seed=4))
    assert (shipped["OMP_NUM_THREADS"], shipped["MKL_NUM_THREADS"]) == ("2", "2")
    assert not ALLOCATOR.keys() & shipped.keys()  # a setting of the caller's shell is not what ships
    assert shipped["ATTNLAB_BENCH_DATA"] == "folder"
    assert shipped["ATTNLAB_BENCH_PRECISION"] == "bf16"
    assert shipped["ATTNLAB_BENCH_STEPS"] == "11"
    assert shipped["ATTNLAB_BENCH_SEED"] == "4"
    assert ALLOCATOR.items() <= variables(Job(Work(), environment=Environment.tuned)).items()


def test_fp32_goes_through_onednn_only_where_it_stays_fp32():
    import torch

    before = torch.get_float32_matmul_precision()
    try:
        error = fp32_by_onednn()
        a, b = torch.randn(64, 512), torch.randn(512, 64)
        exact = a.double() @ b.double()
        now = float((a @ b - exact).abs().max() / exact.abs().max())
        assert now < 1e-5
        assert (torch.get_float32_matmul_precision() == "medium") == (error <= 1e-5)
    finally:
        torch.set_float32_matmul_precision(before)

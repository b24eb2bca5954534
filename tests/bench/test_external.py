"""The contract with other toolkits."""

import sys

import pytest
from small_work import is_gone

from attnlab.bench.systems.external import measure
from attnlab.bench.work import Job, Work
from attnlab.errors import UserError


def said(command):
    return measure(Job(Work(), warmup=2, steps=3, settings=(command,)))


def test_the_first_lines_are_warm_up_and_the_next_count_as_steps_of_equally_many_tokens():
    lines = "; ".join(f"echo tokens_per_second {rate}" for rate in (9000, 8000, 10, 20.0, 60, 7000))
    # 60 tokens each: 6 + 3 + 1 s
    assert said(lines)["tokens_per_second"] == pytest.approx(180 / 10)


def test_a_command_without_an_end_is_stopped_with_all_that_it_started(tmp_path):
    mark = tmp_path / "pid"
    endless = f"sleep 60 & echo $! > {mark}; while true; do echo tokens_per_second 5; sleep 0.01; done | cat"
    values = said(endless)
    assert values["tokens_per_second"] == 5.0
    assert "first_step" in values
    assert is_gone(int(mark.read_text()))


@pytest.mark.parametrize("end", ["sleep 60", "exit 0"], ids=["asked to end", "ended"])
def test_what_does_not_hear_the_signal_is_killed_when_the_shell_has_ended(tmp_path, end):
    mark = tmp_path / "pid"
    deaf = f"(trap '' TERM; sleep 60) >/dev/null 2>&1 & echo $! > {mark}; "
    enough = "for rate in 5 5 5 5 5; do echo tokens_per_second $rate; done; "
    said(deaf + enough + end)
    assert is_gone(int(mark.read_text()))


def test_one_single_line_is_the_command_s_own_result():
    values = said("echo training; echo tokens_per_second 1.5e3; echo done")
    assert values == {
        "tokens_per_second": 1500.0
    }  # and no start-up time, since it does not say when it began


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("echo no bf16 here >&2; exit 3", ["no bf16 here (exit code 3, 0 lines"]),
        ("echo loss 3.2", ["loss 3.2 (exit code 0"]),
        ("echo tokens_per_second 1; echo tokens_per_second 2", ["2 lines", "more than the 2 of the warm-up"]),
        ("echo tokens_per_second fast", ["tokens_per_second fast (exit code 0, 0 lines"]),
        ("true", ["nothing (exit code 0"]),
    ],
)
def test_a_command_that_says_too_little_is_refused_in_one_sentence(command, words):
    with pytest.raises(UserError) as caught:
        said(command)
    for word in words:
        assert word in str(caught.value)


def test_the_memory_of_a_toolkit_that_is_stopped_in_a_pipe_counts():
    """Its shell cannot wait for it any more, so the system's account of ended children misses it."""
    grow = "import time; held = b'1' * (700 << 20); [print('tokens_per_second 5', flush=True) or time.sleep(.01) for _ in range(99)]"
    values = said(f'{sys.executable} -c "{grow}" | cat')
    assert 700 < values["peak_mb"] < 800  # this process has less

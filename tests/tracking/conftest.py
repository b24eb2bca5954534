from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from wandb_server import StandIn

SOURCES = [Path(__file__).parents[2] / "src", Path(__file__).parent]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own and no W&B settings of the person who runs the tests."""
    home = tmp_path / "home"
    home.mkdir()
    for name in [name for name in os.environ if name.startswith(("WANDB_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("NETRC", str(home / ".netrc"))
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return home


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "outputs"


@pytest.fixture
def server() -> Iterator[StandIn]:
    with StandIn() as stand_in:
        yield stand_in


Child = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def child(tmp_path: Path, output: Path) -> Child:
    """Runs Python code in a process of its own, with `output` and the names of example.py defined, stdin closed."""

    def run(code: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        prelude = f"from pathlib import Path\nfrom example import *\noutput = Path({str(output)!r})\n"
        return subprocess.run(
            [sys.executable, "-c", prelude + code],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, SOURCES)), **(environment or {})},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run

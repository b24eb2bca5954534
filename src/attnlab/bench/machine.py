"""Where and how numbers were made."""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path


def made(arguments: Sequence[str]) -> dict[str, str]:
    """Command, date, machine, its load by then and versions, for the foot of a table; call it before any work."""
    packages = ("torch", "numpy", "transformers", "accelerate")
    versions = [f"{name} {version}" for name in packages if (version := _version(name))]
    return {
        "command": f"`{shlex.join(['attnlab', *map(_without_folders, arguments)])}`",
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": ", ".join([*_gpus(), *_cpu()]),
        "load before": _load(),
        "versions": ", ".join([f"Python {platform.python_version()}", *versions]),
    }


def _without_folders(argument: str) -> str:
    """A table may be published: of an absolute path it shows the last part alone."""
    return Path(argument).name if argument.startswith("/") else argument


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _cpu() -> list[str]:
    info, memory = Path("/proc/cpuinfo"), Path("/proc/meminfo")
    model = re.search(r"model name\s*: (.*)", info.read_text()) if info.exists() else None
    total = re.search(r"MemTotal:\s*(\d+) kB", memory.read_text()) if memory.exists() else None
    said = [model[1].strip() if model else platform.machine(), f"{len(os.sched_getaffinity(0))} cores"]
    return [*said, f"{int(total[1]) / 2**20:.0f} GiB"] if total else said


def _load() -> str:
    """Processes that wanted a core, on average: whatever was there already slows the rows down, and not evenly."""
    try:
        minutes = os.getloadavg()
    except OSError:
        return "unknown"
    return ", ".join(f"{load:.1f}" for load in minutes) + " processes over 1, 5, 15 min"


def _gpus() -> list[str]:
    if shutil.which("nvidia-smi") is None:
        return []
    asked = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return [line.strip() for line in done.stdout.splitlines() if line.strip()] if done.returncode == 0 else []

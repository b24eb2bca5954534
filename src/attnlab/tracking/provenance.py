"""Where a run's numbers come from: the commit, the versions, the data, the device, the command.

Nothing of the environment is recorded: variables hold keys.
"""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

import attnlab
from attnlab.texts import without_secrets
from attnlab.tracking.code_digest import code_digest

_PACKAGES = ("torch", "numpy", "hydra-core", "omegaconf", "sentencepiece", "sacrebleu", "wandb")


@dataclass(frozen=True)
class Git:
    commit: str
    dirty: bool  # files differ from the commit, or new ones stand beside it


@dataclass(frozen=True)
class Provenance:
    """One session of a run. `git` is None where the package is not a checkout or git is missing."""

    started: str  # UTC, ISO 8601
    command: str
    git: Git | None
    code_digest: str  # of the sources that decide the numbers; see code_digest.py
    versions: dict[str, str | None]
    platform: str
    device: str
    threads: int
    seed: int
    data_digest: str
    tokenizer_digest: str


def collect(
    *, device: torch.device, threads: int, seed: int, data_digest: str, tokenizer_digest: str
) -> Provenance:
    """Provenance of a run that starts now in this process. Never raises for a missing tool or package."""
    return Provenance(
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        command=without_secrets(shlex.join(sys.argv)),
        git=read_git(Path(attnlab.__file__).parent),
        code_digest=code_digest(),
        versions={
            "python": platform.python_version(),
            "attnlab": attnlab.__version__,
            **{name: _version(name) for name in _PACKAGES},
        },
        platform=platform.platform(),
        device=device_name(device),
        threads=threads,
        seed=seed,
        data_digest=data_digest,
        tokenizer_digest=tokenizer_digest,
    )


def read_git(package: Path) -> Git | None:
    """Commit and dirty flag of the checkout that holds `package` as src/<name>, else None.

    A package installed into a virtual environment inside somebody's repository is not a checkout: that repository's
    commit says nothing about this code.
    """
    top = _git(package, "rev-parse", "--show-toplevel")
    if top is None or Path(top).resolve() != package.resolve().parent.parent:
        return None
    commit = _git(package, "rev-parse", "HEAD")
    changes = _git(package, "status", "--porcelain")
    if commit is None or changes is None:
        return None
    return Git(commit=commit, dirty=changes != "")


def device_name(device: torch.device) -> str:
    """What the run computes on, such as "NVIDIA H200" or the processor's model."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _git(folder: Path, *arguments: str) -> str | None:
    # A git hook sets GIT_DIR for its children; GIT_OPTIONAL_LOCKS lets `status` run beside other processes.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment["GIT_OPTIONAL_LOCKS"] = "0"
    try:
        result = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.strip()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None

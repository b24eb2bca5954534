"""Peak resident memory of this process and of those that it ran."""

from __future__ import annotations

import contextlib
import re
import resource
from pathlib import Path

PROC = Path("/proc")


def own_peak() -> float:
    """Largest resident memory so far, MB.

    From Linux's own account of the process. `ru_maxrss` would do elsewhere, but it starts at the peak of the process
    that started this one, which is no business of ours.
    """
    return _largest(PROC / "self") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def peak() -> float:
    """The largest of this process and of all that it has started and waited for, MB."""
    return max(own_peak(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)


def group_peak(group: int) -> float:
    """The largest of the living processes of a process group so far, MB; 0 where Linux's /proc is not there.

    `peak` does not see a toolkit that was stopped before the shell around it could wait for it.
    """
    found = [0.0]
    for folder in PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            fields = (folder / "stat").read_text().rpartition(")")[2]  # the name before it may hold anything
            if int(fields.split()[2]) == group:
                found.append(_largest(folder))
    return max(found)


def _largest(folder: Path) -> float:
    status = folder / "status"
    found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text()) if status.exists() else None
    return int(found[1]) / 1024 if found else 0.0

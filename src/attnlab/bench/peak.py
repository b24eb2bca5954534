"""Peak resident memory of this process and of those that it ran."""

from __future__ import annotations

import re
import resource
from pathlib import Path

STATUS = Path("/proc/self/status")


def own_peak() -> float:
    """Largest resident memory so far, MB.

    From Linux's own account of the process. `ru_maxrss` would do elsewhere, but it starts at the peak of the process
    that started this one, which is no business of ours.
    """
    found = re.search(r"VmHWM:\s*(\d+) kB", STATUS.read_text()) if STATUS.exists() else None
    return int(found[1]) / 1024 if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def peak() -> float:
    """The largest of this process and of all that it has started and waited for, MB."""
    return max(own_peak(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)

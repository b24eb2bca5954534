"""Keep freed memory in the process: a training step frees and takes the same tensors again and again.

glibc gives blocks above 128 KiB back to the system at once and gets them as new, zeroed pages: a fifth of a step's
time goes into page faults. `mallopt` changes that from inside, without an environment variable or a second start.
"""

from __future__ import annotations

import ctypes
import sys

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4  # malloc.h
KEEP_BYTES = 2**31 - 1  # mallopt takes an int
GROW_BYTES = 256 * 2**20


def keep_freed_memory() -> bool:
    """Set glibc's allocator for training; False where it is another one, and then nothing has changed."""
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return all(mallopt(*setting) for setting in ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, KEEP_BYTES), (M_TOP_PAD, GROW_BYTES)))

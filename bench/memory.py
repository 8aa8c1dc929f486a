"""What memory a process holds for itself, as the kernel counts it."""

from __future__ import annotations

import ctypes
import gc
import os
from pathlib import Path

KIB_A_MIB = 1024


def private_kib(pid: int | None = None) -> int:
    """Anonymous resident memory of a process (this one by default) in KiB: without files that it has mapped."""
    status = Path(f"/proc/{pid or os.getpid()}/status").read_text("utf-8")
    line = next(line for line in status.splitlines() if line.startswith("RssAnon:"))
    return int(line.split()[1])


def settled_kib() -> int:
    """The same of this process, after it gave back what is free: garbage first, then the allocator's empty pages."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return private_kib()

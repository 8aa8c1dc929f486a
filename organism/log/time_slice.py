"""How long a thread's time slices are, as far as Linux lets it say so.

Who wakes up with a shorter slice than the one that runs has goes first (Linux 6.12 and newer; before, it changes
nothing). A commit needs a core for tenths of a millisecond at a time, between waits for the disk; behind a thread
that computes it would wait for up to three milliseconds each time.
"""

from __future__ import annotations

import ctypes
import os
import platform
import threading
from typing import Final

SHORT_NS: Final = 100_000
"""For a thread that commits."""
LONG_NS: Final = 20_000_000
"""For one that computes behind the others: all of them go first when they wake up."""
SETTING_CALLS: Final = (("aarch64", 274), ("riscv64", 274), ("x86_64", 314))
"""The number of ``sched_setattr`` on each machine: the C library has no name for it."""


class Attributes(ctypes.Structure):
    """Linux's ``struct sched_attr``, in its first version."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("period", ctypes.c_uint64),
    )


def ask_for_slices(length_ns: int) -> None:
    """Ask for slices of this length for the calling thread. Where that is not known or not allowed, nothing changes."""
    number = dict(SETTING_CALLS).get(platform.machine())
    if platform.system() != "Linux" or number is None or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return
    nice = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    wanted = Attributes(ctypes.sizeof(Attributes), os.SCHED_OTHER, 0, nice, 0, length_ns, 0, 0)
    ctypes.CDLL(None).syscall(number, 0, ctypes.byref(wanted), 0)

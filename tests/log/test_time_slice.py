"""The thread that commits asks Linux for short time slices; no other thread does, and nothing else of it changes."""

from __future__ import annotations

import ctypes
import os
import platform
import threading
from pathlib import Path

import pytest

from organism.log.time_slice import SETTING_CALLS, SHORT_SLICE_NS, Attributes, shorten_time_slice
from tests.log.engines import open_durable

pytestmark = pytest.mark.skipif(
    platform.system() != "Linux"
    or platform.machine() not in dict(SETTING_CALLS)
    or tuple(int(part) for part in platform.release().split(".")[:2]) < (6, 12),
    reason="a thread may say so on Linux 6.12 and newer",
)


def attributes(thread: int) -> Attributes:
    """What Linux knows of a thread: ``sched_getattr`` has the number after that of ``sched_setattr``."""
    found = Attributes()
    number = dict(SETTING_CALLS)[platform.machine()] + 1
    assert ctypes.CDLL(None).syscall(number, thread, ctypes.byref(found), ctypes.sizeof(found), 0) == 0
    return found


async def test_only_the_thread_that_commits_has_short_slices(tmp_path: Path) -> None:
    log = await open_durable(tmp_path)
    slices = {thread.name: attributes(thread.native_id or 0).runtime for thread in threading.enumerate()}
    await log.close()
    assert slices["log-writer"] == SHORT_SLICE_NS
    assert [name for name, slice_ns in slices.items() if slice_ns <= SHORT_SLICE_NS] == ["log-writer"]


def test_a_thread_keeps_how_nice_it_is() -> None:
    found: list[tuple[int, int]] = []

    def work() -> None:
        me = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, me, 7)
        shorten_time_slice()
        found.append((os.getpriority(os.PRIO_PROCESS, me), attributes(0).runtime))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [(7, SHORT_SLICE_NS)]


def test_one_that_runs_when_nobody_else_does_is_left_alone() -> None:
    policies: list[int] = []

    def work() -> None:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        shorten_time_slice()
        policies.append(os.sched_getscheduler(0))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert policies == [os.SCHED_IDLE]

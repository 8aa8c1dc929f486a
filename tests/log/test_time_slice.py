"""Who commits asks Linux for short time slices, who writes rows beside it for long ones; nothing else changes."""

from __future__ import annotations

import ctypes
import os
import platform
import threading
from pathlib import Path

import pytest

from organism.log.projection import NICENESS, QUICK_NICENESS
from organism.log.time_slice import LONG_NS, SETTING_CALLS, SHORT_NS, Attributes, ask_for_slices
from tests.log.engines import open_durable
from tests.log.projecting import committing, committing_pid, pid_of, projected

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


def threads_of(process: int) -> list[int]:
    return [int(thread.name) for thread in Path(f"/proc/{process}/task").iterdir()]


async def test_only_the_thread_that_commits_has_short_slices(tmp_path: Path) -> None:
    log = await open_durable(tmp_path)
    slices = {thread.name: attributes(thread.native_id or 0).runtime for thread in threading.enumerate()}
    await log.close()
    assert slices["log-writer"] == SHORT_NS
    assert [name for name, slice_ns in slices.items() if slice_ns <= SHORT_NS] == ["log-writer"]


async def test_the_processes_beside_the_log_have_their_slices(tmp_path: Path) -> None:
    async with projected(tmp_path / "log") as log:
        await committing(log)
        assert attributes(committing_pid(log)).runtime == SHORT_NS
        threads = threads_of(pid_of(log))
        usual = os.getpriority(os.PRIO_PROCESS, 0)
        found = {os.getpriority(os.PRIO_PROCESS, thread) - usual: attributes(thread).runtime for thread in threads}
        assert os.getpriority(os.PRIO_PROCESS, pid_of(log)) - usual == NICENESS
        assert found == {NICENESS: LONG_NS, QUICK_NICENESS: LONG_NS}


def test_a_thread_keeps_how_nice_it_is() -> None:
    found: list[tuple[int, int]] = []

    def work() -> None:
        me = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, me, 7)
        ask_for_slices(SHORT_NS)
        found.append((os.getpriority(os.PRIO_PROCESS, me), attributes(0).runtime))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [(7, SHORT_NS)]


def test_one_that_runs_when_nobody_else_does_is_left_alone() -> None:
    policies: list[int] = []

    def work() -> None:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        ask_for_slices(SHORT_NS)
        policies.append(os.sched_getscheduler(0))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert policies == [os.SCHED_IDLE]

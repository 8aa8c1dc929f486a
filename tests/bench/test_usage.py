"""What processes used of the machine: the arithmetic, and that children count."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bench.usage import CPU_US, LOOP_US, OTHERS_SHARE, QUEUE_SHARE, ThreadTimes, Usage, spent, usage

SPIN = """
import sys, time
while time.process_time() < 0.3:
    pass
print("spun", flush=True)
sys.stdin.read()
"""
BEFORE = Usage(
    at_ns=0,
    machine_ns=100_000_000,
    client_ns=1_000_000,
    processes={1: 5_000_000, 2: 1_000_000},
    threads={1: ThreadTimes(4_000_000, 0), 11: ThreadTimes(1_000_000, 0), 2: ThreadTimes(1_000_000, 7)},
)
AFTER = Usage(
    at_ns=10_000_000,
    machine_ns=113_000_000,
    client_ns=3_000_000,
    processes={1: 11_000_000, 2: 2_000_000, 3: 1_000_000},
    threads={
        1: ThreadTimes(8_000_000, 2_000_000),
        11: ThreadTimes(3_000_000, 9_000_000),
        2: ThreadTimes(2_000_000, 7),
        3: ThreadTimes(1_000_000, 0),
    },
)


def test_processor_time_is_that_of_all_processes_and_the_loop_is_the_busiest_thread() -> None:
    used = spent(BEFORE, AFTER, count=100)
    assert (used[LOOP_US], used[CPU_US]) == (40, 80)


def test_the_queue_share_is_the_part_of_the_time_that_the_busiest_thread_waited() -> None:
    assert spent(BEFORE, AFTER, count=100)[QUEUE_SHARE] == 0.2


def test_others_are_who_used_the_cores_and_is_neither_measured_nor_the_client() -> None:
    cores = os.cpu_count()
    assert cores
    assert spent(BEFORE, AFTER, count=100)[OTHERS_SHARE] == pytest.approx(0.3 / cores)


@pytest.mark.parametrize(("after", "count"), [(Usage(10, 0, 0, {}, {}), 100), (AFTER, 0)])
def test_nothing_is_told_where_nothing_is_known_or_done(after: Usage, count: int) -> None:
    assert spent(BEFORE, after, count) == {}


def test_what_a_child_used_counts_for_the_process_that_started_it() -> None:
    before = usage()
    with subprocess.Popen([sys.executable, "-c", SPIN], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        after = usage()
        assert child.stdin is not None
        child.stdin.close()
    assert spent(before, after, count=1)[CPU_US] >= 300_000

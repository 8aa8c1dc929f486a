"""What processes used of the machine: processor time, and how long they waited for a core.

Standard library only: it runs in every environment. On a shared machine a rate alone says little; a process that waited
for a core would have been faster on a quiet one, and what it used of a processor is nearly the same on both.
"""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

LOOP_US, CPU_US, QUEUE_SHARE, OTHERS_SHARE = "loop_us", "cpu_us", "queue_share", "others_share"
MICROSECOND_NS, SECOND_NS = 1_000, 1_000_000_000
PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class ThreadTimes:
    """What the scheduler counted of a thread so far, in nanoseconds."""

    ran_ns: int
    waited_ns: int


@dataclass(frozen=True, slots=True)
class Usage:
    """What some processes have used up to a moment.

    ``processes`` holds the processor time of each by its id, that of threads that have ended included; ``threads``
    those that run, by their ids, which no two threads of a machine share. ``client_ns`` is the processor time of who
    looks, if it is none of them, and ``machine_ns`` that of all processes of the machine, and what its host took.
    """

    at_ns: int
    machine_ns: int
    client_ns: int
    processes: Mapping[int, int]
    threads: Mapping[int, ThreadTimes]


def usage(root: int | None = None) -> Usage:
    """What a process (this one by default) and all processes that it started have used up to now.

    Empty where the kernel does not tell, as on systems other than Linux.
    """
    processes: dict[int, int] = {}
    threads: dict[int, ThreadTimes] = {}
    for pid in _family(root or os.getpid()):
        with suppress(OSError, ValueError):  # it has ended since
            processes[pid] = time.clock_gettime_ns(_clock_of(pid))
            threads |= dict(_threads(pid))
    client_ns = 0 if os.getpid() in processes else time.process_time_ns()
    return Usage(time.perf_counter_ns(), _machine_ns(), client_ns, processes, threads)


def spent(before: Usage, after: Usage, count: int) -> dict[str, float]:
    """The figures of a measurement in which ``count`` hops or requests were done between two moments.

    ``loop_us`` and ``cpu_us`` are microseconds of processor time for each of them: of the busiest thread, and of all
    processes together. ``queue_share`` is the part of the time that the busiest thread waited for a core, and
    ``others_share`` the part of all cores that neither these processes nor their client used, but others did. What was
    not there before counts from its start. Empty if nothing is known, or nothing was done.
    """
    if not (count and after.threads):
        return {}
    new = ThreadTimes(0, 0)
    loop = max(after.threads, key=lambda thread: after.threads[thread].ran_ns - before.threads.get(thread, new).ran_ns)
    then, now = before.threads.get(loop, new), after.threads[loop]
    used_ns = sum(used - before.processes.get(pid, 0) for pid, used in after.processes.items())
    seconds_ns = after.at_ns - before.at_ns
    others_ns = after.machine_ns - before.machine_ns - used_ns - (after.client_ns - before.client_ns)
    return {
        LOOP_US: (now.ran_ns - then.ran_ns) / count / MICROSECOND_NS,
        CPU_US: used_ns / count / MICROSECOND_NS,
        QUEUE_SHARE: (now.waited_ns - then.waited_ns) / seconds_ns,
        OTHERS_SHARE: max(others_ns, 0) / seconds_ns / (os.cpu_count() or 1),
    }


def _machine_ns() -> int:
    """What all cores have worked so far: all but idling and waiting for a disk. 0 where the kernel does not tell."""
    with suppress(OSError):
        _, user, nice, system, _idle, _disk, *others = (PROC / "stat").read_text("ascii").partition("\n")[0].split()
        interrupts_and_host = others[:3]
        ticks = sum(map(int, (user, nice, system, *interrupts_and_host)))
        return ticks * SECOND_NS // os.sysconf("SC_CLK_TCK")
    return 0


def _clock_of(pid: int) -> int:
    """The clock of the processor time of a process, as the C library makes it; Python has this for threads alone."""
    return ~pid << 3 | 2


def _family(root: int) -> Iterator[int]:
    """A process, its children, theirs, and so on."""
    yield root
    with suppress(OSError):  # it has ended since
        for children in [path.read_text("ascii") for path in PROC.glob(f"{root}/task/*/children")]:
            for child in children.split():
                yield from _family(int(child))


def _threads(pid: int) -> Iterator[tuple[int, ThreadTimes]]:
    for thread in PROC.glob(f"{pid}/task/*"):
        with suppress(OSError):  # it has ended since
            ran, waited, _ = (thread / "schedstat").read_text("ascii").split()
            yield int(thread.name), ThreadTimes(int(ran), int(waited))

"""What the doctor knows: each check takes facts and says what is well, or each fault with its remedy. All are pure."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from organism.model.times import spoken

PYTHON: Final = (3, 11)
SQLITE: Final = "3.51.3"
"""Older ones can damage a file that several connections write (the fault of the WAL reset)."""
FLOORS: Final[Mapping[str, str]] = {"lxml": "6.1.0", "starlette": "0.49.1"}
"""Below these a dependency has a known hole, whatever its package asks for."""
FREE_BYTES: Final = 256 * 1024 * 1024
OTHERS: Final = 0o077
CLOCK_WAS_SET_US: Final = 1_767_225_600_000_000
"""The beginning of 2026: no machine that runs this lives before it."""
TOLERANCE_US: Final = 1_000_000

_REQUIREMENT: Final = re.compile(r"([\w.-]+)>=([\d.]+)")
_MICROSECONDS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong, and what to do."""

    what: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check came to; it is well if there are no faults."""

    said: str
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or directory that must be its owner's alone."""

    path: Path
    mode: int
    owner: int


def python(version: Sequence[int]) -> Finding:
    """Whether this Python is new enough."""
    said = ".".join(map(str, version[:3]))
    if tuple(version[:2]) >= PYTHON:
        return Finding(said)
    wanted = ".".join(map(str, PYTHON))
    return Finding(
        said, (Fault(f"Python {said} is too old.", f"Install Python {wanted} or newer, and Organism in it."),)
    )


def floors(requirements: Iterable[str]) -> dict[str, str]:
    """The least version of each dependency: what the package asks for, or more where a hole is known."""
    asked = {found[1]: found[2] for said in requirements if (found := _REQUIREMENT.match(said)) and ";" not in said}
    return {name: max(asked.get(name, "0"), FLOORS.get(name, "0"), key=numbers) for name in sorted({*asked, *FLOORS})}


def dependencies(least: Mapping[str, str], installed: Mapping[str, str | None]) -> Finding:
    """Whether each dependency is there, and not below its floor."""
    faults = [
        Fault(
            f"{name} {installed.get(name)} is installed." if installed.get(name) else f"{name} is not installed.",
            f"Install it anew: pip install '{name}>={floor}'",
        )
        for name, floor in least.items()
        if numbers(installed.get(name) or "0") < numbers(floor)
    ]
    return Finding(f"{len(least)} packages", tuple(faults))


def sqlite(version: str) -> Finding:
    """Whether the log's SQLite is free of the fault that damages files."""
    if numbers(version) >= numbers(SQLITE):
        return Finding(version)
    fault = Fault(f"SQLite {version} can damage a log.", f"pip install --upgrade pysqlite3; {SQLITE} is the least.")
    return Finding(version, (fault,))


def numbers(version: str) -> tuple[int, ...]:
    """A version as numbers that compare: ``6.1`` is ``6.1.0``."""
    found = [int(part) for part in re.findall(r"\d+", version)[:4]]
    return (*found, *(0 for _ in range(4 - len(found))))


def disk(free_bytes: int, where: Path) -> Finding:
    """Whether there is room for a log."""
    said = f"{free_bytes / 1e9:.1f} GB free"
    if free_bytes >= FREE_BYTES:
        return Finding(said)
    fault = Fault(
        f"Only {free_bytes / 1e6:.0f} MB are free on the disk of {where}: a full disk stops all writing.",
        "Make room, or serve another --data directory.",
    )
    return Finding(said, (fault,))


def permissions(entries: Sequence[Entry], user: int) -> Finding:
    """Whether nobody else reads the log, the token or a key."""
    open_ones = [entry for entry in entries if entry.mode & OTHERS]
    foreign = [entry for entry in entries if user not in {0, entry.owner}]
    faults = [
        Fault(
            f"{entry.path} is open to other users (mode {stat.S_IMODE(entry.mode):04o}).",
            f"chmod {'700' if stat.S_ISDIR(entry.mode) else '600'} {entry.path}",
        )
        for entry in open_ones
    ]
    faults += [
        Fault(f"{entry.path} belongs to user {entry.owner}, not to you ({user}).", "Run as its owner, or chown it.")
        for entry in foreign
    ]
    return Finding(f"files and directories: {len(entries)}", tuple(faults))


def clock(samples_us: Sequence[int], last_event_us: int) -> Finding:
    """Whether the wall clock is set, runs forward, and is not behind the log."""
    now = samples_us[-1]
    said = spoken(now)
    faults = []
    if now < CLOCK_WAS_SET_US:
        faults.append(Fault(f"The clock says {said}: it was never set.", "Set it, or start the time service (NTP)."))
    back = max((before - after for before, after in pairwise(samples_us)), default=0)
    if back > 0:
        faults.append(
            Fault(f"The clock went back by {back} µs while it was watched.", "Look at the time service (NTP).")
        )
    if last_event_us - now > TOLERANCE_US:
        behind = (last_event_us - now) / _MICROSECONDS
        faults.append(
            Fault(
                f"The clock is {behind:,.0f} s behind the last event of the log, whose time never goes back.",
                "Set it. If it is right, it was wrong before: new events carry the later time until it has come.",
            )
        )
    return Finding(said, tuple(faults))

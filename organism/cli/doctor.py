"""``organism doctor``: every check of the table, each fault with its remedy. A server may run meanwhile."""

from __future__ import annotations

import errno
import os
import re
import shutil
import socket
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import httpx2
from rich.text import Text

from organism.agents import BUNDLED_AGENTS
from organism.bootstrap import VERSION, payload_check
from organism.cli.client import notice_of, place
from organism.cli.exits import Exit, end
from organism.cli.log import TenantLog, logs_in
from organism.cli.options import Doctor, Remote
from organism.cli.serve import holder
from organism.cli.show import out, print_json
from organism.config.load import load
from organism.config.tokens import TOKENS_FILE, read_tokens
from organism.errors import ConfigInvalid, LogDamaged, NotFound
from organism.log.offline import SQLITE_IN_USE, last_at
from organism.model.times import spoken
from organism.tools.toolbox import unasked

PYTHON: Final = (3, 11)
SQLITE: Final = "3.51.3"
"""Older ones can damage a file that several connections write (the fault of the WAL reset)."""
FREE_BYTES: Final = 256 * 1024 * 1024
OTHERS: Final = 0o077
CLOCK_WAS_SET_US: Final = 1_767_225_600_000_000
"""The beginning of 2026: no machine that runs this lives before it."""
TOLERANCE_US: Final = 1_000_000
SAMPLES: Final = 2000
PATIENCE_SECONDS: Final = 5.0
_REQUIREMENT: Final = re.compile(r"([\w.-]+)>=([\d.]+)")


class Fault(NamedTuple):
    """One thing that is wrong, and what to do."""

    fault: str
    remedy: str


class Finding(NamedTuple):
    """What a check came to; it is well if there are no faults."""

    said: str
    faults: Sequence[Fault] = ()


def doctor(options: Doctor) -> None:
    """Run all checks; exit 1 if any finds a fault."""
    found = {name: check(options) for name, check in CHECKS.items()}
    count = sum(len(finding.faults) for finding in found.values())
    if options.json:
        checks = [
            {"check": name, "ok": not faults, "said": said, "faults": [fault._asdict() for fault in faults]}
            for name, (said, faults) in found.items()
        ]
        print_json({"ok": not count, "checks": checks})
    else:
        _show(found, count)
    if count:
        end(Exit.FAILED)


def _show(found: Mapping[str, Finding], count: int) -> None:
    width = max(map(len, found))
    for name, finding in found.items():
        mark = ("✗ ", "bold red") if finding.faults else ("✓ ", "green")
        out().print(Text.assemble(mark, name.ljust(width), "  ", (finding.said, "dim")))
        for fault in finding.faults:
            out().print(Text.assemble("  ", fault.fault, "\n  ", ("next: ", "bold"), fault.remedy))
    out().print("\nAll is well." if not count else f"\n{count} {'fault' if count == 1 else 'faults'}.")


def _found(said: str, *tried: tuple[bool, str, str]) -> Finding:
    """A fault and its remedy for each of what was tried that is wrong."""
    return Finding(said, [Fault(fault, remedy) for is_wrong, fault, remedy in tried if is_wrong])


def python(version: tuple[int, ...]) -> Finding:
    """Whether this Python is new enough."""
    said, wanted = (".".join(map(str, each)) for each in (version, PYTHON))
    remedy = f"Install Python {wanted} or newer, and Organism in it."
    return _found(said, (version < PYTHON, f"Python {said} is too old.", remedy))


def _dependencies(_: Doctor) -> Finding:
    least, installed = floors(metadata.requires("organism") or ()), {}
    for name in least:
        with suppress(metadata.PackageNotFoundError):
            installed[name] = metadata.version(name)
    return dependencies(least, installed)


def floors(requirements: Iterable[str]) -> dict[str, str]:
    """The least version of each dependency that the package asks for."""
    asked = {found[1]: found[2] for said in requirements if (found := _REQUIREMENT.match(said)) and ";" not in said}
    return dict(sorted(asked.items()))


def dependencies(least: Mapping[str, str], installed: Mapping[str, str]) -> Finding:
    """Whether each dependency is there, and not below its floor."""
    faults = [
        Fault(
            f"{name} {installed[name]} is installed." if name in installed else f"{name} is not installed.",
            f"Install it anew: pip install '{name}>={floor}'",
        )
        for name, floor in least.items()
        if _numbers(installed.get(name, "0")) < _numbers(floor)
    ]
    return Finding(f"{len(least)} packages", faults)


def sqlite(version: str) -> Finding:
    """Whether the log's SQLite is free of the fault that damages files."""
    remedy = f"pip install --upgrade pysqlite3; {SQLITE} is the least."
    return _found(version, (_numbers(version) < _numbers(SQLITE), f"SQLite {version} can damage a log.", remedy))


def _numbers(version: str) -> tuple[int, ...]:
    """A version as numbers that compare: ``6.1`` is ``6.1.0``."""
    found = [int(part) for part in re.findall(r"\d+", version)[:4]]
    return (*found, *(0 for _ in range(4 - len(found))))


def _read(path: Path, said: Callable[[Path], str]) -> Finding:
    """What a file that people write holds, or every fault of it."""
    try:
        with redirect_stdout(sys.stderr):  # handlers are imported, and may print
            return Finding(said(path))
    except ConfigInvalid as error:
        remedy = "Correct it, then ask the doctor again."
        return Finding(str(path), [Fault(f"{fault.pointer}: {fault.message}.", remedy) for fault in error.details])


def _config(path: Path) -> str:
    settings = load(path, check_payload=payload_check(), ship=unasked(VERSION), bundled=BUNDLED_AGENTS)
    return f"{path}: {settings.name}, listeners: {len(settings.listeners)}"


def _tokens(path: Path) -> str:
    if not path.exists():
        return "the operator's alone"
    entries = read_tokens(path)
    return f"{path}: tokens: {sum(len(entry.tokens) for entry in entries)}, tenants: {len(entries)}"


def _directory(options: Doctor) -> Finding:
    """Whether the data directory is there and can be written, or can be made."""
    data, ground = options.data, _ground(options.data)
    said = f"{data}" if data.is_dir() else f"{data}, to be made at the first start"
    try:
        with tempfile.TemporaryFile(dir=ground):
            return Finding(said)
    except NotADirectoryError:
        fault = Fault(f"{ground} is a file, where a directory is wanted.", "Name another one: --data DIR.")
    except OSError as error:
        fault = Fault(f"{ground} cannot be written: {error.strerror}.", "Run as its owner, or name another --data DIR.")
    return Finding(said, (fault,))


def _ground(data: Path) -> Path:
    """The directory, or the nearest one above it that is there."""
    return next(path for path in (data.absolute(), *data.absolute().parents) if path.exists())


def disk(free_bytes: int, where: Path) -> Finding:
    """Whether there is room for a log."""
    fault = f"Only {free_bytes / 1e6:.0f} MB are free on the disk of {where}: a full disk stops all writing."
    remedy = "Make room, or serve another --data directory."
    return _found(f"{free_bytes / 1e9:.1f} GB free", (free_bytes < FREE_BYTES, fault, remedy))


def permissions(paths: Sequence[Path], user: int) -> Finding:
    """Whether nobody else reads the log, the token or a key."""
    found = [(path, path.stat()) for path in paths]
    faults = [
        Fault(
            f"{path} is open to other users (mode {stat.S_IMODE(status.st_mode):04o}).",
            f"chmod {'700' if stat.S_ISDIR(status.st_mode) else '600'} {path}",
        )
        for path, status in found
        if status.st_mode & OTHERS
    ]
    faults += [
        Fault(f"{path} belongs to user {status.st_uid}, not to you ({user}).", "Run as its owner, or chown it.")
        for path, status in found
        if user not in {0, status.st_uid}
    ]
    return Finding(f"files and directories: {len(paths)}", faults)


def _private(options: Doctor) -> Iterator[Path]:
    """The data directory, those of its tenants, every file below them, and the keys that lie elsewhere."""
    data = options.data
    if data.is_dir():
        yield data
        yield from (path for path in sorted(data.glob("tenants/*")) if path.is_dir())
        yield from (path for path in sorted(data.rglob("*")) if path.is_file())
    yield from (log.key for log in logs_in(options) if log.key is not None and log.key.is_file())


def _log(options: Doctor) -> Finding:
    """Whether every log can be opened, as far as its key, its anchor and its last event tell."""
    found = [(log.tenant, _opened(log)) for log in logs_in(options)]
    said = ", ".join(finding.said if len(found) == 1 else f"{tenant} {finding.said}" for tenant, finding in found)
    faults = [fault for _, finding in found for fault in finding.faults]
    return Finding(f"{said}; `organism log verify` checks all of it" if said else "none yet", faults)


def _opened(log: TenantLog) -> Finding:
    try:
        position = log.place.read_anchor(log.place.read_key()).position
        last_at(log.directory)
    except (LogDamaged, NotFound) as error:
        return Finding("damaged", (Fault(error.message, LogDamaged.remediation),))
    return Finding(f"anchored at position {position}")


def clock(samples_us: Sequence[int], last_event_us: int) -> Finding:
    """Whether the wall clock is set, runs forward, and is not behind the log."""
    now = samples_us[-1]
    said, behind_us = spoken(now), last_event_us - now
    back = max((before - after for before, after in pairwise(samples_us)), default=0)
    never = f"The clock says {said}: it was never set."
    went_back = f"The clock went back by {back} µs while it was watched."
    behind = f"The clock is {behind_us / 1e6:,.0f} s behind the last event of the log, whose time never goes back."
    set_it = "Set it. If it is right, it was wrong before: new events carry the later time until it has come."
    return _found(
        said,
        (now < CLOCK_WAS_SET_US, never, "Set it, or start the time service (NTP)."),
        (back > 0, went_back, "Look at the time service (NTP)."),
        (behind_us > TOLERANCE_US, behind, set_it),
    )


def _last_at(log: TenantLog) -> int:
    try:
        return last_at(log.directory)
    except (NotFound, LogDamaged):
        return 0


def _server(options: Doctor) -> Finding:
    """Who holds the data directory, and whether the server that does takes work."""
    who, notice = holder(options.data), notice_of(options.data)
    if who is None:
        return Finding("none runs here" + ("; the last one was killed, which does no harm" if notice else ""))
    where = place(Remote(data=options.data))
    try:
        with where.http(PATIENCE_SECONDS) as http:
            answer = http.get("/readyz")
        said = "" if answer.is_success else str(answer.json()["error"]["message"])
    except (httpx2.HTTPError, ValueError, KeyError) as error:
        said = str(error) or type(error).__name__
    if not said:
        return Finding(f"{who} serves {options.data} at {where.url}")
    fault = f"{who} holds {options.data}, and takes no work at {where.url}: {said}"
    return Finding(who, (Fault(fault, "Look at what it said on its standard error; stop it if it hangs."),))


def _port(options: Doctor) -> Finding:
    """Whether the port is free, unless the server already runs."""
    where = f"{options.host}:{options.port}"
    if holder(options.data) is not None:
        return Finding("in use by the server itself")
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind((options.host, options.port))
            tried.listen()
    except OSError as error:
        is_taken = error.errno == errno.EADDRINUSE
        why = "is taken by another program" if is_taken else f"cannot be listened on: {error.strerror or error}"
        return Finding(where, (Fault(f"{where} {why}.", "Stop what listens there, or serve another --port (0: any)."),))
    return Finding(f"{where} is free")


CHECKS: Final[Mapping[str, Callable[[Doctor], Finding]]] = {
    "python": lambda _: python(sys.version_info[:3]),
    "dependencies": _dependencies,
    "sqlite": lambda _: sqlite(SQLITE_IN_USE),
    "config": lambda options: _read(options.config, _config),
    "tokens": lambda options: _read(options.config.parent / TOKENS_FILE, _tokens),
    "data": _directory,
    "disk": lambda options: disk(shutil.disk_usage(_ground(options.data)).free, options.data),
    "permissions": lambda options: permissions([*_private(options)], os.geteuid()),
    "log": _log,
    "clock": lambda options: clock(
        [time.time_ns() // 1000 for _ in range(SAMPLES)], max(map(_last_at, logs_in(options)), default=0)
    ),
    "server": _server,
    "port": _port,
}
"""Every check there is, in the order in which they are told."""

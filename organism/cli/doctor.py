"""``organism doctor``: every check of the table, each fault with its remedy. A server may run meanwhile."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import httpx2
from rich.text import Text

from organism.agents import BUNDLED_AGENTS
from organism.bootstrap import VERSION, payload_check
from organism.cli import checks
from organism.cli.checks import Entry, Fault, Finding
from organism.cli.client import notice_of, place
from organism.cli.exits import Exit, end
from organism.cli.log import TenantLog, logs_in
from organism.cli.options import Doctor, Remote
from organism.cli.serve import holder
from organism.cli.show import out, print_json
from organism.config.load import load
from organism.config.tokens import TOKENS_FILE, read_tokens
from organism.errors import ConfigInvalid, LogDamaged, NotFound
from organism.log.driver import SQLITE_VERSION
from organism.log.offline import last_at
from organism.tools.toolbox import unasked

SAMPLES: Final = 2000
PATIENCE_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Check:
    """A line of the table: its name, and what finds the facts and judges them."""

    name: str
    look: Callable[[Doctor], Finding]


def doctor(options: Doctor) -> None:
    """Run all checks; exit 1 if any finds a fault."""
    found = {check.name: check.look(options) for check in CHECKS}
    count = sum(len(finding.faults) for finding in found.values())
    if options.json:
        print_json({"ok": not count, "checks": [_said(name, finding) for name, finding in found.items()]})
    else:
        _show(found, count)
    if count:
        end(Exit.FAILED)


def _said(name: str, finding: Finding) -> dict[str, Any]:
    faults = [{"fault": fault.what, "remedy": fault.remedy} for fault in finding.faults]
    return {"check": name, "ok": not faults, "said": finding.said, "faults": faults}


def _show(found: dict[str, Finding], count: int) -> None:
    width = max(map(len, found))
    for name, finding in found.items():
        mark = ("✗ ", "bold red") if finding.faults else ("✓ ", "green")
        out().print(Text.assemble(mark, name.ljust(width), "  ", (finding.said, "dim")))
        for fault in finding.faults:
            out().print(Text.assemble("  ", fault.what, "\n  ", ("next: ", "bold"), fault.remedy))
    out().print("\nAll is well." if not count else f"\n{count} {'fault' if count == 1 else 'faults'}.")


def _python(_: Doctor) -> Finding:
    return checks.python(sys.version_info[:3])


def _dependencies(_: Doctor) -> Finding:
    least = checks.floors(metadata.requires("organism") or ())
    return checks.dependencies(least, {name: _installed(name) for name in least})


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _sqlite(_: Doctor) -> Finding:
    return checks.sqlite(SQLITE_VERSION)


def _config(options: Doctor) -> Finding:
    try:
        with redirect_stdout(sys.stderr):  # handlers are imported, and may print
            ship = unasked(VERSION, options.config)
            settings = load(options.config, check_payload=payload_check(), ship=ship, bundled=BUNDLED_AGENTS)
    except ConfigInvalid as error:
        return Finding(str(options.config), _config_faults(error))
    return Finding(f"{options.config}: {settings.name}, listeners: {len(settings.listeners)}")


def _config_faults(error: ConfigInvalid) -> tuple[Fault, ...]:
    return tuple(
        Fault(f"{fault.pointer}: {fault.message}.", "Correct it, then ask the doctor again.") for fault in error.details
    )


def _tokens(options: Doctor) -> Finding:
    path = options.config.parent / TOKENS_FILE
    if not path.exists():
        return Finding("the operator's alone")
    try:
        entries = read_tokens(path)
    except ConfigInvalid as error:
        return Finding(str(path), _config_faults(error))
    return Finding(f"{path}: tokens: {sum(len(entry.tokens) for entry in entries)}, tenants: {len(entries)}")


def _directory(options: Doctor) -> Finding:
    """Whether the data directory is there and can be written, or can be made."""
    data = options.data
    ground = _ground(data)
    said = f"{data}" if data.is_dir() else f"{data}, to be made at the first start"
    if not ground.is_dir():
        fault = Fault(f"{ground} is a file, where a directory is wanted.", "Name another one: --data DIR.")
        return Finding(said, (fault,))
    try:
        with tempfile.TemporaryFile(dir=ground):
            return Finding(said)
    except OSError as error:
        fault = Fault(f"{ground} cannot be written: {error.strerror}.", "Run as its owner, or name another --data DIR.")
        return Finding(said, (fault,))


def _ground(data: Path) -> Path:
    """The directory, or the nearest one above it that is there."""
    return next(path for path in (data.absolute(), *data.absolute().parents) if path.exists())


def _disk(options: Doctor) -> Finding:
    return checks.disk(shutil.disk_usage(_ground(options.data)).free, options.data)


def _permissions(options: Doctor) -> Finding:
    return checks.permissions([_entry(path) for path in _private(options)], os.geteuid())


def _entry(path: Path) -> Entry:
    found = path.stat()
    return Entry(path, found.st_mode, found.st_uid)


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
    faults = tuple(fault for _, finding in found for fault in finding.faults)
    return Finding(f"{said}; `organism log verify` checks all of it" if said else "none yet", faults)


def _opened(log: TenantLog) -> Finding:
    try:
        position = log.place.read_anchor(log.place.read_key()).position
        last_at(log.directory)
    except (LogDamaged, NotFound) as error:
        return Finding("damaged", (Fault(error.message, LogDamaged.remediation),))
    return Finding(f"anchored at position {position}")


def _clock(options: Doctor) -> Finding:
    last = max(map(_last_at, logs_in(options)), default=0)
    return checks.clock([time.time_ns() // 1000 for _ in range(SAMPLES)], last)


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
        answer = httpx2.get(
            f"{where.url}/readyz", timeout=PATIENCE_SECONDS, trust_env=False, verify=where.authorities() or False
        )
        said = "" if answer.is_success else str(answer.json()["error"]["message"])
    except (httpx2.HTTPError, ValueError, KeyError) as error:
        said = str(error) or type(error).__name__
    if not said:
        return Finding(f"{who} serves {options.data} at {where.url}")
    fault = Fault(
        f"{who} holds {options.data}, and takes no work at {where.url}: {said}",
        "Look at what it said on its standard error; stop it if it hangs.",
    )
    return Finding(who, (fault,))


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


CHECKS: Final = (
    Check("python", _python),
    Check("dependencies", _dependencies),
    Check("sqlite", _sqlite),
    Check("config", _config),
    Check("tokens", _tokens),
    Check("data", _directory),
    Check("disk", _disk),
    Check("permissions", _permissions),
    Check("log", _log),
    Check("clock", _clock),
    Check("server", _server),
    Check("port", _port),
)
"""Every check there is, in the order in which they are told."""

"""``organism doctor``: every check of the table, each fault with its remedy. A server may be running."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Final, NamedTuple

import httpx2
import typer
from rich.text import Text

from organism.agents import BUNDLED_AGENTS
from organism.bootstrap import VERSION, payload_check
from organism.cli.client import API, PAGE_ROWS, Server, find_server, read_notice
from organism.cli.exits import Exit
from organism.cli.log import TenantLog, logs_in
from organism.cli.options import Doctor, Remote
from organism.cli.output import out, print_json
from organism.cli.serve import holder
from organism.codec import Codec
from organism.config.load import load
from organism.config.tenant import effective
from organism.config.tokens import TOKENS_FILE, defaults_of, read_tokens
from organism.errors import ConfigInvalid, LibraryDamaged, LogDamaged, NotFound
from organism.log.offline import SQLITE_IN_USE, last_at
from organism.model.ids import DEFAULT_TENANT
from organism.model.times import spoken
from organism.pump.rules import Rules, payload_classes
from organism.rag.index import installed
from organism.rag.verify import documents_without_words
from organism.server.runner import ServerSettings, listen
from organism.sessions import compaction
from organism.tools.toolbox import static_tools

SQLITE: Final = (3, 51, 3)
"""Older ones can damage a file that several connections write (the WAL-reset bug)."""
FREE_BYTES: Final = 256 * 1024 * 1024
OTHERS: Final = 0o077
CLOCK_WAS_SET_US: Final = 1_767_225_600_000_000
"""The beginning of 2026: no clock that is right shows an earlier time."""
TOLERANCE_US: Final = 1_000_000
PATIENCE_SECONDS: Final = 5.0
GRAPH: Final = "more than 10,000 documents of an index are searched by a graph"
NO_GRAPH: Final = (
    "more than 10,000 documents of an index are searched exactly, since hnswlib is missing: "
    "`apt-get install g++ python3-dev`, then `./scripts/setup run`"
)


class Fault(NamedTuple):
    """One thing that is wrong, and what to do."""

    fault: str
    remedy: str


class Finding(NamedTuple):
    """The result of a check: all is well if there are no faults."""

    summary: str
    faults: Sequence[Fault] = ()


def doctor(options: Doctor) -> None:
    """Run all checks; exit 1 if any finds a fault."""
    findings = {name: check(options) for name, check in CHECKS.items()}
    count = sum(len(finding.faults) for finding in findings.values())
    if options.json:
        checks = [
            {"check": name, "ok": not faults, "summary": summary, "faults": [fault._asdict() for fault in faults]}
            for name, (summary, faults) in findings.items()
        ]
        print_json({"ok": not count, "checks": checks})
    else:
        _show(findings, count)
    if count:
        raise typer.Exit(Exit.FAILED)


def _show(findings: Mapping[str, Finding], count: int) -> None:
    width = max(map(len, findings))
    for name, finding in findings.items():
        mark = ("✗ ", "bold red") if finding.faults else ("✓ ", "green")
        out().print(Text.assemble(mark, name.ljust(width), "  ", (finding.summary, "dim")))
        for fault in finding.faults:
            out().print(Text.assemble("  ", fault.fault, "\n  ", ("next: ", "bold"), fault.remedy))
    out().print("\nAll is well." if not count else f"\n{count} {'fault' if count == 1 else 'faults'}.")


def _finding(summary: str, *candidates: tuple[bool, str, str]) -> Finding:
    """Each candidate is whether something is wrong, the fault and its remedy."""
    return Finding(summary, [Fault(fault, remedy) for is_wrong, fault, remedy in candidates if is_wrong])


def sqlite(version: str) -> Finding:
    """Whether the log's SQLite is free of the bug that damages files."""
    is_old = tuple(map(int, version.split("."))) < SQLITE
    remedy = "pip install --upgrade pysqlite3"
    return _finding(version, (is_old, f"SQLite {version} can damage a log.", remedy))


def _read(path: Path, describe: Callable[[Path], str]) -> Finding:
    """The content of a file that people write, or all its faults."""
    try:
        with redirect_stdout(sys.stderr):  # handlers are imported, and may print
            return Finding(describe(path))
    except ConfigInvalid as error:
        remedy = "Correct it, then run `organism doctor` again."
        return Finding(str(path), [Fault(f"{fault.pointer}: {fault.message}.", remedy) for fault in error.details])


def _config(path: Path) -> str:
    settings = load(path, check_payload=payload_check(), ship=static_tools(VERSION), bundled=BUNDLED_AGENTS)
    return f"{path}: {settings.name}, listeners: {len(settings.listeners)}"


def _sessions(options: Doctor) -> Finding:
    """Whether sessions can be compacted, as far as the files show."""
    try:
        with redirect_stdout(sys.stderr):
            settings = load(
                options.config, check_payload=payload_check(), ship=static_tools(VERSION), bundled=BUNDLED_AGENTS
            )
        entries = read_tokens(options.config.parent / TOKENS_FILE)
    except ConfigInvalid:
        return Finding("not checked: the files have faults")
    rules = Rules(settings, Codec.of(payload_classes(settings)), 0)
    defaults = [defaults_of(entries, tenant) for tenant in {DEFAULT_TENANT, *(entry.id for entry in entries)}]
    found = dict.fromkeys(fault for given in defaults for fault in compaction.faults(rules, effective(given, {})))
    remedy = "Correct it, then run `organism doctor` again; until then sessions are not compacted."
    return Finding("they can be compacted" if not found else "", [Fault(fault, remedy) for fault in found])


def _tokens(path: Path) -> str:
    if not path.exists():
        return "only the operator's"
    entries = read_tokens(path)
    return f"{path}: tokens: {sum(len(entry.tokens) for entry in entries)}, tenants: {len(entries)}"


def _directory(options: Doctor) -> Finding:
    """Whether the data directory exists and can be written, or can be made."""
    data, existing = options.data, _nearest(options.data)
    summary = f"{data}" if data.is_dir() else f"{data}, made at the first start"
    try:
        with tempfile.TemporaryFile(dir=existing):
            return Finding(summary)
    except NotADirectoryError:
        fault = Fault(f"{existing} is a file; a directory is needed.", "Name another one: --data DIR.")
    except OSError as error:
        fault = Fault(
            f"{existing} cannot be written: {error.strerror}.", "Run as its owner, or name another --data DIR."
        )
    return Finding(summary, (fault,))


def _nearest(data: Path) -> Path:
    """The directory, or the nearest one above it that exists."""
    return next(path for path in (data.absolute(), *data.absolute().parents) if path.exists())


def disk(free_bytes: int, data: Path) -> Finding:
    """Whether there is room for a log."""
    fault = f"Only {free_bytes / 1e6:.0f} MB are free on the disk of {data}: a full disk stops all writing."
    remedy = "Make room, or serve another --data directory."
    return _finding(f"{free_bytes / 1e9:.1f} GB free", (free_bytes < FREE_BYTES, fault, remedy))


def permissions(paths: Sequence[Path], user: int) -> Finding:
    """Whether no other user can read the log, the token or a key."""
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
    """The data directory, its tenants' directories, every file in them, and keys that lie elsewhere."""
    data = options.data
    if data.is_dir():
        yield data
        yield from (path for path in sorted(data.glob("tenants/*")) if path.is_dir())
        yield from (path for path in sorted(data.rglob("*")) if path.is_file())
    yield from (log.key for log in logs_in(options, options.tenant) if log.key is not None and log.key.is_file())


def _log(options: Doctor) -> Finding:
    """Whether every log can be opened, judging by its key, its anchor and its last event."""
    found = [(log.tenant, _opened(log)) for log in logs_in(options, options.tenant)]
    summary = ", ".join(
        finding.summary if len(found) == 1 else f"{tenant} {finding.summary}" for tenant, finding in found
    )
    faults = [fault for _, finding in found for fault in finding.faults]
    return Finding(f"{summary}; `organism log verify` checks all of it" if summary else "none yet", faults)


def _opened(log: TenantLog) -> Finding:
    try:
        position = log.log_directory.read_anchor(log.log_directory.read_key()).position
        asyncio.run(last_at(log.directory))
    except (LogDamaged, NotFound) as error:
        return Finding("damaged", (Fault(error.message, LogDamaged.remediation),))
    return Finding(f"anchored at position {position}")


def _library(options: Doctor) -> Finding:
    """How large indices are searched, and whether an earlier version indexed any documents."""
    summary, faults = GRAPH if installed() is not None else NO_GRAPH, []
    waiting = 0
    for log in logs_in(options, options.tenant):
        try:
            waiting += asyncio.run(documents_without_words(log.directory))
        except LibraryDamaged as damage:
            faults.append(Fault(damage.message, damage.remediation))
    if waiting:
        summary += f"; {waiting} documents are indexed again by the server in the background, or at its next start"
    return Finding(summary, faults)


def clock(now_us: int, last_event_us: int) -> Finding:
    """Whether the wall clock is set, and not behind the log."""
    summary, behind_us = spoken(now_us), last_event_us - now_us
    never = f"The clock says {summary}: it was never set."
    behind = f"The clock is {behind_us / 1e6:,.0f} s behind the last event of the log, whose time never goes back."
    set_it = "Set it. If it is right now, it was wrong before: new events carry the later time until it is reached."
    return _finding(
        summary,
        (now_us < CLOCK_WAS_SET_US, never, "Set it, or start the time service (NTP)."),
        (behind_us > TOLERANCE_US, behind, set_it),
    )


def _last_at(log: TenantLog) -> int:
    try:
        return asyncio.run(last_at(log.directory))
    except (NotFound, LogDamaged):
        return 0


def _server(options: Doctor) -> Finding:
    """Which process holds the data directory, and whether it takes work."""
    process = holder(options.data)
    if process is None:
        killed = "; the last one was killed, which does no harm" if read_notice(options.data) else ""
        return Finding(f"none is running here{killed}")
    server = find_server(Remote(data=options.data))
    try:
        with httpx2.Client(**server.http_settings(PATIENCE_SECONDS)) as http:
            answer = http.get("/readyz")
        reason = "" if answer.is_success else str(answer.json()["error"]["message"])
    except (httpx2.HTTPError, ValueError, KeyError) as error:
        reason = str(error) or type(error).__name__
    if not reason:
        faults = (*_changed_tools(server), *_summary_model(server))
        return Finding(f"{process} serves {options.data} at {server.url}", faults)
    fault = f"{process} holds {options.data}, and takes no work at {server.url}: {reason}"
    return Finding(process, (Fault(fault, "Read its log on standard error; stop it if it hangs."),))


def _changed_tools(server: Server) -> Iterator[Fault]:
    """The tools that are off since their MCP servers have changed them."""
    with httpx2.Client(**server.http_settings(PATIENCE_SECONDS)) as http:
        answer = http.get(f"{API}/foreign-tools", params={"status": "waiting", "limit": PAGE_ROWS})
    for tool in answer.json()["foreign_tools"] if answer.is_success else ():
        fault = f"The tool {tool['name']} is off: its MCP server has changed it since it was accepted."
        yield Fault(fault, f"Look at it: organism tools accept; then: organism tools accept {tool['name']}")


def _summary_model(server: Server) -> Iterator[Fault]:
    """The model that the tenant's configuration names and that no longer exists."""
    with httpx2.Client(**server.http_settings(PATIENCE_SECONDS)) as http:
        answer = http.get("/v1/tenant/config")
    config = answer.json() if answer.is_success else {}
    key = config.get("compact_summary_model", {"value": None})
    if key["value"] is not None and key["value"] not in config["models"]["value"]:
        fault = f"`compact_summary_model` is {key['value']!r} ({key['source']}): there is no such model any more."
        yield Fault(fault, "Write another one, or null for none: PUT /v1/tenant/config.")


def _port(options: Doctor) -> Finding:
    """Whether the port is free, unless the server is running."""
    address = f"{options.host}:{options.port}"
    if holder(options.data) is not None:
        return Finding("in use by the server itself")
    try:
        listen(ServerSettings(options.host, options.port)).close()
    except OSError as error:
        is_taken = error.errno == errno.EADDRINUSE
        why = "is taken by another program" if is_taken else f"cannot be listened on: {error.strerror or error}"
        remedy = "Stop what listens there, or serve another --port (0: any)."
        return Finding(address, (Fault(f"{address} {why}.", remedy),))
    return Finding(f"{address} is free")


CHECKS: Final[Mapping[str, Callable[[Doctor], Finding]]] = {
    "sqlite": lambda _: sqlite(SQLITE_IN_USE),
    "config": lambda options: _read(options.config, _config),
    "sessions": _sessions,
    "tokens": lambda options: _read(options.config.parent / TOKENS_FILE, _tokens),
    "data": _directory,
    "disk": lambda options: disk(shutil.disk_usage(_nearest(options.data)).free, options.data),
    "permissions": lambda options: permissions([*_private(options)], os.geteuid()),
    "log": _log,
    "library": _library,
    "clock": lambda options: clock(
        time.time_ns() // 1000, max(map(_last_at, logs_in(options, options.tenant)), default=0)
    ),
    "server": _server,
    "port": _port,
}
"""Every check, in the order in which they are shown."""

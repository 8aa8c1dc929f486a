"""``organism log``: verification, rebuilding and statistics, without a server."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from rich.filesize import decimal
from rich.text import Text

from organism.audit import AUDIT, Audit, AuditLines
from organism.cli.exits import Exit
from organism.cli.options import Offline, OfTenant
from organism.cli.output import (
    clock_time,
    fields,
    out,
    print_json,
    refuse,
    show_text,
    table,
)
from organism.config.tokens import TOKENS_FILE, TenantEntry, defaults_of, read_tokens
from organism.errors import ConfigInvalid, LogDamaged, LogHeld, LogUnavailable, NotFound
from organism.log.directory import LogDirectory
from organism.log.log import Verification
from organism.log.offline import Stats, count, drop_rows, known_tenants, verify_directory
from organism.log.sqlite import Options, SqliteLog
from organism.model.ids import DEFAULT_TENANT, TENANTS, folder_of, key_path_of
from organism.model.redact import Redactor
from organism.model.times import LogClock
from organism.rag.verify import library_damage
from organism.views.read_models import READ_MODELS

RESTORE: Final = (
    "Stop the server, keep the directory as it is, and restore a backup into another (`organism log restore`), "
    "unless it says above what else helps."
)


class TenantLog(NamedTuple):
    """A tenant's log. ``tenant`` is its id, or its directory's name if config/tokens.yaml does not list it."""

    tenant: str
    directory: Path
    key: Path | None

    @property
    def log_directory(self) -> LogDirectory:
        """Its files."""
        return LogDirectory(self.directory, self.key, self.directory.name)


def logs_in(options: Offline, only: str | None = None) -> list[TenantLog]:
    """A log for each tenant's directory, ``default`` first, or ``only`` that tenant's. Files may be missing."""
    tenants = options.data / TENANTS
    there = {path.name for path in tenants.glob("*") if path.is_dir()}
    listed: list[str] = [DEFAULT_TENANT]
    with suppress(ConfigInvalid):  # then tenants are named by their directories
        listed += [entry.id for entry in read_tokens(options.config.parent / TOKENS_FILE)]
    names = {folder_of(tenant): tenant for tenant in listed}
    folders = [DEFAULT_TENANT, *sorted(there - {DEFAULT_TENANT})] if there else []
    if only is not None:
        folder = folder_of(only)
        names, folders = {folder: only}, [folder] if folder in there else []
    return [
        TenantLog(names.get(folder, folder), tenants / folder, key_path_of(options.key, folder)) for folder in folders
    ]


def logs_to_read(options: Offline, only: str | None = None) -> list[TenantLog]:
    """The same; ends the command if there is no log."""
    found = logs_in(options, only)
    if not found and only is not None:
        remedy = "`organism token list` names the tenants; each has a log after its first start."
        refuse(Exit.NOT_FOUND, f"Tenant {only} has no log in {options.data}.", remedy)
    if not found:
        remedy = "Name the directory that `organism serve` was given: --data DIR."
        refuse(Exit.NOT_FOUND, f"{options.data} holds no log.", remedy)
    return found


def gone_logs(options: Offline, only: str | None = None) -> list[TenantLog]:
    """The logs that the operator's log knows and that are missing, except those of tenants that were removed since."""
    tenants = options.data / TENANTS
    known: set[str] = set()
    with suppress(LogDamaged, NotFound):  # then that log itself is reported
        known = asyncio.run(known_tenants(tenants / DEFAULT_TENANT))
    path = options.config.parent / TOKENS_FILE
    with suppress(ConfigInvalid):
        listed = [entry.id for entry in read_tokens(path)]
        known = known.intersection(listed) if path.exists() else known
    gone = sorted(each for each in known if not (tenants / folder_of(each)).exists() and only in {None, each})
    return [TenantLog(each, tenants / folder_of(each), key_path_of(options.key, folder_of(each))) for each in gone]


def verify(options: OfTenant) -> None:
    """Check the whole chain of every log; exit 1 and list every damage."""
    gone = gone_logs(options, options.tenant)
    there = [] if gone and options.tenant else logs_to_read(options, options.tenant)
    found = [(log.tenant, _verification(log)) for log in (*there, *gone)]
    damages = []
    for tenant, whole in found:
        named = "" if len(found) == 1 else f"{tenant}: "
        damages += [f"{named}{damage}" for damage in whole.damage]
        if options.json:
            print_json({"tenant": tenant, **asdict(whole)})
        elif not whole.damage:
            out().print(
                f"{named}whole: {whole.events} events in {whole.commits} commits, up to position {whole.position}"
            )
    if damages:
        which = "log" if len(found) == 1 else f"log of {', '.join(tenant for tenant, whole in found if whole.damage)}"
        refuse(Exit.FAILED, f"The {which} in {options.data} is damaged.", RESTORE, damages)


def _verification(log: TenantLog) -> Verification:
    named = log.directory, log.key, log.directory.name
    try:
        found = verify_directory(*named, READ_MODELS)
    except (LogDamaged, NotFound) as error:
        return Verification(0, 0, 0, (error.message,))
    except (LogUnavailable, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error.__cause__ or error
        remedy = (
            "SQLite needs some room next to the log, also to read it, and the rows are made again in the folder of "
            "temporary files: make room in both (TMPDIR names another folder), or copy the directory elsewhere."
        )
        refuse(Exit.NOT_NOW, f"The log of {log.tenant} could not be verified: {reason}.", remedy)
    return found if found.damage else replace(found, damage=tuple(asyncio.run(library_damage(*named))))


def rebuild(options: OfTenant) -> None:
    """Have the next start rebuild the rows of every log; the events stay as they are."""
    for log in logs_to_read(options, options.tenant):
        try:
            drop_rows(log.directory, log.key, log.directory.name, lambda: time.time_ns() // 1000)
        except (LogHeld, LogUnavailable, LogDamaged, NotFound) as error:
            is_whole = isinstance(error, LogHeld | LogUnavailable)
            refuse(Exit.FAILED, error.message, error.remediation if is_whole else RESTORE)
        show_text(options, {"tenant": log.tenant}, f"{log.tenant}: the next start rebuilds all rows.")


def audit(options: Offline) -> None:
    """Make the audit files of all tenants again from their logs; the old ones stay until that is done."""
    found, new, old = logs_to_read(options), options.data / f"{AUDIT}.new", options.data / f"{AUDIT}.old"
    entries = read_tokens(options.config.parent / TOKENS_FILE)
    for left in (new, old):
        shutil.rmtree(left, ignore_errors=True)
    try:
        asyncio.run(_write_audit(found, new, entries))
    except (LogHeld, LogUnavailable, LogDamaged, NotFound) as error:
        is_whole = isinstance(error, LogHeld | LogUnavailable)
        refuse(Exit.FAILED, error.message, error.remediation if is_whole else RESTORE)
    with suppress(FileNotFoundError):
        (options.data / AUDIT).rename(old)
    new.rename(options.data / AUDIT)
    shutil.rmtree(old, ignore_errors=True)
    show_text(
        options, {"directory": str(options.data / AUDIT)}, f"{options.data / AUDIT} is made of {len(found)} logs."
    )


async def _write_audit(found: Sequence[TenantLog], folder: Path, entries: Sequence[TenantEntry]) -> None:
    written = Audit(folder)
    await written.open()
    for tenant, directory, key in found:
        options = Options(key_path=key, tenant=directory.name)
        log = await SqliteLog.open(directory, LogClock(time.time_ns, time.monotonic_ns), READ_MODELS, options)
        defaults = partial(defaults_of, entries, tenant)
        try:
            await written.catch_up(AuditLines(tenant, log, log.views, Redactor(), defaults))
        finally:
            await log.close()
    await written.close()


def stats(options: OfTenant) -> None:
    """Count the events by type, the commits and the bytes of every log."""
    found = [(log.tenant, _stats(log)) for log in logs_to_read(options, options.tenant)]
    for number, (tenant, counted) in enumerate(found):
        if options.json:
            print_json({"tenant": tenant, **_counted(counted)})
            continue
        if len(found) > 1:
            out().print("" if number == 0 else "\n", Text(tenant, "bold"), sep="")
        _show(counted)


def _stats(log: TenantLog) -> Stats:
    try:
        return asyncio.run(count(log.directory))
    except (LogDamaged, NotFound) as error:
        whose = "" if log.tenant == DEFAULT_TENANT else f"Tenant {log.tenant}: "
        refuse(Exit.FAILED, f"{whose}{error.message}", "`organism log verify` says what is damaged, and where.")


def _counted(found: Stats) -> dict[str, Any]:
    return {
        "position": found.position,
        "units": found.units,
        "commits": found.commits,
        "threads": found.threads,
        "first_at": _iso(found.first_at),
        "last_at": _iso(found.last_at),
        "events": dict(found.events.most_common()),
        "file_bytes": found.file_bytes,
    }


def _iso(at: int) -> str | None:
    return datetime.fromtimestamp(at / 1_000_000, UTC).isoformat() if at else None


def _show(found: Stats) -> None:
    fields(
        {
            "events": f"{found.position} in {found.units} units and {found.commits} commits",
            "threads": str(found.threads),
            "from": clock_time(_iso(found.first_at)),
            "to": clock_time(_iso(found.last_at)),
            "size": decimal(sum(found.file_bytes.values())),
        }
    )
    out().print()
    table(("EVENT", "COUNT"), ((kind, str(number)) for kind, number in found.events.most_common()), "no event yet")
    out().print()
    table(("FILE", "SIZE"), ((name, decimal(size)) for name, size in found.file_bytes.items()), "no file")

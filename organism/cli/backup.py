"""``organism log backup`` and ``organism log restore``: the logs and libraries of all tenants in one file.

It is a tar of their directories without what can be made again from the events. ``backup.json`` ends it and names the
SHA-256 of each file, so neither a missing end nor a changed bit stays unnoticed.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import re
import shutil
import tarfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from importlib.metadata import version as package_version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NoReturn

import msgspec

from organism.cli.exits import Exit
from organism.cli.log import TenantLog, logs_to_read
from organism.cli.options import Backup, Restore
from organism.cli.output import note, refuse, show_text
from organism.errors import BadPosition, LogDamaged, LogHeld, LogUnavailable, NotFound
from organism.log.directory import PRIVATE_DIRECTORY, PRIVATE_FILE, LogDirectory, sync_directory
from organism.log.offline import begin_again, copy_log, verify_directory
from organism.model.ids import RESTORED, TENANTS, folder_of, key_path_of
from organism.rag.store import LIBRARY_FILE
from organism.views.library import INDICES

LAYOUT: Final = 1
MANIFEST: Final = "backup.json"
VERSION: Final = package_version("organism")
_MEMBER: Final = re.compile(rf"{TENANTS}/(default|[0-9a-f]{{32}})/(log\.sqlite|{re.escape(LIBRARY_FILE)}|anchor|key)")
_ANOTHER: Final = "Take another backup; nothing was changed."
_ROOM: Final = "Make room there, or name another place; nothing was changed."


class Copied(msgspec.Struct):
    """A tenant's log: its id, or its directory's name if config/tokens.yaml did not list it, and where it ends."""

    tenant: str
    position: int


class Manifest(msgspec.Struct):
    """What a backup holds: logs by their directories, and the SHA-256 of each file, in the order of the tar."""

    layout: int
    organism: str = VERSION
    at: str = ""
    logs: dict[str, Copied] = {}
    files: dict[str, str] = {}


def backup(options: Backup) -> None:
    """Write all logs and libraries into a file, which appears when it is whole."""
    file, logs = options.file, logs_to_read(options)
    if file.exists():
        refuse(Exit.CONFLICT, f"{file} exists, and is not overwritten.", "Name another file, or move it away.")
    if not file.parent.is_dir():
        refuse(Exit.NOT_FOUND, f"{file.parent}, the folder of the backup, does not exist.", "Make it: mkdir -p FOLDER")
    with (
        _refused_errors(f"{file} cannot be written"),
        TemporaryDirectory(prefix=f".{file.name}.", dir=file.parent) as name,
    ):
        folder, manifest = Path(name), Manifest(LAYOUT, at=datetime.now(UTC).isoformat())
        new = folder / "backup"
        new.touch(PRIVATE_FILE)
        with tarfile.open(new, "w") as tar:
            for log in logs:
                _add(log, folder, tar, manifest)
            text = msgspec.json.encode(manifest)
            last = tarfile.TarInfo(MANIFEST)
            last.size = len(text)
            tar.addfile(last, io.BytesIO(text))
        _sync(new)
        new.rename(file)
        sync_directory(file.parent)
    _show(options, manifest.logs, {"file": str(file), "bytes": file.stat().st_size})


def _add(log: TenantLog, folder: Path, tar: tarfile.TarFile, manifest: Manifest) -> None:
    """Copy a tenant's log, verify the copy, and move it into the tar."""
    copy = LogDirectory(folder / TENANTS / log.directory.name, log.key, log.directory.name)
    copy.path.mkdir(parents=True)
    asyncio.run(copy_log(log.log_directory, copy, LIBRARY_FILE, tuple(INDICES.types)))
    found = verify_directory(copy.path, log.key, copy.tenant)
    if found.damage:
        remedy = "No backup was written. Copy the directory as it is, and restore the newest backup."
        refuse(Exit.FAILED, f"The log of {log.tenant} is damaged.", remedy, found.damage)
    manifest.logs[copy.tenant] = Copied(log.tenant, found.position)
    for path in sorted(copy.path.iterdir()):
        name = path.relative_to(folder).as_posix()
        manifest.files[name] = _digest(path)
        tar.add(path, name)
    shutil.rmtree(copy.path)


def restore(options: Restore) -> None:
    """Put the logs of a backup in place, all at once, once they are verified; what was there is moved next to them."""
    data, new, old = options.data, options.data / RESTORED, options.data / TENANTS
    if not options.file.is_file():
        refuse(Exit.NOT_FOUND, f"There is no file {options.file}.", "Name what `organism log backup` wrote.")
    is_over = old.is_dir() and any(old.iterdir())
    if is_over and not options.force:
        remedy = "Name another directory: --data DIR; or replace them by --force, which keeps them beside the new ones."
        refuse(Exit.CONFLICT, f"{data} holds logs already.", remedy)
    moved_to = data / f"{TENANTS}.{datetime.now(UTC):%Y-%m-%dT%H-%M-%S.%fZ}"
    with (
        _refused_errors(f"{options.file} cannot be restored into {data}"),
        ExitStack() as locks,
        ExitStack() as unfinished,
    ):
        for folder in old.glob("*/"):
            directory = LogDirectory(folder)
            directory.hold(lambda: time.time_ns() // 1000)
            locks.callback(directory.unlock)
        data.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
        shutil.rmtree(new, ignore_errors=True)
        unfinished.callback(shutil.rmtree, new, ignore_errors=True)
        new.mkdir(PRIVATE_DIRECTORY)
        logs = _extract(options, new)
        for name, log in logs.items():
            log.position = _begin_again(options, name, log, new / name)
            sync_directory(new / name)
        sync_directory(new)
        unfinished.pop_all()  # without the old directory, a start needs this one to go on
        if is_over:
            old.rename(moved_to)
        new.rename(old)
        sync_directory(data)
    _show(options, logs, {"data": str(data), "kept": str(moved_to) if is_over else None})
    note("The next start verifies the logs again, and makes their rows.")
    if is_over:
        note(f"What was there lies in {moved_to}.")
    if options.until is not None:
        note("The library does not go back: an index that lacks documents now answers `library_damaged`.")


def _extract(options: Restore, new: Path) -> dict[str, Copied]:
    """Write the files of a backup below ``new``, each as its digest says; gives its logs by their directories."""
    with tarfile.open(options.file, "r:") as tar:
        members = tar.getmembers()
        manifest = _manifest(options, tar, members)
        for member in members[:-1]:
            path = new / member.name.removeprefix(f"{TENANTS}/")
            if path.name == "key" and options.key is not None:
                continue
            path.parent.mkdir(PRIVATE_DIRECTORY, exist_ok=True)
            path.touch(PRIVATE_FILE)
            source: Any = tar.extractfile(member)  # there is one for each regular file
            with source, path.open("wb") as target:
                shutil.copyfileobj(source, target)
            _sync(path)
            if _digest(path) != manifest.files[member.name]:
                refuse(Exit.FAILED, f"{options.file} is damaged: {member.name} is not as it was written.", _ANOTHER)
    return manifest.logs


def _manifest(options: Restore, tar: tarfile.TarFile, members: list[tarfile.TarInfo]) -> Manifest:
    if not members or members[-1].name != MANIFEST or not all(member.isreg() for member in members):
        _refuse_foreign(options)
    source: Any = tar.extractfile(members[-1])
    try:
        manifest = msgspec.json.decode(source.read(), type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError):
        _refuse_foreign(options)
    if manifest.layout != LAYOUT:
        fault = f"{options.file} has the layout {manifest.layout}; this program knows {LAYOUT}."
        refuse(Exit.FAILED, fault, f"Restore it by organism {manifest.organism}, which wrote it.")
    found = [_MEMBER.fullmatch(member.name) for member in members[:-1]]
    if list(manifest.files) != [each and each[0] for each in found] or manifest.logs.keys() != {
        each and each[1] for each in found
    }:
        _refuse_foreign(options)
    if options.until is not None and folder_of(options.tenant) not in manifest.logs:
        refuse(Exit.NOT_FOUND, f"{options.file} holds no log of tenant {options.tenant}.", "Name another: --tenant ID.")
    return manifest


def _refuse_foreign(options: Restore) -> NoReturn:
    fault = f"{options.file} is not a whole file of `organism log backup`."
    refuse(Exit.FAILED, fault, "Name a backup. If this was one, it was cut off or changed: take another.")


def _begin_again(options: Restore, name: str, log: Copied, folder: Path) -> int:
    """Verify an extracted log, then let it begin again; gives where it ends."""
    files = LogDirectory(folder, key_path_of(options.key, name), name)
    if not files.key_path.exists():
        fault = f"The key of the log of {log.tenant} is missing: the backup was made with a key elsewhere."
        if options.key is not None:
            fault = f"{files.key_path}, the key of the log of {log.tenant}, does not exist."
        refuse(Exit.NOT_FOUND, fault, "Name the key file that its server was given: --key FILE.")
    found = verify_directory(folder, files.key_path, name)
    if found.damage:
        refuse(Exit.FAILED, f"The log of {log.tenant} in {options.file} is damaged.", _ANOTHER, found.damage)
    until = options.until if name == folder_of(options.tenant) else None
    try:
        return begin_again(files, os.urandom, until)
    except BadPosition as error:
        refuse(Exit.FAILED, f"{log.tenant} cannot end at position {until}: {error.message}", "Name another position.")


@contextmanager
def _refused_errors(what: str) -> Iterator[None]:
    """Ends the command with what could not be done, why, and what to do."""
    try:
        yield
    except LogHeld as error:
        refuse(Exit.FAILED, error.message, error.remediation)
    except (LogDamaged, NotFound) as error:
        refuse(Exit.FAILED, error.message, LogDamaged.remediation)
    except tarfile.TarError as error:
        refuse(Exit.FAILED, f"{what}: it is no tar, or was cut off ({error}).", _ANOTHER)
    except (OSError, LogUnavailable) as error:
        reason = error.strerror if isinstance(error, OSError) else error.__cause__ or error
        refuse(Exit.FAILED, f"{what}: {reason}", _ROOM)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _show(options: Backup | Restore, logs: dict[str, Copied], more: dict[str, Any]) -> None:
    for log in logs.values():
        show_text(options, {**msgspec.to_builtins(log), **more}, f"{log.tenant}: whole, up to position {log.position}")

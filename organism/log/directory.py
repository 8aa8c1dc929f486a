"""The directory of a log: its lock, connections to its file, its key, and the anchor: the head outside the database."""

from __future__ import annotations

import fcntl
import hmac
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

import orjson

from organism.errors import LogDamaged, LogHeld, LogUnavailable, NotFound, OrganismError
from organism.log.encode import GENESIS, RandomBytes, chain_key, mac
from organism.model.ids import DEFAULT_TENANT
from organism.model.times import spoken
from organism.sqlite.driver import Connection, Failure, Pysqlite, set_up

PRIVATE_FILE: Final = 0o600
PRIVATE_DIRECTORY: Final = 0o700
OPEN_TO_OTHERS: Final = stat.S_IWGRP | stat.S_IRWXO
"""The permissions that a key file must not have. A group may read it, as where an orchestrator mounts secrets."""
KEY_BYTES: Final = 32
TIMELINE_BYTES: Final = 16
ANCHOR_BYTES: Final = 512  # One sector, so that a power cut leaves the old anchor or the new one
ROOM_BYTES: Final = 64 << 10
SQLITE_ENDINGS: Final = ("", "-wal", "-shm")
CACHE_PRAGMA: Final = "PRAGMA cache_size = -2048"
"""A log grows at its end: a larger cache would hold pages that are not asked for again."""
_HOLDER: Final = re.compile(r"process \d+ since [^\n]+")
_own_locks: Final[dict[tuple[int, int, int], str]] = {}
"""This process, in words, for each lock that it holds: by its id and the lock's file. See ``LogDirectory.hold``."""
ROWS_REMEDY: Final = (
    "Run `organism log verify --data DIR`: if it names rows alone, stop and run `organism log rebuild`, "
    "which makes them again from the events; else restore a backup."
)


@dataclass(frozen=True, slots=True)
class Anchor:
    """The head as written outside the database, its commit's hash, the writer's ``epoch``, the ``timeline``."""

    position: int
    hash: bytes
    epoch: int
    timeline: str

    def mac(self, key: bytes) -> str:
        """Proves that it was written under the key."""
        return mac(key, "anchor", self.position, self.hash.hex(), self.epoch, self.timeline).hex()


class LogDirectory:
    """``log`` is the database; ``tenant`` is the name of the directory in a data directory."""

    def __init__(
        self,
        path: Path,
        key_path: Path | None = None,
        tenant: str = DEFAULT_TENANT,
        driver: Pysqlite | None = None,
    ) -> None:
        self.path = path
        self.tenant = tenant
        self.driver = driver or Pysqlite()
        self.log = path / "log.sqlite"
        self.wal = path / "log.sqlite-wal"
        self.copy = path / "log.sqlite.new"  # a database that is about to take the place of ``log``
        self.anchor_path = path / "anchor"
        self.lock_path = path / "lock"
        self.key_path = key_path or path / "key"
        self._lock: tuple[int, tuple[int, int, int]] | None = None

    def connect_to_write(self) -> Connection:
        """A connection for commits: a commit is on the disk when its statement returns."""
        return self.connect("PRAGMA synchronous = FULL", CACHE_PRAGMA)

    def connect_to_read(self) -> Connection:
        return self.connect("PRAGMA query_only = ON", CACHE_PRAGMA)

    def connect(self, *settings: str) -> Connection:
        return set_up(self.driver.connect(str(self.log)), *settings)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that only reads, also while a server is running. Raises ``NotFound``."""
        self.check_exists()
        with self.driver.reading(self.log) as connection:
            yield connection

    def check_exists(self) -> None:
        """Raise ``NotFound`` if there is no log."""
        if not self.log.is_file():
            raise NotFound(f"{self.path} holds no log: {self.log.name} is missing.")

    def check_room(self) -> None:
        """Raise ``OSError`` if no file can be written next to the log: SQLite writes some even to read it."""
        with TemporaryFile(dir=self.path) as probe:
            probe.write(bytes(ROOM_BYTES))
            probe.flush()

    def explain(self, error: Exception) -> Exception:
        """What the driver's error means to a caller, without a path; any other error is returned as it is."""
        if not isinstance(error, self.driver.errors):
            return error
        log, reason = self.path.name, self.without_paths(str(error))
        meaning: OrganismError
        if self.driver.failure(error) is Failure.DAMAGED:
            meaning = LogDamaged(f"A file of the log {log} cannot be read: {reason}. {ROWS_REMEDY}")
        else:
            meaning = LogUnavailable(f"The log {log} cannot be used now: {reason}.")
        meaning.__cause__ = error
        return meaning

    def lock(self, now_us: Callable[[], int]) -> None:
        """Make the directory and take it for this process. Raises ``LogHeld``; ``LogDamaged`` for what is no file."""
        self.path.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
        self.check_files()
        self.hold(now_us)

    def hold(self, now_us: Callable[[], int]) -> None:
        """Take a directory that is there, whatever state it is in. Raises ``LogHeld``.

        The lock is a record lock, the only kind that no child inherits however it is made: an flock, and a record
        lock of an open file, are held until the last forked child has ended. It does not keep out this process itself,
        and is released with any handle of the file that this process closes; so ``_own_locks`` is asked before the file
        is opened.
        """
        self.create_private(self.lock_path)
        me, key = f"process {os.getpid()} since {spoken(now_us())}", self._lock_key()
        if (holder := _own_locks.setdefault(key, me)) is not me:
            raise self._held_by(holder)
        try:
            handle = self._locked()
        except BaseException:
            del _own_locks[key]
            raise
        self._lock = handle, key
        self.copy.unlink(missing_ok=True)  # a killed process may have left it, with text that was erased later
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{me}\n".encode(), 0)

    def _locked(self) -> int:
        """The lock's file, opened and locked. Raises ``LogHeld``."""
        handle = os.open(self.lock_path, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException as error:
            holder = _written_by_holder(handle)
            os.close(handle)
            if isinstance(error, BlockingIOError):
                raise self._held_by(holder) from None
            raise
        return handle

    def holder(self) -> str | None:
        """The process that holds it, in words; None if there is none. Changes nothing."""
        try:
            if (holder := _own_locks.get(self._lock_key())) is not None:
                return holder
            handle = os.open(self.lock_path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.lockf(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _written_by_holder(handle)
        finally:
            os.close(handle)
        return None

    def _lock_key(self) -> tuple[int, int, int]:
        file = self.lock_path.stat()
        return os.getpid(), file.st_dev, file.st_ino

    def _held_by(self, holder: str) -> LogHeld:
        return LogHeld(f"{self.path} is held by {holder}: stop it, or serve another directory.")

    def unlock(self) -> None:
        if self._lock is not None:
            handle, key = self._lock
            os.close(handle)
            del _own_locks[key]
            self._lock = None

    def without_paths(self, text: str) -> str:
        """The text with its files called by their names alone."""
        return text.replace(f"{self.path}/", "").replace(str(self.path), self.path.name)

    def create_private(self, file: Path) -> bool:
        """Make an empty file for the owner alone, unless it is there; gives whether it was made."""
        try:
            os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE))
        except FileExistsError:
            return False
        return True

    def replace_log(self) -> None:
        """Put the copy in the database's place, which must not be open anywhere and must have no WAL."""
        self.copy.replace(self.log)
        sync_directory(self.path)

    def check_files(self) -> None:
        """Raise ``LogDamaged`` for what is no file (but a link to a key elsewhere), and for a key open to others."""
        databases = (self.log.with_name(self.log.name + end) for end in SQLITE_ENDINGS)
        for path in (*databases, self.anchor_path, self.lock_path, self.path / "key"):
            try:
                kind = path.lstat().st_mode
            except FileNotFoundError:
                continue
            if not stat.S_ISREG(kind):
                raise LogDamaged(
                    f"{path} must be a file, and is {'a link' if stat.S_ISLNK(kind) else 'none'}: "
                    "put the file itself there, or restore a backup."
                )
        with suppress(OSError):  # a key that is not there yet, or cannot be read, is found when it is read
            if self.key_path.stat().st_mode & OPEN_TO_OTHERS:
                raise LogDamaged(
                    f"{self.key_path} is open to other users of this machine, who could write a log that verifies. "
                    f"If nobody has used it, close it: chmod 600 {self.key_path}"
                )

    def create_key(self, random_bytes: RandomBytes) -> Anchor:
        """Make the first anchor of a new log, then the key, so that no key is there without an anchor."""
        secret, timeline = random_bytes(KEY_BYTES), random_bytes(TIMELINE_BYTES).hex()
        anchor = Anchor(0, GENESIS, 0, timeline)
        put_file(self.anchor_path, _written(anchor, chain_key(secret, self.tenant)))
        put_file(self.key_path, secret.hex().encode() + b"\n")
        return anchor

    def read_key(self) -> bytes:
        """The key of the tenant's chain; raises ``LogDamaged`` if it is missing or is none."""
        try:
            text = self.key_path.read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):
            text = ""
        if not re.fullmatch(r"[0-9a-f]{64}", text):
            raise LogDamaged(
                f"{self.key_path} must hold the key of the audit chain (64 hex digits), and does not: "
                "put the file back from where it was kept, or restore a backup with its key."
            )
        return chain_key(bytes.fromhex(text), self.tenant)

    def read_anchor(self, key: bytes | None) -> Anchor:
        """The anchored head; raises ``LogDamaged`` if it is missing, unreadable, or not under ``key``, if any."""
        try:
            fields = orjson.loads(self.anchor_path.read_bytes())
            anchor = Anchor(
                int(fields["position"]), bytes.fromhex(fields["hash"]), int(fields["epoch"]), str(fields["timeline"])
            )
            sealed = str(fields["mac"])
        except (OSError, ValueError, KeyError, TypeError):
            raise LogDamaged(
                f"{self.anchor_path} must name the head of the log, and does not: without it nobody can tell "
                "whether the end was cut off. Put the file back, or restore a backup."
            ) from None
        if key is not None and not hmac.compare_digest(sealed.encode(), anchor.mac(key).encode()):
            raise LogDamaged(
                f"{self.anchor_path} was not written under the key in {self.key_path} for this tenant's log: "
                "the anchor was changed, the key is another one, or the log was copied here from another tenant. "
                "Put the right file back, or restore a backup with its key."
            )
        return anchor

    def write_anchor(self, anchor: Anchor, key: bytes, *, is_synced: bool = False) -> None:
        """Write the head outside the database, within one sector; ``is_synced`` waits for the disk."""
        handle = os.open(self.anchor_path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
        try:
            os.pwrite(handle, _written(anchor, key), 0)
            if is_synced:
                os.fsync(handle)
        finally:
            os.close(handle)


def _written_by_holder(handle: int) -> str:
    """What the holder of a lock has written into its file; others may have written anything there."""
    found = _HOLDER.search(os.pread(handle, 200, 0).decode("utf-8", "replace"))
    return found[0] if found else "another process"


def _written(anchor: Anchor, key: bytes) -> bytes:
    fields = {
        "position": anchor.position,
        "hash": anchor.hash.hex(),
        "epoch": anchor.epoch,
        "timeline": anchor.timeline,
        "mac": anchor.mac(key),
    }
    return orjson.dumps(fields).ljust(ANCHOR_BYTES)


def put_file(path: Path, text: bytes) -> None:
    """Put a whole file in its place, on the disk; no reader ever sees half of it."""
    new = path.with_name(path.name + ".new")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        os.write(handle, text)
        os.fsync(handle)
    finally:
        os.close(handle)
    new.replace(path)
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Return once the names in it are on the disk."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

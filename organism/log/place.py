"""The directory of a log: who holds it, the key of its chain, and the head as it is known outside the database.

Every file is made readable for its owner alone before anything is written to it.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from organism.errors import LogDamaged, LogHeld
from organism.log.chain import RandomBytes
from organism.model.times import spoken

PRIVATE_FILE: Final = 0o600
PRIVATE_DIRECTORY: Final = 0o700
KEY_BYTES: Final = 32
ANCHOR_BYTES: Final = 256


@dataclass(frozen=True, slots=True)
class Anchor:
    """The head of the log as it was written outside the database, and the hash of the commit that ended there."""

    position: int
    hash: bytes


class Place:
    """Where a log lies. ``log`` is the database, ``key`` may lie elsewhere."""

    def __init__(self, directory: Path, key_path: Path | None = None) -> None:
        self.directory = directory
        self.log = directory / "log.sqlite"
        self.wal = directory / "log.sqlite-wal"
        self.anchor_path = directory / "anchor"
        self.lock_path = directory / "lock"
        self.key_path = key_path or directory / "key"
        self._lock: int | None = None

    def hold(self, now_us: Callable[[], int]) -> None:
        """Make the directory and take it for this process; raises ``LogHeld``. The lock ends with the process."""
        self.directory.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
        handle = os.open(self.lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 200, 0).decode("utf-8", "replace").strip()
            os.close(handle)
            raise LogHeld(
                f"{self.directory} is held by {holder or 'another process'}: stop it, or serve another directory."
            ) from None
        self._lock = handle
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"process {os.getpid()} since {spoken(now_us())}\n".encode(), 0)

    def without_paths(self, said: str) -> str:
        """The text with its files called by their names alone."""
        return said.replace(f"{self.directory}/", "").replace(str(self.directory), self.directory.name)

    def release(self) -> None:
        """Let the next process have it."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def make_private(self, path: Path) -> bool:
        """Make an empty file for the owner alone, unless it is there; gives whether it was made."""
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE))
        except FileExistsError:
            return False
        return True

    def make_key(self, random_bytes: RandomBytes) -> bytes:
        """A new key for a new log, on the disk before the first commit is. A key that is there is never overwritten."""
        self.refuse_key()
        key = random_bytes(KEY_BYTES)
        _put(self.key_path, key.hex().encode() + b"\n")
        return key

    def refuse_key(self) -> None:
        """Raise ``LogDamaged`` if there is a key: it may be all that can tell whether another log is whole."""
        if self.key_path.exists():
            raise LogDamaged(
                f"{self.key_path} is there and {self.log} is new: it may be the key of another log, so it is not "
                "overwritten. Put the log back that it belongs to, or move the file away, or name another: --key FILE."
            )

    def read_key(self) -> bytes:
        """The key; raises ``LogDamaged`` if it is missing or is none."""
        try:
            text = self.key_path.read_text("ascii").strip()
        except (FileNotFoundError, UnicodeDecodeError):
            text = ""
        if not re.fullmatch(r"[0-9a-f]{64}", text):
            raise LogDamaged(
                f"{self.key_path} must hold the key of the audit chain (64 hex digits), and does not: "
                "put the file back from where it was kept, or restore a backup with its key."
            )
        return bytes.fromhex(text)

    def read_anchor(self) -> Anchor:
        """The anchored head; raises ``LogDamaged`` if it is missing or unreadable."""
        try:
            fields = orjson.loads(self.anchor_path.read_bytes())
            return Anchor(int(fields["position"]), bytes.fromhex(fields["hash"]))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            raise LogDamaged(
                f"{self.anchor_path} must name the head of the log, and does not: without it nobody can tell "
                "whether the end was cut off. Put the file back, or restore a backup."
            ) from None

    def make_anchor(self, anchor: Anchor) -> None:
        """The first anchor of a new log. It is there whole or not at all: an empty one would be one that was lost."""
        _put(self.anchor_path, _written(anchor))

    def write_anchor(self, anchor: Anchor, *, is_synced: bool = False) -> None:
        """Write the head outside the database; ``is_synced`` waits for the disk.

        It is written over in place, within one sector, so that a power cut leaves the old one or the new one. An
        anchor that is older than the log is no damage, so it need not be synced while commits are.
        """
        handle = os.open(self.anchor_path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
        try:
            os.pwrite(handle, _written(anchor), 0)
            if is_synced:
                os.fsync(handle)
        finally:
            os.close(handle)


def _written(anchor: Anchor) -> bytes:
    return orjson.dumps({"position": anchor.position, "hash": anchor.hash.hex()}).ljust(ANCHOR_BYTES)


def _put(path: Path, text: bytes) -> None:
    """Put a whole file in its place, on the disk; nobody ever sees half of it."""
    new = path.with_name(path.name + ".new")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        os.write(handle, text)
        os.fsync(handle)
    finally:
        os.close(handle)
    new.replace(path)
    _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

"""A disk below SQLite that forgets what was not synced: power cuts, torn writes, full disks, failed fsyncs.

Files lie in the real directory, where each write shows at once, as in a page cache. The file system also keeps
what the platter would have: the content at the last sync, and the writes since then.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import apsw

SECTOR_BYTES = 512


class Platter:
    """One file: its content at the last sync, and the writes since then, which a power cut may lose, tear or keep."""

    def __init__(self, content: bytes) -> None:
        self.synced = bytearray(content)
        self.pending: list[tuple[int, bytes]] = []

    def write(self, data: bytes, offset: int) -> None:
        self.pending.append((offset, data))

    def truncate(self, size: int) -> None:
        self.sync()
        del self.synced[size:]

    def sync(self) -> None:
        for offset, data in self.pending:
            _put(self.synced, data, offset)
        self.pending.clear()

    def cut(self, chance: random.Random) -> bytes:
        """What is there after a power cut: each sector that was not synced is old or new."""
        content = bytearray(self.synced)
        for offset, data in self.pending:
            for begin in range(0, len(data), SECTOR_BYTES):
                if chance.random() < 0.5:
                    _put(content, data[begin : begin + SECTOR_BYTES], offset + begin)
        return bytes(content)


def _put(content: bytearray, data: bytes, offset: int) -> None:
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(data)] = data


class Storm(apsw.VFS):
    """The file system.

    ``fail_at`` counts writes and syncs; that one and, if ``is_lasting``, all after it raise ``error``. If ``is_lying``
    it says that it synced and did not.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.platters: dict[str, Platter] = {}
        self.calls = 0
        self.fail_at = 0
        self.is_lasting = False
        self.is_lying = False
        self.error: type[Exception] = apsw.IOError
        super().__init__(name, "unix")

    def xOpen(self, name: Any, flags: list[int]) -> StormFile:  # noqa: N802 - the name that SQLite gives
        return StormFile(self, name, flags)

    def xDelete(self, name: str, sync: bool) -> None:  # noqa: N802, FBT001 - as above
        self.platters.pop(name, None)
        super().xDelete(name, sync)

    def strike(self) -> None:
        """Count a write or a sync, and fail if it is its turn."""
        self.calls += 1
        if self.fail_at and (self.calls == self.fail_at or (self.is_lasting and self.calls > self.fail_at)):
            raise self.error("the disk failed")


class StormFile(apsw.VFSFile):
    """A file on the storm's disk."""

    def __init__(self, storm: Storm, name: Any, flags: list[int]) -> None:
        self._storm = storm
        path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        self._path = path
        known = storm.platters.get(path)
        content = Path(path).read_bytes() if path and Path(path).exists() else b""
        super().__init__("unix", name, flags)
        self._platter = known or storm.platters.setdefault(path, Platter(content))

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - the name that SQLite gives
        self._storm.strike()
        self._platter.write(bytes(data), offset)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802 - as above
        self._storm.strike()
        if not self._storm.is_lying:
            self._platter.sync()
        super().xSync(flags)

    def xTruncate(self, size: int) -> None:  # noqa: N802 - as above
        self._platter.truncate(size)
        super().xTruncate(size)

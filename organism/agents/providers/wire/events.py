"""Server-sent events, read as they come: any chunk borders, any line ends, comments and all."""

from __future__ import annotations

from typing import Final, NamedTuple

LINE_ENDS: Final = (b"\n", b"\r")
FIELDS: Final = frozenset({b"data", b"event", b"id", b"retry"})
ERROR: Final = b"error"
"""Some servers write an error as a field of its own instead of an event of that name."""
BEGIN: Final = b"data: "
END: Final = b"\n\n"


class Event(NamedTuple):
    """One event: its name, which may be empty, and its data."""

    name: str
    data: bytes


class Events:
    """Cuts bytes into events.

    ``held`` counts the bytes of the event that is not whole yet, ``seen`` the whole ones, ``foreign`` the lines that
    are no part of any.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._skips_newline = False
        self._name = ""
        self._data: list[bytes] = []
        self.held = 0
        self.seen = 0
        self.foreign = 0

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that the chunk ends."""
        if not self.held and not self._name and self._is_one(chunk):  # what nearly every server sends
            self.seen += 1
            self._skips_newline = False
            return [Event("", chunk[len(BEGIN) : -len(END)])]
        if self._skips_newline and chunk:
            self._skips_newline = False
            chunk = chunk.removeprefix(b"\n")
        self.held += len(chunk)
        if b"\n" not in chunk and b"\r" not in chunk:
            self._pieces.append(chunk)
            return []
        lines = b"".join((*self._pieces, chunk)).splitlines(keepends=True)
        self._skips_newline = chunk.endswith(b"\r")
        self._pieces = [] if lines[-1].endswith(LINE_ENDS) else [lines.pop()]
        found: list[Event] = []
        for line in lines:
            self._take(line.rstrip(b"\r\n"), found)
        return found

    def _is_one(self, chunk: bytes) -> bool:
        """Whether the chunk is one event that has no name, from its begin to its end, and nothing lies before it."""
        if not chunk.startswith(BEGIN) or not chunk.endswith(END) or self._data:
            return False
        return chunk.find(b"\n") == len(chunk) - len(END) and b"\r" not in chunk

    def end(self) -> list[Event]:
        """The event that nothing stands behind, if there is one."""
        found: list[Event] = []
        line = b"".join(self._pieces)
        if not any(field.startswith(line) for field in (*FIELDS, ERROR)):  # what is cut in a name, is no other name
            self._take(line, found)
        self._take(b"", found)
        return found

    def _take(self, line: bytes, found: list[Event]) -> None:
        """The next line; an empty one ends an event."""
        if not line:
            self._end_event(found)
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"event":
            self._name = value.decode("utf-8", "replace")
        elif field in {b"data", ERROR}:
            self._data.append(value)
            self._name = "error" if field == ERROR else self._name
        elif field and field not in FIELDS:
            self.foreign += 1

    def _end_event(self, found: list[Event]) -> None:
        name, data = self._name, self._data
        self.held = sum(map(len, self._pieces))
        if data:
            self._name, self._data = "", []
            self.seen += 1
            found.append(Event(name, b"\n".join(data)))
        elif name:
            self._name = ""

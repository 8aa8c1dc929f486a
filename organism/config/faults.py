"""Reads configuration files and collects their faults, so that all are reported at once."""

from __future__ import annotations

import difflib
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from organism.errors import ConfigInvalid, Fault

MAX_FILE_BYTES: Final = 4 * 1024 * 1024
MAX_NAME_CHARS: Final = 60

Place = tuple[str | int, ...]
"""The way from the root to a value: keys of mappings and indexes of lists."""

MAX_NAMED: Final = 2


class Faults:
    """The faults of one file and of those that are read with it. ``line`` counts from 1."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._files = [file]
        self._found: list[tuple[int, int, str, Fault]] = []

    def of(self, file: str) -> Faults:
        """The faults of another file, reported together with these, after them."""
        other = Faults(file)
        other._files, other._found = self._files, self._found
        self._files.append(file)
        return other

    @property
    def are_none(self) -> bool:
        """Whether this file has no fault so far."""
        return all(file != self._file for _, _, file, _ in self._found)

    def add(self, line: int, place: Place, message: str) -> None:
        """Note a fault at ``FILE:LINE:KEY`` (``FILE:LINE`` where no key is to blame). ``place`` names the key."""
        self._note(line, f"{line}:{written(place)}" if place else str(line), message)

    def at(self, pointer: str, message: str) -> None:
        """Note a fault at a JSON pointer, as ``FILE:POINTER``; the whole file has the empty one."""
        self._note(1, pointer, message)

    def refuse_if_any(self) -> None:
        """Raise ``ConfigInvalid`` if there is any fault."""
        if self._found:
            raise self.refusal()

    def refusal(self) -> ConfigInvalid:
        """Every fault so far, in the order of the files and of their lines."""
        found = sorted(self._found, key=lambda each: each[:2])
        details = tuple(fault for *_, fault in found)
        files = list(dict.fromkeys(file for _, _, file, _ in found))
        more = f" and {len(files) - MAX_NAMED} more files" if len(files) > MAX_NAMED else ""
        named = (", " if more else " and ").join(files[:MAX_NAMED]) + more
        count = "1 fault" if len(details) == 1 else f"{len(details)} faults"
        verb = "is" if len(files) == 1 else "are"
        message = f"{named} {verb} not valid: {count}."
        return ConfigInvalid(message, details=details)

    def _note(self, line: int, where: str, message: str) -> None:
        fault = Fault(f"{self._file}:{where}".removesuffix(":"), message)
        self._found.append((self._files.index(self._file), line, self._file, fault))


def written(place: Place) -> str:
    """``listeners[0].handler``."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return text.removeprefix(".")


def lies_within(path: Path, folder: Path) -> bool:
    """Whether the path lies below the folder, with links followed."""
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):  # no path at all, or links in a circle
        return False


def open_to_everyone(path: Path) -> str | None:
    """Why every user of this machine can change the file, with the remedy; None if they cannot."""
    for each in (path, path.resolve().parent):
        mode = each.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            return f"every user of this machine can change it; chmod o-w {each}"
    return None


def read_text(path: Path, faults: Faults, *, if_missing: str, if_large: str) -> str:
    """The file's text, or empty text after a fault, which goes to ``faults`` with its remedy."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        faults.add(1, (), f"the file cannot be read: {error.strerror}; {if_missing}")
        return ""
    if len(raw) > MAX_FILE_BYTES:
        faults.add(1, (), f"expected at most {MAX_FILE_BYTES} bytes, came more; {if_large}")
        return ""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        faults.add(line, (), f"expected UTF-8, came the byte 0x{raw[error.start]:02x}")
        return ""


def near(name: str, known: Iterable[str]) -> str:
    """``; did you mean `x`?`` if a known name is similar, else empty."""
    close = difflib.get_close_matches(name, list(known), n=1) if len(name) <= MAX_NAME_CHARS else []
    return f"; did you mean `{close[0]}`?" if close else ""

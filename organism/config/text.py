"""Reading a configuration's text: bounded, and UTF-8 or nothing (S16); names that look like another."""

from __future__ import annotations

import difflib
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from organism.config.faults import Faults

MAX_FILE_BYTES: Final = 256 * 1024
MAX_NAME_CHARS: Final = 60


def lies_within(path: Path, folder: Path) -> bool:
    """Whether the path, with its links followed, ends below the folder."""
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):  # no path at all, or links in a circle
        return False


def open_to_everyone(path: Path) -> str | None:
    """What lets every user of the machine change the file, with its remedy; None if nothing does."""
    for each in (path, path.resolve().parent):
        mode = each.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            return f"every user of this machine can change it; chmod o-w {each}"
    return None


def read_text(path: Path, faults: Faults, *, if_missing: str, if_large: str) -> str:
    """The file's text. What is wrong goes to ``faults``, with what to do about it; then the text is empty."""
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
    """``; did you mean `x`?`` if a known name looks like it, else nothing."""
    close = difflib.get_close_matches(name, list(known), n=1) if len(name) <= MAX_NAME_CHARS else []
    return f"; did you mean `{close[0]}`?" if close else ""

"""The files that are named on the command line, and those below the folders that are."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final

from organism.rag.files import MOST_NAME_BYTES, is_file_name

MOST_FILE_BYTES: Final = 32 << 20
"""What a server takes."""
PLAIN: Final = "text/plain"
TYPES: Final[Mapping[str, str]] = {
    **dict.fromkeys((".md", ".markdown"), "text/markdown"),
    **dict.fromkeys((".html", ".htm"), "text/html"),
    ".pdf": "application/pdf",
}
"""The Content-Type of files by the end of their names; of all others it is ``PLAIN``."""


class LeftOut(Exception):
    """A file is not sent; the message says why."""


def files_in(path: Path) -> Iterator[Path]:
    """The file, or all below the folder that is not hidden, in order; what cannot be listed is given itself.

    Links to folders are not followed: they may form cycles. What is no file is left to ``bytes_of``.
    """
    waiting = [path]
    while waiting:
        each = waiting.pop()
        try:
            inside = sorted(filter(_is_taken, each.iterdir()), reverse=True) if each.is_dir() else None
        except OSError:
            inside = None
        if inside is None:
            yield each
        else:
            waiting += inside


def _is_taken(inside: Path) -> bool:
    return not inside.name.startswith(".") and not (inside.is_symlink() and inside.is_dir())


def bytes_of(file: Path, folder: Path | None = None) -> bytes:
    """What is in a file that was named, or found in a ``folder`` that was. Raises ``LeftOut``."""
    if not is_file_name(file.as_posix()):
        raise LeftOut(f"its path is not 1 to {MOST_NAME_BYTES} bytes of printable text; rename it first")
    try:
        with _opened(file, folder) as opened:
            if (size := os.fstat(opened.fileno()).st_size) > MOST_FILE_BYTES:
                raise LeftOut(f"it has more than {MOST_FILE_BYTES} bytes; divide it first")
            return opened.read(size)
    except OSError as error:
        raise LeftOut(error.strerror or str(error)) from error


def _opened(file: Path, folder: Path | None) -> BinaryIO:
    """The file, a regular one; a link in a folder leads to none outside. Raises ``LeftOut``, ``OSError``."""
    real, flags = file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    if folder is not None:
        try:
            real = file.resolve(strict=True)
        except RuntimeError as error:  # as Python before 3.13 says of links in a circle
            raise LeftOut("it is a link that leads round in circles") from error
        if not real.is_relative_to(folder.resolve()):
            raise LeftOut("it is a link out of the folder; name what it leads to itself")
        flags |= os.O_NOFOLLOW
    if not stat.S_ISREG(real.stat().st_mode):
        raise LeftOut("it is no regular file")
    opened = os.fdopen(os.open(real, flags), "rb")
    if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):  # it was replaced just now
        opened.close()
        raise LeftOut("it is no regular file")
    return opened

"""config/tokens.yaml on the disk: edited one at a time, whole or not at all."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from organism.config.tokens import read_tokens

_PRIVATE: Final = 0o600
_HEAD: Final = """\
# Who may use this organism: tenants, and the tokens that open them. `organism token` edits this file; a running server
# takes over an edit within a second. Of a token only the SHA-256 of its text stands here.
tenants: []
"""


def edit_tokens(path: Path, edit: Callable[[str], str]) -> None:
    """Put ``edit(text)`` in the place of the file's text; a file that is not there begins with no tenant.

    Raises ``ConfigInvalid`` if the file is not valid, and whatever ``edit`` raises: then nothing has changed.
    """
    with _alone(path.parent):
        read_tokens(path)
        _put(path, edit(path.read_text("utf-8-sig") if path.exists() else _HEAD))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One edit at a time: of two at once the later would undo the earlier."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _put(path: Path, text: str) -> None:
    """Put the whole text in the file's place, on the disk; where a link leads there, the link stays."""
    path = path.resolve()
    mode = path.stat().st_mode & 0o777 if path.exists() else _PRIVATE
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

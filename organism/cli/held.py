"""Who has the data directory: asked before anything heavy is imported, so answered at once."""

from __future__ import annotations

import fcntl
import os
import re
from pathlib import Path
from typing import Final

from organism.cli.exits import Exit
from organism.log.place import Place
from organism.model.ids import DEFAULT_TENANT

_NOTE: Final = re.compile(r"process \d+ since [^\n]+")


def holder(data: Path) -> str | None:
    """The process that holds ``data``, in words; None if nobody does. Nothing is changed, and nobody kept out."""
    try:
        handle = os.open(Place(data / "tenants" / DEFAULT_TENANT).lock_path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _in_words(os.pread(handle, 200, 0).decode("utf-8", "replace"))
    finally:
        os.close(handle)
    return None


def _in_words(said: str) -> str:
    found = _NOTE.search(said)
    return found[0] if found else "another process"


def refuse_if_held(data: Path) -> None:
    """End the command if a server runs on ``data``. The server's own hold, later, is the one that counts."""
    who = holder(data)
    if who is not None:
        from organism.cli.show import refuse

        refuse(
            Exit.FAILED,
            f"{data} is held by {who}.",
            "Stop it with `organism stop`, or serve another directory: --data DIR.",
        )

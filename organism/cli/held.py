"""Whether another process has the data directory: asked before anything heavy is imported, so answered at once."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import typer

from organism.errors import LogHeld
from organism.log.place import Place
from organism.model.ids import DEFAULT_TENANT

FAILED: Final = 1


def refuse_if_held(data: Path) -> None:
    """End the command if a server runs on ``data``. The server's own hold, later, is the one that counts."""
    place = Place(data / "tenants" / DEFAULT_TENANT)
    if not place.lock_path.exists():
        return
    try:
        place.hold(lambda: time.time_ns() // 1000)
    except LogHeld as error:
        from organism.cli.show import fail

        fail(error.message, error.remediation)
        raise typer.Exit(FAILED) from None
    place.release()

"""config/tokens.yaml while the server runs: an edit acts within a second, a bad one changes nothing (S1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog

from organism.bootstrap import Organism
from organism.config.tokens import TenantEntry, read_tokens
from organism.errors import OrganismError
from organism.server.auth import Tokens

LOOK_SECONDS: Final = 0.25
_log = structlog.get_logger("organism.server")

Signature = tuple[int, int, int] | None


class LiveTokens:
    """Looks at the file again and again, and calls ``review`` each time: tokens expire without an edit too."""

    def __init__(self, organism: Organism, tokens: Tokens, review: Callable[[], None]) -> None:
        self._organism = organism
        self._tokens = tokens
        self._review = review
        self._path = organism.tokens_path
        self._seen: Signature = None
        self._take(organism.entries)

    def begin(self) -> asyncio.Task[None]:
        """Look from now on, until the organism is closed."""
        looking = asyncio.ensure_future(self._run())
        looking.add_done_callback(_report)
        return looking

    async def _run(self) -> None:
        while not self._organism.closed.is_set():
            try:
                await self._look()
            except OrganismError as error:
                faults = [f"{fault.pointer}: {fault.message}" for fault in error.details]
                _log.error("tokens_not_taken", reason=error.message, faults=faults, remedy="the last good ones hold")
            except OSError as error:
                _log.error("tokens_not_taken", reason=str(error), remedy="the last good ones hold")
            self._review()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._organism.closed.wait()

    async def _look(self) -> None:
        seen = signature(self._path)
        if seen == self._seen:
            return
        self._seen = seen
        entries = await asyncio.to_thread(read_tokens, self._path)
        self._take(entries)
        await self._organism.open_tenants([entry.id for entry in entries])
        self._take(entries)

    def _take(self, entries: tuple[TenantEntry, ...]) -> None:
        """What is revoked ends at once; what opens a tenant waits until it is open."""
        self._organism.entries = entries
        self._tokens.take(entry for entry in entries if entry.id in self._organism.tenants)


def _report(looking: asyncio.Task[None]) -> None:
    """Nobody foresaw that it could end so: say what no longer holds."""
    if not looking.cancelled() and (error := looking.exception()) is not None:
        _log.error("tokens_not_watched", exc_info=error, remedy="restart the server: it obeys no revocation any more")


def signature(path: Path) -> Signature:
    """What changes when the file does; None while there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino

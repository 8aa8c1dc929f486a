"""config/tokens.yaml while the server runs: an edit acts within a second, a bad one changes nothing (S1).

A change counts once two looks find the same, since a look may find a file half written. Tenants are opened
in a task of their own, so that revocations never wait for that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Final

import structlog

from organism.bootstrap import Organism
from organism.config.tokens import TenantEntry, read_tokens
from organism.errors import OrganismError
from organism.server.http.auth import Tokens

LOOK_SECONDS: Final = 0.2
MOST_LOOKS: Final = 3
"""A file that never stays the same is taken at this look all the same: a revocation does not wait for ever."""
AGAIN_SECONDS: Final = 5.0
"""How long after a failure the same is tried again."""
_UNREAD: Final = object()
_log = structlog.get_logger("organism.server")

Signature = tuple[int, int, int, int] | None


class Changes:
    """Says when a file is to be read, by what a look at it finds."""

    def __init__(self) -> None:
        self._taken: object = _UNREAD
        self._before: object = _UNREAD
        self._looks = 0
        self._again = inf

    def is_due(self, seen: Signature, now: float) -> bool:
        """Whether to read it now; then it counts as taken."""
        is_same, self._before = seen == self._before, seen
        if seen == self._taken and now < self._again:
            self._looks = 0
            return False
        self._looks += 1
        if not is_same and (seen is None or self._looks < MOST_LOOKS):
            return False
        self._taken, self._looks, self._again = seen, 0, inf
        return True

    def failed(self, now: float) -> None:
        """What was due could not be taken: try it once more, later or when it has changed."""
        self._again = now + AGAIN_SECONDS


class LiveTokens:
    """Looks at the file again and again, and calls ``review`` each time: tokens expire without an edit too."""

    def __init__(self, organism: Organism, tokens: Tokens, review: Callable[[], None]) -> None:
        self._organism = organism
        self._tokens = tokens
        self._review = review
        self._path = organism.tokens_path
        self._changes = Changes()
        self._logged: set[str] = set()
        self._opening: asyncio.Task[None] | None = None
        self._open_again = 0.0
        self._take(organism.entries)

    def begin(self) -> asyncio.Task[None]:
        """Look from now on, until the organism is closed."""
        looking = asyncio.ensure_future(self._run())
        looking.add_done_callback(_report)
        return looking

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._organism.closed.is_set():
            try:
                await self._look(loop.time())
                self._review()
                self._open(loop.time())
            except Exception as error:  # noqa: BLE001 - whatever it is: who is revoked next must be seen all the same
                self._changes.failed(loop.time())
                self._log_once("tokens_not_taken", error, remedy="the last good ones hold")
                self._review()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._organism.closed.wait()

    async def _look(self, now: float) -> None:
        seen = signature(self._path)
        if not self._changes.is_due(seen, now):
            return
        entries = await asyncio.to_thread(read_tokens, self._path)
        if seen is not None and signature(self._path) is None:
            return  # it is gone since; the next looks decide
        if seen is None and self._organism.entries:
            _log.warning("tokens_revoked", reason=f"{self._path} is gone", remedy="put it back to undo it")
        self._logged.clear()
        self._open_again = 0.0
        self._take(entries)

    def _take(self, entries: tuple[TenantEntry, ...]) -> None:
        """What is revoked ends at once; what opens a tenant waits until it is open."""
        self._organism.entries = entries
        self._tokens.take(entry for entry in entries if entry.id in self._organism.tenants)

    def _open(self, now: float) -> None:
        closed = [entry.id for entry in self._organism.entries if entry.id not in self._organism.tenants]
        if closed and now >= self._open_again and (self._opening is None or self._opening.done()):
            self._open_again = now + AGAIN_SECONDS
            self._opening = asyncio.ensure_future(self._open_each(closed))

    async def _open_each(self, ids: Sequence[str]) -> None:
        """One by one: a log that cannot be opened keeps out its own tenant alone."""
        for tenant_id in ids:
            try:
                await self._organism.open_tenants((tenant_id,))
            except Exception as error:  # noqa: BLE001 - as above
                self._log_once("tenant_not_opened", error, tenant=tenant_id, remedy="its tokens wait for it")
            self._take(self._organism.entries)

    def _log_once(self, event: str, error: Exception, **more: str) -> None:
        """Log what went wrong, once for as long as it stays the same."""
        known = error if isinstance(error, OrganismError) else OrganismError(repr(error))
        reason, faults = known.message, [f"{fault.pointer}: {fault.message}" for fault in known.details]
        if (entry := repr((event, reason, faults, more))) not in self._logged:
            self._logged.add(entry)
            _log.error(event, reason=reason, faults=faults, **more)


def _report(looking: asyncio.Task[None]) -> None:
    if not looking.cancelled() and (error := looking.exception()) is not None:
        _log.error("tokens_not_watched", exc_info=error, remedy="restart the server: it obeys no revocation any more")


def signature(path: Path) -> Signature:
    """What changes when the file does, or who may read it; None while there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino

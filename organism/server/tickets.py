"""One-use tickets for the WebSocket: the only credential that may stand in a URL (S6).

A browser cannot send a header with its handshake, and a token in a URL ends up in logs. So a page asks for a ticket
with its token, and opens ``/ws?ticket=…`` with it: within 30 seconds, once, for whoever asked. What a log may keep of
it is worth nothing by then. Tickets end with the process; their MAC is made under a key that it alone has.
"""

from __future__ import annotations

import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

from organism.errors import InvalidAuthorization, RateLimitExceeded
from organism.model.principal import Principal

LIFE_SECONDS: Final = 30
MAX_OPEN: Final = 1000
"""So many unused ones a token, as it may open sockets."""
_BYTES: Final = 32


class _Ticket(NamedTuple):
    """Who asked for it, and when it ends."""

    who: Principal
    end: float


class Tickets:
    """Issues and redeems tickets. ``now`` gives seconds of a clock that does not go back."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._key = secrets.token_bytes(_BYTES)
        self._open: OrderedDict[str, _Ticket] = OrderedDict()

    def issue(self, who: Principal) -> str:
        """A ticket for ``who``. Raises ``RateLimitExceeded`` if too many are unused."""
        self._sweep()
        if sum(each.who.credential == who.credential for each in self._open.values()) >= MAX_OPEN:
            raise RateLimitExceeded(f"{MAX_OPEN} tickets of this token are unused.", retry_after_s=LIFE_SECONDS)
        serial = secrets.token_hex(_BYTES // 2)
        self._open[serial] = _Ticket(who, self._now() + LIFE_SECONDS)
        return f"{serial}.{self._mac(serial, who)}"

    def redeem(self, said: str) -> Principal:
        """Who asked for the ticket; it is used then.

        Raises ``InvalidAuthorization``: unknown, wrong, used and expired look the same.
        """
        self._sweep()
        serial, _, mac = said.partition(".")
        ticket = self._open.get(serial)
        if ticket is None or not hmac.compare_digest(mac.encode(), self._mac(serial, ticket.who).encode()):
            raise InvalidAuthorization(param="query.ticket")
        del self._open[serial]
        return ticket.who

    def _sweep(self) -> None:
        """Forget what has expired; all live equally long, so the oldest stand first."""
        while self._open and next(iter(self._open.values())).end <= self._now():
            self._open.popitem(last=False)

    def _mac(self, serial: str, who: Principal) -> str:
        bound = f"{serial} {who.tenant} {who.credential.hex()}"
        return hmac.new(self._key, bound.encode(), "sha256").hexdigest()

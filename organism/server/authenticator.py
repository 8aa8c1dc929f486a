"""Authentication: who comes with a token or a ticket; guesses are counted and slowed down (S2, S6).

After ten failures in a minute from an address, or for a token's prefix, there is only 429. A valid token is never
refused for it: only what has failed is counted. A ticket is the only credential that may stand in a URL: a browser
cannot send a header with its handshake, so a page asks for one and opens ``/ws?ticket=…`` with it: within 30 seconds,
once. Its MAC is made under a key that this process alone has.
"""

from __future__ import annotations

import hmac
import math
import secrets
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple

from organism.errors import InvalidAuthorization, RateLimitExceeded, TooManyFailures
from organism.model.principal import Principal
from organism.server.auth import Tokens
from organism.server.connections import RateLimiter

FAILURES: Final = 10
SECONDS: Final = 60.0
REMEMBERED: Final = 10_000
"""Addresses and prefixes that are remembered; the least recent are forgotten first."""
_PREFIX_BYTES: Final = 40
_BARE_BYTES: Final = 8
_NETWORK_BYTES: Final = 8


class Failures:
    """Counts failed tokens. ``now`` gives seconds of a clock that does not go back."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._windows: OrderedDict[bytes, RateLimiter] = OrderedDict()

    def note(self, address: str, token: bytes) -> None:
        """Count a failed token. Raises ``TooManyFailures`` after too many of them."""
        now = self._now()
        windows = [self._window(b"from " + network_of(address)), self._window(b"for " + prefix_of(token))]
        wait = max(window.wait(now) for window in windows)
        if wait:
            raise TooManyFailures(retry_after_s=math.ceil(wait))
        for window in windows:
            window.note(now)

    def _window(self, key: bytes) -> RateLimiter:
        window = self._windows.get(key)
        if window is None:
            window = self._windows[key] = RateLimiter(FAILURES, SECONDS)
        self._windows.move_to_end(key)
        if len(self._windows) > REMEMBERED:
            self._windows.popitem(last=False)
        return window


def prefix_of(token: bytes) -> bytes:
    """The part of a token that is no secret: all before its last ``_``, or its first few bytes."""
    readable, found, _ = token.rpartition(b"_")
    return readable[:_PREFIX_BYTES] if found else token[:_BARE_BYTES]


def network_of(address: str) -> bytes:
    """The address; of IPv6 its network, since whoever has one address there has all of them."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address.encode()
    return parsed.packed[:_NETWORK_BYTES] if isinstance(parsed, IPv6Address) else parsed.packed


LIFE_SECONDS: Final = 30
MAX_OPEN: Final = 1000
"""Unused tickets a token may have, as many as it may open sockets."""
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
        """Who asked for the ticket, which is used up by this.

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
        """Forget what has expired; all live equally long, so the oldest come first."""
        while self._open and next(iter(self._open.values())).end <= self._now():
            self._open.popitem(last=False)

    def _mac(self, serial: str, who: Principal) -> str:
        bound = f"{serial} {who.tenant} {who.credential.hex()}"
        return hmac.new(self._key, bound.encode(), "sha256").hexdigest()


class Authenticator:
    """Lets in by token or ticket. ``now`` gives seconds of a clock that does not go back.

    ``learn`` is told each token that opened: until then only its digest is known.
    """

    def __init__(self, tokens: Tokens, now: Callable[[], float], learn: Callable[[str], None]) -> None:
        self.tokens = tokens
        self._learn = learn
        self._learned: set[bytes] = set()
        self.tickets = Tickets(now)
        self._failures = Failures(now)

    def by_token(self, token: bytes, address: str) -> Principal:
        """Whose token it is. Raises ``InvalidAuthorization``, or ``TooManyFailures`` after many of them."""
        try:
            who = self.tokens.principal(token)
        except InvalidAuthorization:
            self._failures.note(address, token)
            raise
        if who.credential not in self._learned:
            self._learned.add(who.credential)
            self._learn(token.decode("utf-8", "replace"))
        return who

    def by_ticket(self, ticket: str, address: str) -> Principal:
        """Who asked for the ticket, as the token stands now. Raises as ``by_token`` does."""
        try:
            return self.tokens.current(self.tickets.redeem(ticket))
        except InvalidAuthorization:
            self._failures.note(address, b"ticket_")
            raise

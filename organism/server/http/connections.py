"""Connections: how long a client may take, how many a token has open, how fast it sends, which must end (S1, S15)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Final, NamedTuple, Protocol

from organism.errors import Forbidden, InvalidAuthorization, RateLimitExceeded
from organism.model.principal import COMMANDS_PER_SECOND, Principal
from organism.model.rate import TokenBucket
from organism.server.http.auth import RateLimiter, Tokens
from organism.server.http.rights import SOCKET

MAX_SOCKETS: Final = 1000
SECOND_US: Final = 1_000_000
NOT_AUTHENTICATED: Final = 4401
NOT_ALLOWED: Final = 4403


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """How long the server waits for a client or a tool, and how often a quiet connection hears from the server."""

    head_seconds: float = 10.0
    """How long a new connection may be silent, and a request's head may take."""
    body_seconds: float = 60.0
    """How long a body may take: the largest needs 18 KB a second."""
    auth_seconds: float = 10.0
    """How long a WebSocket may stay unauthenticated."""
    ping_seconds: float = 20.0
    """The interval between a WebSocket's pings, and how long each may stay unanswered."""
    stuck_seconds: float = 6.0
    """How long the peer of a WebSocket may read nothing of what waits for it."""
    close_seconds: float = 5.0
    """How long the peer of a WebSocket may leave a close unanswered."""
    heartbeat_seconds: float = 15.0
    """How long an event stream is silent before it is sent a heartbeat."""
    tool_seconds: float = 60.0
    """How long a call of a tool is waited for; then the answer is its ids."""


class Quota(NamedTuple):
    """How many requests a second a token may send on and on; at once as many as in so many seconds."""

    per_second: int
    seconds: int


GATEWAY_QUOTA: Final = Quota(1, 30)
USUAL_QUOTA: Final = Quota(50, 2)


class Subscriber(Protocol):
    """A WebSocket or an event stream. ``who`` is replaced when its token's entry changes."""

    who: Principal

    def dismiss(self, code: int) -> None:
        """Close the connection with this code."""


class ConnectionRegistry:
    """The open connections by token, and the answers that go on. ``now`` gives seconds that do not go back."""

    def __init__(self, tokens: Tokens, now: Callable[[], float]) -> None:
        self._tokens = tokens
        self._now = now
        self._subscribers: dict[bytes, set[Subscriber]] = {}
        self._rates: dict[bytes, RateLimiter] = {}
        self._buckets: dict[tuple[bytes, Quota], TokenBucket] = {}
        self.answers: dict[Callable[[], None], Principal] = {}
        """What ends each HTTP answer that goes on, and whose it is: it ends with their token."""

    @property
    def count(self) -> int:
        """How many subscribers there are."""
        return sum(map(len, self._subscribers.values()))

    def add(self, subscriber: Subscriber) -> None:
        """Raises ``RateLimitExceeded`` if its token has too many."""
        subscribers = self._subscribers.setdefault(subscriber.who.credential, set())
        if len(subscribers) >= MAX_SOCKETS:
            raise RateLimitExceeded(f"This token has {MAX_SOCKETS} sockets open; close one of them.")
        subscribers.add(subscriber)

    def remove(self, subscriber: Subscriber) -> None:
        subscribers = self._subscribers[subscriber.who.credential]
        subscribers.discard(subscriber)
        if not subscribers:
            del self._subscribers[subscriber.who.credential]

    def note_command(self, who: Principal) -> None:
        """Count a command. Raises ``RateLimitExceeded`` if its token has sent too many within a second."""
        count = who.rate_or(COMMANDS_PER_SECOND)
        if count is None:
            return
        rate = self._rates.get(who.credential)
        if rate is None or rate.count != count:
            rate = self._rates[who.credential] = RateLimiter(count, 1.0)
        now = self._now()
        if rate.wait(now):
            raise RateLimitExceeded(f"This token may send {count} commands a second; send this one again later.")
        rate.note(now)

    def note_request(self, who: Principal, quota: Quota, headers: dict[str, str]) -> None:
        """Count a request, and tell in ``headers`` what is left. Raises ``RateLimitExceeded`` if nothing is."""
        per_second = who.rate_or(quota.per_second)
        if per_second is None:
            return
        bucket = self._buckets.setdefault((who.credential, quota), TokenBucket(0, quota.seconds * SECOND_US))
        bucket.resize(per_second * quota.seconds)
        now = int(self._now() * SECOND_US)
        wait_us = bucket.wait_us(1, now)
        if not wait_us:
            bucket.take(1, now)
        left = int(bucket.left(now))
        told = {"Limit": bucket.count, "Remaining": left, "Reset": ceil((bucket.count - left) / per_second)}
        headers.update({f"RateLimit-{name}": str(number) for name, number in told.items()})
        if wait_us:
            raise RateLimitExceeded(
                f"This token may send {per_second} requests a second here, and {bucket.count} at once.",
                retry_after_s=ceil(wait_us / SECOND_US),
            )

    def review(self) -> None:
        """Tokens have changed or ended: each connection gets its token's rights of now, or ends."""
        for subscribers in [tuple(subscribers) for subscribers in self._subscribers.values()]:
            try:
                who = self._tokens.current(subscribers[0].who)
                SOCKET.check(who)
            except (InvalidAuthorization, Forbidden) as error:
                code = NOT_ALLOWED if isinstance(error, Forbidden) else NOT_AUTHENTICATED
                for subscriber in subscribers:
                    subscriber.dismiss(code)
                continue
            for subscriber in subscribers:
                subscriber.who = who
        for end, who in tuple(self.answers.items()):
            try:
                self._tokens.current(who)
            except InvalidAuthorization:
                end()

"""Connections: how long a client may take, how many a token has open, how much and how fast it sends, which must end.

See S1, S14 and S15 in docs/security.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Final, NamedTuple, Protocol

from organism.errors import Forbidden, InvalidAuthorization, Overloaded, RateLimitExceeded
from organism.model.principal import COMMANDS_PER_SECOND, Principal
from organism.model.rate import TokenBucket
from organism.server.http.auth import RateLimiter, Tokens
from organism.server.http.rights import SOCKET

MAX_SOCKETS: Final = 1000
MAX_BYTES_UNDER_WAY: Final = 256 << 20
MAX_TOKEN_BYTES_UNDER_WAY: Final = 64 << 20
FREE_BYTES: Final = 16 << 10
"""The first of each body count for nothing, so that a pause or a kill always gets through; the rate bounds them."""
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


class BodyBudget:
    """The bytes of bodies that have come and are still held: of the whole process, and of each token."""

    def __init__(self, process_bytes: int = MAX_BYTES_UNDER_WAY, token_bytes: int = MAX_TOKEN_BYTES_UNDER_WAY) -> None:
        self._process_bytes = process_bytes
        self._token_bytes = token_bytes
        self._of_token = Counter[bytes]()

    def body(self, who: Principal) -> BodyUnderWay:
        """A body of which nothing has come yet."""
        return BodyUnderWay(self, who.credential)

    def add(self, credential: bytes, size: int) -> None:
        """Count so many bytes. Raises ``RateLimitExceeded`` or ``Overloaded`` if they are too many, and counts none."""
        if self._of_token[credential] + size > self._token_bytes:
            raise RateLimitExceeded(
                f"This token has {self._token_bytes >> 20} MiB of requests under way; send this one again later."
            )
        if self._of_token.total() + size > self._process_bytes:
            raise Overloaded
        self._of_token[credential] += size

    def remove(self, credential: bytes, size: int) -> None:
        self._of_token[credential] -= size
        if not self._of_token[credential]:
            del self._of_token[credential]


class BodyUnderWay:
    """What is held of one body, or of one message that comes over a WebSocket."""

    def __init__(self, budget: BodyBudget, credential: bytes) -> None:
        self._budget = budget
        self._credential = credential
        self._counted = 0

    def hold(self, size: int) -> None:
        """So many bytes of it are held now. Raises ``RateLimitExceeded`` or ``Overloaded``."""
        more = max(0, size - FREE_BYTES) - self._counted
        if more > 0:
            self._budget.add(self._credential, more)
        elif more < 0:
            self._budget.remove(self._credential, -more)
        self._counted += more


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
        limits = {"Limit": bucket.count, "Remaining": left, "Reset": ceil((bucket.count - left) / per_second)}
        headers.update({f"RateLimit-{name}": str(number) for name, number in limits.items()})
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

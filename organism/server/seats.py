"""Who sits at the sockets: how many a token has open, how fast it may speak, and who must leave (S1, S15)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from organism.errors import Forbidden, InvalidAuthorization, RateLimitExceeded
from organism.model.principal import Principal
from organism.server.auth import Tokens
from organism.server.pace import Window
from organism.server.rights import SOCKET

MAX_SOCKETS: Final = 1000
NOT_AUTHENTICATED: Final = 4401
NOT_ALLOWED: Final = 4403


class Guest(Protocol):
    """One authenticated connection. ``who`` is replaced when its token's entry changes."""

    who: Principal

    def dismiss(self, code: int) -> None:
        """Close the connection with this code."""


class Endless(Protocol):
    """An answer that has no end yet."""

    def end(self) -> None:
        """Come to an end."""


class Seats:
    """The authenticated connections, by token, and who is told something that has no end yet.

    ``now`` gives seconds of a clock that does not go back.
    """

    def __init__(self, tokens: Tokens, now: Callable[[], float]) -> None:
        self._tokens = tokens
        self._now = now
        self._guests: dict[bytes, set[Guest]] = {}
        self._paces: dict[bytes, Window] = {}
        self._told: dict[Endless, Principal] = {}

    @property
    def taken(self) -> int:
        """How many connections there are."""
        return sum(map(len, self._guests.values()))

    def take(self, guest: Guest) -> None:
        """One more connection. Raises ``RateLimitExceeded`` if its token has too many."""
        guests = self._guests.setdefault(guest.who.credential, set())
        if len(guests) >= MAX_SOCKETS:
            raise RateLimitExceeded(f"This token has {MAX_SOCKETS} sockets open; close one of them.")
        guests.add(guest)

    def leave(self, guest: Guest) -> None:
        """The connection is over."""
        guests = self._guests[guest.who.credential]
        guests.discard(guest)
        if not guests:
            del self._guests[guest.who.credential]

    def tell(self, who: Principal, answer: Endless) -> None:
        """An answer to ``who`` goes on until it is over, or its token."""
        self._told[answer] = who

    def over(self, answer: Endless) -> None:
        """The answer has come to its end."""
        self._told.pop(answer, None)

    def note_command(self, who: Principal) -> None:
        """A command came. Raises ``RateLimitExceeded`` if its token has sent too many within a second."""
        if who.rate is None:
            return
        pace = self._paces.get(who.credential)
        if pace is None or pace.count != who.rate:
            pace = self._paces[who.credential] = Window(who.rate, 1.0)
        now = self._now()
        if pace.wait(now):
            raise RateLimitExceeded(f"This token may send {who.rate} commands a second; send this one again later.")
        pace.note(now)

    def review(self) -> None:
        """Tokens may have changed or ended: each connection has its token's rights of now, or ends."""
        for guests in [tuple(guests) for guests in self._guests.values()]:
            self._review(guests)
        for answer, who in tuple(self._told.items()):
            try:
                self._tokens.current(who)
            except InvalidAuthorization:
                answer.end()

    def _review(self, guests: tuple[Guest, ...]) -> None:
        try:
            who = self._tokens.current(guests[0].who)
            SOCKET.check(who)
        except (InvalidAuthorization, Forbidden) as error:
            code = NOT_ALLOWED if isinstance(error, Forbidden) else NOT_AUTHENTICATED
            for guest in guests:
                guest.dismiss(code)
            return
        for guest in guests:
            guest.who = who

"""The door: whoever comes with a token or a ticket is known by it, or counted as a failure."""

from __future__ import annotations

from collections.abc import Callable

from organism.errors import InvalidAuthorization
from organism.model.principal import Principal
from organism.server.auth import Tokens
from organism.server.failures import Failures
from organism.server.tickets import Tickets


class Door:
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

"""Where a model's server is, what opens it, and how long it is waited for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from organism.agents.provider import ProviderError

KEY_CHARACTERS: Final = frozenset(map(chr, range(0x21, 0x7F)))


@dataclass(frozen=True, slots=True)
class Access:
    """The address of a server, and the key to it.

    ``key_env`` is the variable that the key was read from, for error texts. Without a ``key`` none is sent; but one
    that ``key_env`` names, or that ``needs_key`` demands, must be there.
    """

    base_url: str
    key: str | None = field(default=None, repr=False)
    key_env: str | None = None
    needs_key: bool = False

    @property
    def host(self) -> str:
        """The server as errors name it: host and port, nothing that could be a credential."""
        return urlsplit(self.base_url).netloc.rpartition("@")[2]

    def credential(self) -> str | None:
        """The key as it is sent, if there is one. Raises ``ProviderError``."""
        key = (self.key or "").strip()
        if not key and (self.key_env or self.needs_key):
            raise ProviderError("unauthorized", f"There is no key for {self.host}: {self.how_to_set}.")
        if not KEY_CHARACTERS.issuperset(key):
            wrong = "has characters that no header takes; expected letters, digits and signs without spaces"
            raise ProviderError("unauthorized", f"The key for {self.host} {wrong}: {self.how_to_set}.")
        return key or None

    @property
    def how_to_set(self) -> str:
        if self.key_env:
            return f"set the variable {self.key_env} to a valid one and start again"
        return "put it into a variable and name that by `api_key_env`"


@dataclass(frozen=True, slots=True)
class Waits:
    """How long a call waits: to be connected, for the first event, for the next one, and for what follows the end.

    The first and the next event as shares of the time that the whole call may take: a large prompt on a small machine
    is silent for long.
    """

    connect_s: float = 10.0
    first_share: float = 0.75
    next_share: float = 0.5
    end_s: float = 3.0

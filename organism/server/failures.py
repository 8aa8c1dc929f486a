"""Guessing tokens: after ten failures in a minute from an address, or for a token's prefix, there is only 429 (S2).

A valid token is never refused for it: only what has failed is counted, and only what fails is slowed down.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from typing import Final

from organism.errors import TooManyFailures
from organism.server.pace import Window

FAILURES: Final = 10
SECONDS: Final = 60.0
REMEMBERED: Final = 10_000
"""So many addresses and prefixes; the ones that were quiet the longest are forgotten first."""
_PREFIX_BYTES: Final = 40
_BARE_BYTES: Final = 8
_NETWORK_BYTES: Final = 8


class Failures:
    """Counts failed tokens. ``now`` gives seconds of a clock that does not go back."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._windows: OrderedDict[bytes, Window] = OrderedDict()

    def note(self, address: str, token: bytes) -> None:
        """A token failed. Raises ``TooManyFailures`` if that happened too often of late."""
        now = self._now()
        windows = [self._window(b"from " + network_of(address)), self._window(b"for " + prefix_of(token))]
        wait = max(window.wait(now) for window in windows)
        if wait:
            raise TooManyFailures(retry_after_s=math.ceil(wait))
        for window in windows:
            window.note(now)

    def _window(self, key: bytes) -> Window:
        window = self._windows.get(key)
        if window is None:
            window = self._windows[key] = Window(FAILURES, SECONDS)
        self._windows.move_to_end(key)
        if len(self._windows) > REMEMBERED:
            self._windows.popitem(last=False)
        return window


def prefix_of(token: bytes) -> bytes:
    """What of a token can be read aloud: all before its last ``_``; of one without it the first few bytes."""
    readable, found, _ = token.rpartition(b"_")
    return readable[:_PREFIX_BYTES] if found else token[:_BARE_BYTES]


def network_of(address: str) -> bytes:
    """An address as guessers are counted by it; of IPv6 its network: whoever has one address there has them all."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address.encode()
    return parsed.packed[:_NETWORK_BYTES] if isinstance(parsed, IPv6Address) else parsed.packed

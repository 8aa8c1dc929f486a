"""The numbers that the contract names, as numbers: the other tests take them from where they stand in the code."""

from __future__ import annotations

from organism.pump.idempotency import KEY_LIFE_US
from organism.server import auth, authenticator, connections, lists, serve, snapshot, socket, wire


def test_sockets_have_the_limits_of_the_contract() -> None:
    assert (connections.MAX_SOCKETS, serve.MAX_FRAME_BYTES, serve.PING_SECONDS) == (1000, 256 * 1024, 20)
    assert (socket.AUTH_SECONDS, authenticator.LIFE_SECONDS) == (10, 30)
    assert (snapshot.ACTIVE_SHOWN, snapshot.OTHERS_SHOWN) == (500, 100)


def test_lists_keys_and_tokens_have_the_numbers_of_the_contract() -> None:
    assert (lists.DEFAULT_LIMIT, lists.MAX_LIMIT) == (50, 500)
    assert KEY_LIFE_US == 24 * 3600 * 1_000_000
    assert auth.PAGE_LIFE_SECONDS == 12 * 3600
    assert wire.MAX_DEPTH == 64

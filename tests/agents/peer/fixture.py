"""The peer as tests use it: ``peer`` is a server of models that answers what this test tells it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.agents.peer.steering import Peer, peer_running, steering_client

__all__ = ["Peer", "peer", "peer_place", "peer_running"]


@pytest.fixture(scope="session")
def peer_place() -> Iterator[str]:
    """The peer's process, one for all tests."""
    with peer_running() as place:
        yield place


@pytest.fixture
async def peer(peer_place: str) -> AsyncIterator[Peer]:
    """The peer, with nothing told and nothing asked."""
    async with steering_client() as client:
        peer = Peer(peer_place, client)
        await peer.reset()
        yield peer

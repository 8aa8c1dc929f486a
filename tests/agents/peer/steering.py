"""The peer in a process of its own, and a handle on it: the fixture ``peer`` answers what a test scripts."""

from __future__ import annotations

import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.agents.peer.answers import Answer, to_json

ROOT = Path(__file__).parents[3]
PATIENCE_SECONDS = 30
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""A context that loads no authorities: they cost more than a test."""


def steering_client() -> httpx2.AsyncClient:
    """What a handle asks the peer by."""
    return httpx2.AsyncClient(trust_env=False, verify=NO_TLS, timeout=PATIENCE_SECONDS)


class Peer:
    """A handle on the peer's process. ``url`` is the ``base_url`` of a model."""

    def __init__(self, place: str, client: httpx2.AsyncClient) -> None:
        self.place = place
        self.url = f"{place}/v1"
        self._client = client

    async def script(self, *answers: Answer) -> None:
        """Add answers to its script."""
        await self._steer("POST", "script", json=[to_json(answer) for answer in answers])

    async def requests(self) -> list[dict[str, Any]]:
        """What it was asked: ``method``, ``path``, ``headers``, ``body`` (JSON) and ``end``.

        ``end`` is None while it answers, then ``answered``, ``cut`` (as scripted) or ``gone`` (the other side hung up).
        """
        return await self._steer("GET", "requests")

    async def until(self, **least: int) -> list[dict[str, Any]]:
        """Wait for so many ``requests``, or ``answered``, ``gone`` or ``cut`` ones; gives all.

        ``open`` is exactly how many connections there are, with the one that asks.
        """
        return await self._steer("GET", "until", params=least)

    async def reset(self) -> None:
        """Forget the script and the requests."""
        await self._steer("DELETE", "")

    async def _steer(self, method: str, what: str, **more: Any) -> list[dict[str, Any]]:
        answer = await self._client.request(method, f"{self.place}/_peer/{what}", **more)
        requests: list[dict[str, Any]] = answer.json()
        return requests


@contextmanager
def peer_running() -> Iterator[str]:
    """A peer in a process of its own; gives its address without a path. It ends with this process at the latest."""
    command = [sys.executable, "-m", "tests.agents.peer"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


@pytest.fixture(scope="session")
def peer_place() -> Iterator[str]:
    """The peer's process, one for all tests."""
    with peer_running() as place:
        yield place


@pytest.fixture
async def peer(peer_place: str) -> AsyncIterator[Peer]:
    """The peer, without a script and before any request."""
    async with steering_client() as client:
        peer = Peer(peer_place, client)
        await peer.reset()
        yield peer

"""Fixtures of the command line's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.flows.world import World
from tests.server.served import Served, served

NEEDY = """
async def worker(payload: Ask, metadata: HandlerMetadata):
    if payload.text == "bad":
        raise ValueError("no good")
    if payload.text.startswith("raise "):
        raise ValueError(payload.text)
    if payload.text == "ask":
        said = await metadata.approve({"sum": 3})
        return HandlerResponse.respond(Told(f"{said.decision} {said.comment} {said.edits}"))
    if payload.text == "hide":
        await metadata.approve({"file": "invoice\\u202efdp.exe\\u200b"})
    if payload.text == "pay":
        async def pay(key: str):
            await asyncio.sleep(60)
        return HandlerResponse.respond(Told(str(await metadata.effect("pay", pay, kind="unsafe"))))
    return HandlerResponse.respond(Told("well"))
"""


@pytest.fixture
async def hello() -> AsyncIterator[Served]:
    """The hello organism, served from memory."""
    async with served() as server:
        yield server


@pytest.fixture
async def needy(tmp_path: Path) -> AsyncIterator[Served]:
    """A worker that fails on ``bad``, needs a person's approval on ``ask``, and hangs on ``pay``."""
    retry = {"attempts": 1, "base_delay_s": 0.01, "max_delay_s": 0.02}
    async with served(World(tmp_path, NEEDY, {"worker": {"timeout_s": 0.2}}, retry=retry).config) as server:
        yield server

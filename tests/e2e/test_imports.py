"""What a server imports, and when: a large package only if it is used, and never while it starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from organism.rag.library import By
from tests.e2e.serving import serving
from tests.flows.world import World
from tests.rag.libraries import organism, texts

pytestmark = pytest.mark.e2e


def packages(said: str) -> set[str]:
    """The packages of the modules that Python names in the output as it imports them."""
    modules = (line.rpartition("|")[2].strip() for line in said.splitlines() if line.startswith("import time:"))
    return {module.partition(".")[0] for module in modules}


async def test_a_server_that_handles_messages_imports_no_vectors_and_no_http_client(tmp_path: Path) -> None:
    async with serving(tmp_path, PYTHONPROFILEIMPORTTIME="1") as server:
        async with server.client() as client:
            sent = await client.post("/inject", json={"to": "greeter", "payload": {"name": "Dan"}, "wait": 10})
            assert sent.json()["replies"]
        await server.end()
        assert server.process.stdout is not None
        found = packages(server.said + (await server.process.stdout.read()).decode())
    assert "starlette" in found
    assert not found & {"numpy", "httpx2", "openai", "anthropic"}


async def test_the_sdk_of_a_model_is_imported_before_its_first_call_and_after_the_start(tmp_path: Path) -> None:
    model = {"provider": "openai", "base_url": "http://127.0.0.1:9/v1"}
    world = World(tmp_path, "", {}, models={"m": model})
    async with serving(tmp_path / "data", config=world.config, PYTHONPROFILEIMPORTTIME="1") as server:
        assert "openai" not in packages(server.said)
        await server.until_said(" openai.")


async def test_a_server_with_a_library_imports_what_searches_before_it_serves(tmp_path: Path) -> None:
    async with organism(tmp_path) as o:
        await o.tenant.library.replace("x", texts(a="the tower stands"), None, By())
    async with serving(tmp_path, PYTHONPROFILEIMPORTTIME="1") as server:
        assert "numpy" in packages(server.said)

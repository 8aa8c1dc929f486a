"""``/v1/models``: what the models of our own say of themselves, and who sees which."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.server.served import Served, served
from tests.server.tenanted import bearer, write_tokens

CONFIG = """
organism: {name: x}
models:
  small: {provider: offline}
  large: {provider: openai, base_url: "http://127.0.0.1:9/v1", model: gpt-x, context_window: 1000}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "organism.yaml"
    path.write_text(CONFIG)
    return path


async def listed(server: Served, **more: Any) -> dict[str, Any]:
    """The models by their names."""
    answer = await server.call("GET", "//v1/models", **more)
    assert (answer.status_code, answer.json()["object"]) == (200, "list")
    return {model["id"]: model for model in answer.json()["data"]}


async def test_each_model_is_listed_as_clients_read_it_and_the_offline_one_says_what_it_is(config: Path) -> None:
    async with served(config) as server:
        found = await listed(server)
    assert [*found][:2] == ["small", "large"]
    assert found["large"] == {
        "id": "large",
        "object": "model",
        "created": found["small"]["created"],
        "owned_by": "openai",
        "context_window": 1000,
        "description": "",
    }
    assert found["small"]["owned_by"] == "offline"
    assert "stand-in without network or key" in found["small"]["description"]
    assert found["small"]["created"] > 0


async def test_a_token_sees_the_models_that_it_may_use(config: Path) -> None:
    tokens: dict[str, dict[str, Any]] = {
        "one": {"scopes": ["agents:chat"], "models": ["small"]},
        "reader": {"scopes": ["read"]},
    }
    write_tokens(config.parent, {"default": tokens})
    async with served(config) as server:
        assert list(await listed(server, headers=bearer("default", "one"))) == ["small"]
        refused = await server.call("GET", "//v1/models", headers=bearer("default", "reader"))
    assert refused.status_code == 403

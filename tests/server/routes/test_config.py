"""The configuration, the sections of agents and their schemas."""

from __future__ import annotations

import pytest

from tests.server.served import OWN, Served


async def test_the_configuration_in_force_is_shown_whole(hello: Served) -> None:
    config = await hello.get("/organism/config")
    assert list(config) == ["organism", "limits", "retry", "models", "embeddings", "tools", "fx", "listeners"]
    assert config["organism"] == {"name": "hello-world", "imports": ["handlers"], "charter": True}
    assert [listener["name"] for listener in config["listeners"]] == list(OWN)
    assert config["listeners"][0]["prompt"] == "You are a friendly greeter."


async def test_an_agents_section_is_shown_as_it_was_written(hello: Served) -> None:
    assert await hello.get("/agents/greeter/config") == {
        "name": "greeter",
        "payload_class": "handlers.hello.Greeting",
        "handler": "handlers.hello.greet",
        "description": "Greeting agent - forwards to shouter",
        "agent": True,
        "peers": ["shouter"],
        "prompt": "You are a friendly greeter.",
    }


@pytest.mark.parametrize("path", ["/organism/config", "/agents/greeter/config", "/agents/greeter/schema"])
async def test_a_configuration_that_is_known_is_not_sent_again(hello: Served, path: str) -> None:
    first = await hello.call("GET", path)
    again = await hello.call("GET", path, headers={"If-None-Match": first.headers["etag"]})
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")


async def test_a_schema_comes_in_no_other_form(hello: Served) -> None:
    answer = await hello.call("GET", "/agents/greeter/schema", headers={"Accept": "text/html"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (406, "not_acceptable")
    assert answer.json()["error"]["param"] == "headers.accept"

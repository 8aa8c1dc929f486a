"""A spent budget is reported: with 429 before any model was called, in words afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from tests.flows.spender import scripted
from tests.flows.thinking import agent, call, calls, says
from tests.flows.world import MakeWorld, World
from tests.server.served import Served, served

HELLO = {"message": "Hello?"}


def thinking(world: MakeWorld, *answers: dict[str, Any]) -> World:
    """An agent of the turn loop that may call its model once a day."""
    listeners = {"ada": agent(model="m", tools=["calculator"], budget={"day": {"calls": 1}})}
    return scripted(world, *answers, listeners=listeners, source="")


async def invoked(server: Served, *, stream: bool) -> Any:
    body = {"data": {"inputs": HELLO}, "flags": {"stream": stream}}
    return await server.call("POST", "/agents/ada/invoke", json=body)


async def injected(server: Served, **more: Any) -> Any:
    return await server.call("POST", "/inject", json={"to": "ada", "payload": HELLO, **more})


@pytest.mark.parametrize("stream", [False, True])
async def test_an_invoke_whose_budget_is_spent_is_refused_before_a_model_is_called(
    world: MakeWorld, *, stream: bool
) -> None:
    async with served(thinking(world, says("Hello.")).config, None) as server:
        assert (await invoked(server, stream=False)).status_code == 200
        answer = await invoked(server, stream=stream)
        assert (answer.status_code, answer.json()["error"]["code"]) == (429, "budget_exhausted")
        assert "ada today may use 1 calls" in answer.json()["error"]["message"]


async def test_an_injection_that_waits_says_so_too(world: MakeWorld) -> None:
    async with served(thinking(world, says("Hello.")).config, None) as server:
        assert (await injected(server, wait=10)).status_code == 200
        answer = await injected(server, wait=10)
        assert (answer.status_code, answer.json()["error"]["code"]) == (429, "budget_exhausted")
        assert (await injected(server)).status_code == 202


SUM = call("calculator", expression="2*21")
WORDS = "Stopped before the answer was finished: ada today may use 1 calls"


async def test_a_turn_that_a_budget_ends_says_so_in_words(world: MakeWorld) -> None:
    async with served(thinking(world, calls(SUM), says("Never said.")).config, None) as server:
        outputs = (await invoked(server, stream=False)).json()["data"]["outputs"]
        assert outputs["stop_reason"] == "budget"
        assert outputs["messages"][-1]["content"].startswith(WORDS)

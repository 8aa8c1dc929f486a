"""What a request says of the run in which it was made (S5)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2
import msgspec
import orjson
import pytest
import pytest_asyncio

from organism.events.vocabulary import MessageSent
from organism.model.ids import CONSOLE
from tests.server.served import TOKEN, Served, served

THINKER = {"name": "thinker", "description": "Thinks", "agent": True, "prompt": "Be brief.", "model": "m"}
CONFIG = {
    "organism": {"name": "called", "imports": ["asks"]},
    "models": {"m": {"provider": "offline"}},
    "listeners": [{**THINKER, "payload_class": "asks.Ask", "tools": ["calculator"]}],
}
ASKS = """
from dataclasses import dataclass

@dataclass
class Ask:
    message: str
"""
SENT = {"to": "thinker", "payload": {"message": "Hello!"}}
PATHS = {
    "/api/v1/inject": SENT,
    "/api/v1/invoke": {"agent": "thinker", "data": {"inputs": {"payload": SENT["payload"]}}},
    "/v1/tools/execute": {"name": "calculator", "arguments": {"expression": "1+1"}},
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_agent(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    folder = tmp_path_factory.mktemp("called")
    (folder / "asks.py").write_text(ASKS)
    (folder / "organism.yaml").write_bytes(orjson.dumps(CONFIG))  # JSON is YAML
    async with served(folder / "organism.yaml") as server:
        yield server


async def post(server: Served, path: str, **headers: str) -> httpx2.Response:
    names = {name.replace("_", "-"): said for name, said in headers.items()}
    return await server.client.post(server.url + path, json=PATHS[path], headers={**server.bearer, **names})


async def sent(server: Served) -> MessageSent:
    """What the log says of the newest injection."""
    events = [record.event for record in await server.log.read(limit=100_000)]
    return next(event for event in reversed(events) if isinstance(event, MessageSent) and event.sender == CONSOLE)


async def sent_messages(server: Served) -> int:
    """How many messages there are."""
    count: int = (await server.get("/organism"))["total_messages"]
    return count


@pytest.mark.parametrize("path", PATHS)
async def test_depth_and_parent_are_kept_with_the_message(shared_agent: Served, path: str) -> None:
    answer = await post(shared_agent, path, SPASS_Caller_Depth="2", SPASS_Parent_Request_Id="req-of-theirs")
    assert answer.status_code < 300, answer.text
    event = await sent(shared_agent)
    assert (event.caller_depth, event.caller_request) == (2, "req-of-theirs")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("depth", ["x", "-1", "1.5", "", "2 2", "99999999999999999999", "٣"])
async def test_a_depth_that_is_no_number_is_refused_and_nothing_is_sent(
    shared_agent: Served, path: str, depth: str
) -> None:
    before = await sent_messages(shared_agent)
    raw = {**shared_agent.bearer, "SPASS-Caller-Depth": depth.encode()}
    answer = await shared_agent.client.post(shared_agent.url + path, json=PATHS[path], headers=raw)  # type: ignore[arg-type] # bytes
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "invalid_field", "headers.spass-caller-depth")
    assert await sent_messages(shared_agent) == before


@pytest.mark.parametrize("parent", ["", "a b", "x" * 256, TOKEN])
async def test_a_parent_that_is_no_id_is_refused(shared_agent: Served, parent: str) -> None:
    answer = await post(shared_agent, "/api/v1/inject", SPASS_Parent_Request_Id=parent)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, "headers.spass-parent-request-id")
    assert parent not in answer.text or len(parent) < 8


async def test_who_lies_too_deep_gets_no_model(shared_agent: Served) -> None:
    answers = [await post(shared_agent, "/api/v1/invoke", SPASS_Caller_Depth=depth) for depth in ("2", "3")]
    assert [answer.status_code for answer in answers] == [200, 400]
    assert answers[1].json()["error"]["code"] == "recursion_depth_exceeded"


async def test_costs_and_threads_in_headers_are_read_by_nobody(shared_agent: Served) -> None:
    shown = {"SPASS_Cost": "99", "x_litellm_response_cost": "99", "SPASS_Thread_Id": "thr-theirs"}
    head = shared_agent.log.head
    answer = await post(shared_agent, "/api/v1/invoke", **shown)
    events = msgspec.json.encode([record.event for record in await shared_agent.log.read(head, limit=1000)])
    assert answer.json()["thread_id"] != "thr-theirs"
    assert b"theirs" not in events
    assert b'"99"' not in events

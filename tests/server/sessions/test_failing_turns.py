"""Turns that cannot be answered: refused before they are kept, or ended with their reason, in batches and streams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from organism.model.completion import WITHHELD
from tests.flows.thinking import MODEL, Say, agent, call, calls, says
from tests.flows.world import World
from tests.server.served import served
from tests.server.sessions.talking import User, error_of, events_of
from tests.server.tenanted import write_tokens

SOURCE = """
from handlers.summarizer import Summarize, summarize
async def looker(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told("found it"))

async def clumsy(payload: Prompt, metadata: HandlerMetadata):
    await metadata.emit("tool_call", {"id": "a", "name": "looker", "input": {}})
    raise ValueError("/secret/path")
"""
SUMMARIZER = {"summarizer": {"handler": "summarize", "payload_class": "Summarize", "model": MODEL}}
LOOK = calls(call("looker", text="it"))
FAULT = says("", fault={"kind": "unauthorized", "message": "The model is out of order."})
WINDOW = 2000


@asynccontextmanager
async def talking(
    folder: Path, *script: Say, window: int = WINDOW, more: Mapping[str, Any] | None = None, **limits: int
) -> AsyncIterator[User]:
    model = {"provider": "scripted", "script": "script.yaml", "context_window": window}
    listeners = {
        "thinker": agent(tools=["looker"]),
        "looker": {},
        "clumsy": {"payload_class": "Prompt", "invoke": ["batch", "stream"]},
        **(more or {}),
    }
    (folder / "script.yaml").write_bytes(orjson.dumps({"answers": list(script)}))
    source = "from organism import Prompt\n" + SOURCE
    made = World(folder, source, listeners, retry={"attempts": 1}, models={MODEL: model}, limits=limits)
    write_tokens(made.folder, {"default": {"talker": {"scopes": ["agents:chat"], "rate": 1000}}})
    async with served(made.config) as server:
        yield User(server)


async def test_a_message_that_is_too_long_for_the_model_is_refused_with_both_figures(tmp_path: Path) -> None:
    async with talking(tmp_path, {"text": "Well."}) as dan:
        session, long = await dan.begin("thinker"), "x" * 4 * WINDOW
        said = await dan.say(session, long, "thinker", Idempotency_Key="k")
        inputs = {"data": {"inputs": {"message": long}}, "session_id": session}
        invoked = await dan.call("POST", "/agents/thinker/invoke", inputs)
        streamed = await dan.say(session, long, "thinker", stream=True)
        assert (await dan.call("GET", f"thinker/sessions/{session}/messages")).json()["messages"] == []
        after = await dan.say(session, "again", "thinker")
    assert error_of(said) == error_of(streamed) == (413, "message_too_large", "/message")
    assert error_of(invoked) == (413, "message_too_large", "/data/inputs/message")
    assert all(figure in said.json()["error"]["message"] for figure in (f"{WINDOW:,}", "1,488"))
    assert (after.status_code, after.json()["reply"]) == (200, "Well.")


async def test_a_session_outgrows_what_a_thread_may_use_and_goes_on(tmp_path: Path) -> None:
    async with talking(tmp_path, {"text": "Well."}, window=100_000, max_tokens_per_thread=4000) as dan:
        session = await dan.begin("thinker", compact_strategy="off")
        answers = [await dan.say(session, f"{number}" * 4000, "thinker") for number in range(6)]
    assert [answer.status_code for answer in answers] == [200] * 6


@pytest.mark.parametrize(
    ("agent", "script", "code", "message"),
    [
        ("thinker", [LOOK, FAULT], "upstream_error", "The model is out of order."),
        ("clumsy", [], "handling_failed", "The handling failed; the operator finds it among the dead letters."),
    ],
)
async def test_a_turn_that_fails_after_a_call_says_why_in_batches_and_streams(
    tmp_path: Path, agent: str, script: list[Say], code: str, message: str
) -> None:
    async with talking(tmp_path, *script * 4) as dan:
        session = await dan.begin(agent)
        talk = (await dan.say(session, "Look.", agent)).json()
        chat = (await dan.call("POST", f"{agent}/chat", {"message": "Look."})).json()
        inputs = {"data": {"inputs": {"message": "Look."}}}
        invoked = (await dan.call("POST", f"/agents/{agent}/invoke", inputs)).json()["data"]["outputs"]
        stream = events_of((await dan.say(session, "Look.", agent, stream=True)).text)
    for outcome in (talk, chat, invoked):
        assert outcome["stop_reason"] == "error"
        assert outcome["error"]["code"] == code
        assert message in outcome["error"]["message"]
        assert outcome["messages"][0]["tool_name"] == "looker"
    (error,) = [entry["data"] for _, entry in stream if entry["type"] == "error"]
    assert talk["error"].items() <= error.items()
    assert [entry["type"] for _, entry in stream][-2:] == ["error", "done"]


async def test_a_summarizer_that_fails_is_a_bad_gateway_that_says_why(tmp_path: Path) -> None:
    broken = {"when": {"system": "You summarise"}, "fault": {"kind": "unauthorized", "message": "Out of order."}}
    async with talking(tmp_path, broken, {"text": "Well."}) as dan:
        session = await dan.begin("thinker", compact_keep_last_n=0)
        assert (await dan.say(session, "one", "thinker")).status_code == 200
        answer = await dan.call("POST", f"thinker/sessions/{session}/compact")
        again = await dan.say(session, "two", "thinker")
    assert error_of(answer)[:2] == (502, "upstream_error")
    assert "Out of order." in answer.json()["error"]["message"]
    assert again.status_code == 200


@pytest.mark.parametrize(("more", "of_calls"), [({}, "tool_rounds"), (SUMMARIZER, "tool_calls")])
@pytest.mark.parametrize("finish", [*sorted(WITHHELD), "length", ""])
async def test_a_summary_that_is_not_whole_takes_the_place_of_no_history(
    tmp_path: Path, finish: str, more: Mapping[str, Any], of_calls: str
) -> None:
    ends = {"finish": finish} if finish else {"calls": [call("looker", text="it")]}
    half = {"when": {"system": "You summarise"}, "text": "Half of", **ends}
    async with talking(tmp_path, half, {"text": "Well."}, more=more) as dan:
        session = await dan.begin("thinker", compact_keep_last_n=0)
        await dan.say(session, "one", "thinker")
        answer = await dan.call("POST", f"thinker/sessions/{session}/compact")
    assert error_of(answer)[:2] == (502, "upstream_error")
    assert f"its model gave no whole summary ({finish or of_calls})." in answer.json()["error"]["message"]

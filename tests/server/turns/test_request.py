"""What an invoke asks for, by headers and by body: the body wins, the unknown is absent."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from organism.agents.invoke import Flags
from organism.errors import InvalidField, InvalidRequest, MissingField, UnknownField
from organism.model.agent import Said
from organism.server.surfaces.requests import parse_request

HELLO = {"data": {"inputs": {"message": "hello"}}}

ACCEPTS = {
    "": None,
    "*/*": None,
    "text/html": None,
    "application/json": False,
    "application/x-ndjson": True,
    "application/jsonl": True,
    "text/event-stream": True,
    "application/json;q=0.5, text/event-stream": True,
    "text/event-stream;q=0, application/json": False,
    "text/event-stream;q=much, application/json;q=0.1": False,
    "text/event-stream, application/json": True,
    "application/json, text/event-stream": False,
}


def flags_of(headers: dict[str, str], **said: bool | None) -> Flags:
    return parse_request("writer", {**HELLO, "flags": said}, headers).flags


def inputs(**given: Any) -> Any:
    return {"data": {"inputs": given}}


@pytest.mark.parametrize(("accept", "stream"), ACCEPTS.items())
def test_the_accept_header_says_whether_to_stream(*, accept: str, stream: bool | None) -> None:
    assert flags_of({"accept": accept}).stream is stream


@pytest.mark.parametrize(
    ("name", "value", "flags"),
    [
        ("x-ag-messages-transcript", "last", Flags(trim=True)),
        ("x-ag-messages-transcript", "full", Flags(trim=False)),
        ("x-ag-messages-transcript", "most", Flags()),
        ("x-ag-session-control", "force", Flags(force=True)),
        ("x-ag-session-control", "ask", Flags()),
        ("x-ag-workflow-embeds", "resolve", Flags()),
        ("x-ag-workflow-embeds", "never", Flags()),
        ("x-ag-messages-history", "last", Flags()),
    ],
)
def test_a_header_is_sugar_for_a_flag_and_an_unknown_value_is_none(name: str, value: str, flags: Flags) -> None:
    assert flags_of({name: value}) == flags


HEADERS = {"accept": "text/event-stream", "x-ag-messages-transcript": "last", "x-ag-session-control": "force"}


def test_a_flag_of_the_body_wins_over_its_header_and_null_is_not_said() -> None:
    for flags in product((None, False, True), repeat=4):
        found = flags_of(HEADERS, **dict(zip(("stream", "trim", "force", "resolve"), flags, strict=True)))
        assert found == Flags(*(True if flag is None else flag for flag in flags[:3])), flags


@pytest.mark.parametrize(
    ("accept", "form", "kind"),
    [
        ("application/jsonl", "", "application/jsonl"),
        ("text/event-stream", "agenta", "text/event-stream"),
        ("", "", "application/x-ndjson"),
        ("application/json", "", "application/x-ndjson"),
        ("application/x-ndjson", "vercel", "text/event-stream"),
        ("application/x-ndjson", "other", "application/x-ndjson"),
    ],
)
def test_a_stream_comes_as_it_is_accepted_and_the_ui_stream_as_events(accept: str, form: str, kind: str) -> None:
    found = parse_request(
        "writer", {**HELLO, "flags": {"stream": True}}, {"accept": accept, "x-ag-messages-format": form}
    )
    assert (found.kind, found.is_ui) == (kind, form == "vercel")


def test_the_agent_stands_in_the_path_or_in_the_body() -> None:
    assert parse_request("writer", {**HELLO, "agent": "writer"}, {}).agent == "writer"
    assert parse_request(None, {**HELLO, "agent": "writer"}, {}).agent == "writer"
    with pytest.raises(MissingField) as missing:
        parse_request(None, HELLO, {})
    with pytest.raises(InvalidField) as other:
        parse_request("writer", {**HELLO, "agent": "reader"}, {})
    assert (missing.value.param, other.value.param) == ("/agent", "/agent")


def test_a_talk_is_its_last_message_and_what_was_said_before() -> None:
    talk = [
        {"role": "user", "content": "My sport is tennis."},
        {"role": "assistant", "content": ""},
        {"role": "tool", "content": "noted", "tool_call_id": "t1", "is_error": False},
        {"role": "assistant", "content": [{"type": "text", "text": "No"}, {"type": "text", "text": "ted."}]},
        {"id": "u2", "role": "user", "parts": [{"type": "text", "text": "Which?"}, {"type": "file", "url": "x"}]},
        {"role": "assistant", "content": "Tennis, since"},
    ]
    found = parse_request("writer", inputs(messages=talk), {})
    assert (found.message, found.payload) == ("Which?", None)
    messages = [("user", "My sport is tennis."), ("assistant", "Noted."), ("assistant", "Tennis, since")]
    assert [(each.role, each.content) for each in found.history] == messages
    given = parse_request("greeter", inputs(payload={"name": "Dan"}), {})
    assert (given.payload, given.place) == ({"name": "Dan"}, "/data/inputs/payload")


CHAT = {
    "id": "chat-1",
    "messages": [
        {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Hi!"}]},
        {
            "id": "a1",
            "role": "assistant",
            "metadata": {"stopReason": "stop"},
            "parts": [
                {"type": "step-start"},
                {"type": "reasoning", "text": "hm", "state": "done"},
                {"type": "tool-search", "toolCallId": "t1", "state": "output-available", "input": {}, "output": {}},
                {"type": "text", "text": "Hello.", "state": "done"},
            ],
        },
        {"id": "u2", "role": "user", "parts": [{"type": "text", "text": "Which?"}]},
    ],
    "trigger": "submit-message",
}
"""What the AI SDK's ``DefaultChatTransport`` posts."""
UI = {"x-ag-messages-format": "vercel", "accept": "*/*"}


@pytest.mark.parametrize("more", [{}, {"trigger": "regenerate-message", "messageId": "a2"}, {"theme": "dark"}])
def test_the_body_of_the_ai_sdk_is_a_talk_that_streams(more: dict[str, Any]) -> None:
    found = parse_request("writer", {**CHAT, **more}, UI)
    assert (found.message, found.history) == ("Which?", (Said("user", "Hi!"), Said("assistant", "Hello.")))
    assert (found.agent, found.kind, found.flags, found.place) == (
        "writer",
        "text/event-stream",
        Flags(stream=True),
        "/messages",
    )


def test_a_page_of_the_ai_sdk_may_name_agent_and_flags_and_accept_a_batch() -> None:
    assert parse_request(None, {**CHAT, "agent": "writer"}, UI).agent == "writer"
    assert parse_request("writer", {**CHAT, "flags": {"stream": False}}, UI).flags == Flags(stream=False)
    assert parse_request("writer", CHAT, {**UI, "accept": "application/json"}).flags == Flags(stream=False)
    with pytest.raises(MissingField) as missing:
        parse_request(None, CHAT, UI)
    with pytest.raises(InvalidRequest) as without_header:
        parse_request("writer", CHAT, {})
    with pytest.raises(InvalidField) as system:
        parse_request("writer", {**CHAT, "messages": [{"id": "s", "role": "system", "parts": []}]}, UI)
    params = [error.value.param for error in (missing, without_header, system)]
    assert params == ["/agent", "/data", "/messages/0/role"]


@pytest.mark.parametrize(
    ("body", "kind", "param"),
    [
        ({}, MissingField, "/data"),
        ({"data": {}}, MissingField, "/data/inputs"),
        (inputs(), MissingField, "/data/inputs"),
        (inputs(message="a", payload={}), InvalidField, "/data/inputs/message"),
        (inputs(messages=[]), InvalidField, "/data/inputs/messages"),
        (inputs(messages=[{"role": "assistant", "content": "a"}]), InvalidField, "/data/inputs/messages"),
        (inputs(messages=[{"role": "system", "content": "a"}]), InvalidField, "/data/inputs/messages/0/role"),
        (inputs(message=7), InvalidField, "/data/inputs/message"),
        (inputs(payload=[1]), InvalidField, "/data/inputs/payload"),
        (inputs(messge="a"), UnknownField, "/data/inputs/messge"),
        ({**HELLO, "flags": {"stream": "yes"}}, InvalidField, "/flags/stream"),
        ({**HELLO, "flags": {"history": True}}, UnknownField, "/flags/history"),
        ({**HELLO, "sesion": "x"}, UnknownField, "/sesion"),
        ([], InvalidField, None),
    ],
)
def test_what_does_not_fit_is_refused_by_its_name(body: Any, kind: type[InvalidRequest], param: str | None) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_request("writer", body, {})
    assert isinstance(refused.value, kind)
    assert (refused.value.param or None) == param

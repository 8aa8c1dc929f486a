"""``/v1/tools`` and ``/v1/tools/execute``."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import httpx2
import jsonschema_rs
import pytest

from organism.config.settings import ShippedTool
from organism.events.record import Record
from organism.events.vocabulary import ApprovalRequested, Event, MessageStarted
from organism.log.log import EventFilter
from organism.model.tool import ToolErrorCode
from organism.server.http.connections import Timeouts
from organism.server.surfaces.tool_calls import REFUSALS
from organism.tools.toolbox import shipped_scopes
from tests.flows.world import MakeWorld, World
from tests.server.served import Served, patience, served
from tests.server.tenanted import bearer, hello_with, write_tokens

ROUGH = Path(__file__).parents[2] / "tools" / "mcp" / "rough.py"
SHIPPED = [
    "calculator",
    "current_datetime",
    "wikipedia_search",
    "wikipedia_summary",
    "key_value_get",
    "key_value_set",
    "key_value_list",
    "key_value_delete",
]
READING = ["rag_query", "rag_index_list", "rag_index_describe", "rag_doc_list", "rag_doc_get"]
"""Those that need `rag:read` besides."""
WRITING = ["rag_index_create", "rag_doc_append", "rag_doc_patch", "rag_doc_delete", "rag_index_delete"]
"""Those that need `rag:write` besides."""
LIBRARY = [*READING, *WRITING]
LISTED = [*SHIPPED[:4], *LIBRARY[:2], *SHIPPED[4:], *LIBRARY[2:]]
"""In the hello organism: first those that its agents name."""
SOURCE = """
from organism import ToolError

async def helper(payload: Ask, metadata: HandlerMetadata):
    \"\"\"Not the docstring of the payload.\"\"\"
    match payload.text:
        case "raise":
            raise ValueError("a reason for operators alone")
        case "nothing":
            return None
        case "wait":
            await gate("helper")
        case "many":
            return [HandlerResponse.respond(Told("one")), HandlerResponse.respond(Told("two"))]
        case code if code.startswith("!"):
            return HandlerResponse.respond(ToolError(code[1:], f"it is {code[1:]}"))
    return HandlerResponse.respond(Told("told " + payload.text))

async def agent(payload: Ask, metadata: HandlerMetadata): ...
async def lonely(payload: Ask, metadata: HandlerMetadata): ...
"""
LISTENERS: dict[str, dict[str, Any]] = {
    "agent": {"tools": ["helper", "calculator"]},
    "helper": {"approval": False, "brings_outside_text": True},
    "lonely": {},
}
RETRY = {"attempts": 1}


async def execute(server: Served, name: str, arguments: Any = None, **more: Any) -> httpx2.Response:
    body = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
    return await server.call("POST", "//v1/tools/execute", json=body, **more)


def refusal_of(answer: httpx2.Response) -> tuple[int, str, str | None]:
    """A refusal: its status, code and place."""
    error = answer.json()["error"]
    return answer.status_code, error["code"], error["param"]


# ── GET /v1/tools ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_shipped_tools_that_are_on_are_listed_as_models_take_them(hello: Served) -> None:
    reply = await hello.get("//v1/tools")
    assert reply["object"] == "list"
    assert [tool["function"]["name"] for tool in reply["data"]] == LISTED
    calculator = reply["data"][0]
    assert (calculator["type"], calculator["brings_outside_text"]) == ("function", False)
    assert (calculator["approval"], calculator["confirm"]) == (False, False)
    assert calculator["function"]["description"].startswith("Computes an arithmetic expression exactly.")
    parameters = calculator["function"]["parameters"]
    assert (parameters["required"], parameters["additionalProperties"]) == (["expression"], False)
    assert parameters["properties"]["expression"]["maxLength"] == 1000


async def test_each_tool_says_whether_it_brings_text_of_strangers(tmp_path: Path) -> None:
    config = tmp_path / "organism.yaml"
    config.write_text("organism: {name: x}\ntools: {http_fetch: {hosts: [a.example]}}\n")
    async with served(config) as server:
        data = (await server.get("//v1/tools"))["data"]
    bringing = {tool["function"]["name"] for tool in data if tool["brings_outside_text"]}
    assert bringing == {
        *("wikipedia_search", "wikipedia_summary", "http_fetch"),
        *("rag_query", "rag_doc_list", "rag_doc_get"),
    }


async def test_every_listener_that_an_agent_names_is_one_and_no_other(world: MakeWorld) -> None:
    async with served(world(SOURCE, LISTENERS).config) as server:
        data = (await server.get("//v1/tools"))["data"]
        names = [tool["function"]["name"] for tool in data]
        assert sorted(names) == sorted([*SHIPPED, *LIBRARY, "helper"])
        helper = next(tool for tool in data if tool["function"]["name"] == "helper")
        assert (helper["function"]["description"], helper["brings_outside_text"]) == ("Plays helper", True)
        assert refusal_of(await execute(server, "lonely", {})) == (404, "not_found", "/name")


async def test_a_token_that_names_its_tools_lists_and_executes_no_other(tmp_path: Path) -> None:
    may = {"scopes": ["tools:execute", "inject"], "tools": ["calculator"]}
    async with served(hello_with(tmp_path, {"default": {"sums": may}})) as server:
        headers = bearer("default", "sums")
        listed = (await server.get("//v1/tools", headers=headers))["data"]
        assert [tool["function"]["name"] for tool in listed] == ["calculator"]
        assert (await execute(server, "calculator", {"expression": "1+1"}, headers=headers)).status_code == 200
        refused = await execute(server, "current_datetime", {}, headers=headers)
        assert refusal_of(refused) == (403, "forbidden", None)


PURE, IDEMPOTENT, UNSAFE = (True, False, True), (False, True, True), (False, True, False)
"""What is read only, destructive, idempotent."""


async def test_each_tool_says_what_a_call_does(world: MakeWorld, tmp_path: Path) -> None:
    command = [sys.executable, "-S", str(ROUGH), str(tmp_path / "diary")]
    made = world(SOURCE, LISTENERS, tools={"mcp": {"rough": {"command": command}}})
    async with served(made.config) as server:
        data = (await server.get("//v1/tools"))["data"]
    hints = {each["function"]["name"]: (each["read_only"], each["destructive"], each["idempotent"]) for each in data}
    reading = [
        "calculator",
        "current_datetime",
        "wikipedia_search",
        "wikipedia_summary",
        "key_value_get",
        "key_value_list",
    ]
    assert {name for name, said in hints.items() if said == PURE} == {*reading, *READING}
    assert {name for name, said in hints.items() if said == IDEMPOTENT} >= {
        "key_value_set",
        "key_value_delete",
        *WRITING,
    }
    assert (hints["helper"], hints["rough__do"]) == (UNSAFE, UNSAFE)


async def test_each_tool_gives_the_schema_of_its_result(hello: Served) -> None:
    data = (await hello.get("//v1/tools"))["data"]
    schemas = {each["function"]["name"]: each["result"] for each in data}
    calls = {
        "calculator": {"expression": "1/3"},
        "current_datetime": {},
        "key_value_set": {"key": "k", "value": "v"},
        "key_value_get": {"key": "k"},
        "key_value_list": {},
        "key_value_delete": {"key": "k"},
        "rag_index_list": {},
        "rag_index_create": {"index_id": "a", "documents": [{"id": "d1", "text": "x", "metadata": {"a": [1]}}]},
    }
    for name, arguments in calls.items():
        jsonschema_rs.validate(schemas[name], (await execute(hello, name, arguments)).json()["result"])
        assert not jsonschema_rs.is_valid(schemas[name], {"made": "up"})
    assert all(schema["type"] == "object" for schema in schemas.values())


# ── POST /v1/tools/execute ───────────────────────────────────────────────────────────────────────────────────────────


async def test_a_call_gives_the_result_and_is_a_thread_like_any_other(hello: Served) -> None:
    answer = await execute(hello, "calculator", {"expression": "17 % of 2340"})
    assert (answer.status_code, answer.json()) == (200, {"result": {"value": "397.8", "exact": True, "fraction": ""}})
    (thread,) = (await hello.get("/threads"))["threads"]
    assert (thread["participants"], thread["status"]) == (["console", "calculator"], "completed")
    messages = (await hello.get(f"/threads/{thread['id']}/messages"))["messages"]
    assert [message["payload_type"] for message in messages] == ["Calculator", "Calculated"]


async def test_a_listener_of_ones_own_is_called_in_the_same_way(world: MakeWorld) -> None:
    async with served(world(SOURCE, LISTENERS).config) as server:
        assert (await execute(server, "helper", {"text": "x"})).json() == {"result": {"text": "told x"}}
        assert (await execute(server, "helper", {"text": "many"})).json() == {"result": {"text": "one"}}
        assert (await execute(server, "helper", {"text": "nothing"})).json() == {"result": None}


WRONG_CALLS: list[tuple[Any, tuple[int, str, str | None]]] = [
    ({}, (400, "missing_field", "/name")),
    ({"name": 5}, (400, "invalid_field", "/name")),
    ({"name": "calculator", "arguments": "{}"}, (400, "invalid_field", "/arguments")),
    ({"name": "calculator", "arguments": None}, (400, "invalid_payload", "/arguments/expression")),
    ({"name": "calculator", "arguments": []}, (400, "invalid_field", "/arguments")),
    ({"name": "calculator", "arguments": {}}, (400, "invalid_payload", "/arguments/expression")),
    ({"name": "calculator", "arguments": {"expression": 5}}, (400, "invalid_payload", "/arguments/expression")),
    (
        {"name": "calculator", "arguments": {"expression": "1", "x": 1}},
        (400, "invalid_payload", "/arguments/x"),
    ),
    (
        {"name": "calculator", "arguments": {"expression": "1" * 1001}},
        (400, "invalid_payload", "/arguments/expression"),
    ),
    (
        {"name": "calculator", "arguments": {"expression": "\x00"}},
        (400, "invalid_payload", "/arguments/expression"),
    ),
    ({"name": "calculator", "arguments": {"expression": "1/0"}}, (400, "invalid_field", None)),
    ({"name": "calculator", "tool": "x"}, (400, "unknown_field", "/tool")),
    ({"name": "nobody"}, (404, "not_found", "/name")),
    ({"name": "http_fetch", "arguments": {"url": "https://a.example/"}}, (404, "not_found", "/name")),
    ({"name": "greeter", "arguments": {"name": "Dan"}}, (404, "not_found", "/name")),
    ({"name": "console"}, (404, "not_found", "/name")),
    ({"name": "system.todo"}, (404, "not_found", "/name")),
    ({"name": "current_datetime", "arguments": {"zone": "Mars/Base"}}, (404, "not_found", None)),
]


async def test_what_is_wrong_with_a_call_is_reported_at_its_place(hello: Served) -> None:
    for body, refusal in WRONG_CALLS:
        assert (body, refusal_of(await hello.call("POST", "//v1/tools/execute", json=body))) == (body, refusal)


async def test_a_tool_s_own_error_comes_in_the_one_shape(world: MakeWorld) -> None:
    async with served(world(SOURCE, LISTENERS).config) as server:
        for code in REFUSALS:
            answer = await execute(server, "helper", {"text": f"!{code}"})
            refusal = REFUSALS[code]
            assert (answer.status_code, answer.json()["error"]["code"]) == (refusal.status, refusal.code)
            assert answer.json()["error"]["message"] == f"it is {code}"


@pytest.mark.parametrize("code", ["upstream_error", "upstream_timeout"])
async def test_what_a_tool_could_not_do_is_no_bad_gateway(world: MakeWorld, code: str) -> None:
    async with served(world(SOURCE, LISTENERS).config) as server:
        assert refusal_of(await execute(server, "helper", {"text": f"!{code}"})) == (422, "tool_error", None)


def test_every_code_that_a_tool_may_answer_with_is_known_here() -> None:
    assert set(REFUSALS) == set(get_args(ToolErrorCode))


async def test_a_handler_that_raises_is_reported_without_its_reason(world: MakeWorld) -> None:
    async with served(world(SOURCE, LISTENERS, retry=RETRY).config) as server:
        answer = await execute(server, "helper", {"text": "raise"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (500, "handling_failed")
        assert "operators" not in answer.text
        (letter,) = (await server.get("/dead-letters"))["dead_letters"]
        assert letter["thread_id"] in answer.json()["error"]["message"]


async def test_a_call_whose_thread_is_killed_says_so(world: MakeWorld) -> None:
    async with served(world(SOURCE, LISTENERS).config) as server:
        call = asyncio.ensure_future(execute(server, "helper", {"text": "wait"}))
        thread = (await first(server, MessageStarted)).thread
        await server.call("POST", f"/threads/{thread}/kill")
        assert refusal_of(await call) == (409, "thread_killed", None)


async def test_a_call_that_takes_longer_than_a_minute_goes_on_and_is_reported_by_its_ids(
    world: MakeWorld,
) -> None:
    assert Timeouts().tool_seconds == 60
    async with served(world(SOURCE, LISTENERS).config, settings=patience(tool_seconds=0.05)) as server:
        key = {"Idempotency-Key": "once"}
        first = await execute(server, "helper", {"text": "wait"}, headers=key)
        assert (first.status_code, set(first.json())) == (202, {"thread_id", "message_id", "position"})
        server.organism.settings.listeners[1].handler.__globals__["GATES"]["helper"].set()  # type: ignore[union-attr]  # it has one
        while (second := await execute(server, "helper", {"text": "wait"}, headers=key)).status_code == 202:
            pass
        assert (second.status_code, second.json()) == (200, {"result": {"text": "told wait"}})
        assert (await server.get("/threads"))["total"] == 1


async def test_the_same_key_gives_the_same_answer_though_the_tool_is_gone(world: MakeWorld) -> None:
    play = world(SOURCE, LISTENERS)
    async with served(play.config) as server:
        key = {"Idempotency-Key": "once"}
        first = await execute(server, "helper", {"text": "x"}, headers=key)
        play.write(SOURCE, {"lonely": {}})
        assert (await server.call("POST", "/organism/reload")).status_code == 200
        again = await execute(server, "helper", {"text": "x"}, headers=key)
        assert (again.status_code, again.content) == (first.status_code, first.content)
        assert refusal_of(await execute(server, "helper", {"text": "x"})) == (404, "not_found", "/name")


async def test_the_key_of_another_principal_opens_no_tool_that_is_there_or_gone(world: MakeWorld) -> None:
    play = world(SOURCE, LISTENERS)
    both = {"one": ["tools:execute", "inject:agent:helper"], "other": ["tools:execute"]}
    write_tokens(play.config.parent, {"default": both})
    async with served(play.config) as server:

        async def asked(who: str) -> httpx2.Response:
            headers = {"Idempotency-Key": "once", **bearer("default", who)}
            return await execute(server, "helper", {"text": "x"}, headers=headers)

        first = await asked("one")
        assert first.status_code == 200, first.text
        for _ in range(2):
            assert refusal_of(await asked("other"))[:2] == (403, "forbidden")
            assert (await asked("one")).content == first.content
            play.write(SOURCE, {"lonely": {}})
            assert (await server.call("POST", "/organism/reload")).status_code == 200


async def test_a_tool_that_demands_consent_answers_once_a_person_has_said_the_word(world: MakeWorld) -> None:
    listeners = {**LISTENERS, "helper": {"approval": True}}
    async with served(world(SOURCE, listeners).config) as server:
        position = 0
        for decision, status in (("approve", 200), ("reject", 403)):
            call = asyncio.ensure_future(execute(server, "helper", {"text": decision}))
            question = await first(server, ApprovalRequested, position)
            path = f"/approvals/{question.event.approval}/resolve"
            await server.call("POST", path, json={"decision": decision})
            assert (await call).status_code == status
            position = question.position


async def first(server: Served, kind: type[Event], after: int = 0) -> Record[Any]:
    """The first event of this type after a position."""
    async for records in server.log.follow(after, EventFilter(types=(kind,))):
        if records:
            return records[0]
    raise LookupError("the log closed")


# ── who may ──────────────────────────────────────────────────────────────────────────────────────────────────────────

GRANTS: Mapping[str, list[str]] = {
    "all-tools": ["tools:execute"],
    "one-tool": ["tools:execute:tool:calculator"],
    "another-tool": ["tools:execute:tool:other"],
    "injector": ["inject"],
    "tools-and-helper": ["tools:execute", "inject:agent:helper"],
    "boss": ["admin"],
    "reader": ["read"],
    "scholar": ["tools:execute", "rag:read"],
}


@pytest.mark.parametrize(
    ("who", "calculator", "helper", "listed"),
    [
        ("all-tools", 200, 403, SHIPPED),
        ("one-tool", 200, 403, ["calculator"]),
        ("another-tool", 403, 403, []),
        ("injector", 403, 403, None),
        ("tools-and-helper", 200, 200, ["helper", *SHIPPED]),
        ("boss", 200, 200, ["helper", *SHIPPED, *LIBRARY]),
        ("scholar", 200, 403, [*SHIPPED, *READING]),
        ("reader", 403, 403, None),
    ],
)
async def test_a_token_calls_and_lists_what_its_scopes_and_the_tool_allow(
    world: MakeWorld, who: str, calculator: int, helper: int, listed: list[str] | None
) -> None:
    play = world(SOURCE, LISTENERS)
    write_tokens(play.folder, {"acme": GRANTS})
    async with served(play.config) as server:
        headers = bearer("acme", who)
        assert (await execute(server, "calculator", {"expression": "1"}, headers=headers)).status_code == calculator
        assert (await execute(server, "helper", {"text": "x"}, headers=headers)).status_code == helper
        listing = await server.call("GET", "//v1/tools", headers=headers)
        assert listing.status_code == (403 if listed is None else 200)
        if listed is not None:
            assert sorted(tool["function"]["name"] for tool in listing.json()["data"]) == sorted(listed)
        assert (await server.call("POST", "//v1/tools/execute", json={"name": "calculator"})).status_code == 400


def test_each_shipped_tool_names_a_scope() -> None:
    scopes = shipped_scopes()
    assert scopes.keys() == {*SHIPPED, *LIBRARY, "http_fetch"}
    assert {*scopes.values()} == {"tools:execute", "rag:read", "rag:write"}
    with pytest.raises(TypeError, match="'scope'"):
        ShippedTool(name="a_new_one", payload_class=dict, replies=())  # type: ignore[call-arg]  # that is the point


@pytest.mark.parametrize(("who", "status"), [("all-tools", 200), ("play", 200), ("one-tool", 403), ("injector", 403)])
async def test_a_tool_of_an_mcp_server_is_listed_and_called_as_the_shipped_ones(
    world: MakeWorld, tmp_path: Path, who: str, status: int
) -> None:
    command = [sys.executable, "-S", str(ROUGH), str(tmp_path / "diary")]
    play = world(SOURCE, LISTENERS, tools={"mcp": {"rough": {"command": command}}})
    write_tokens(play.folder, {"acme": {**GRANTS, "play": ["tools:execute:tool:rough__do"]}})
    async with served(play.config) as server:
        answer = await execute(server, "rough__do", {"do": "this"}, headers=bearer("acme", who))
        assert answer.status_code == status
        if status == 200:
            assert answer.json() == {"result": {"text": "did this", "json": "", "truncated": False}}
        refused = await execute(server, "rough__do", {"do": "wrong"}, headers=bearer("acme", "all-tools"))
        assert refusal_of(refused)[:2] == (422, "tool_error")
        listed = (await server.get("//v1/tools", headers=bearer("acme", "all-tools")))["data"]
        found = next(tool for tool in listed if tool["function"]["name"] == "rough__do")
        assert (found["function"]["parameters"], found["brings_outside_text"]) == ({"type": "object"}, True)


async def test_values_are_a_tenant_s_own(tmp_path: Path) -> None:
    config = hello_with(tmp_path, {"acme": {"boss": ["admin"]}, "globex": {"boss": ["admin"]}})
    async with served(config) as server:
        for tenant in ("acme", "globex"):
            arguments = {"key": "name", "value": tenant}
            answer = await execute(server, "key_value_set", arguments, headers=bearer(tenant, "boss"))
            assert answer.json() == {"result": {"key": "name", "replaced": False}}
        for tenant in ("acme", "globex"):
            answer = await execute(server, "key_value_get", {"key": "name"}, headers=bearer(tenant, "boss"))
            assert answer.json() == {"result": {"key": "name", "value": tenant}}
        assert (await execute(server, "key_value_list")).json() == {"result": {"keys": [], "more": False}}


# ── calls that are confirmed: a preview with a token, then the act ────────────────────────────────────────────────────

CONFIRMED = """
@dataclass
class Asked:
    text: str = ""
    confirm_token: str = ""

"""


def confirmed(world: MakeWorld) -> World:
    """The same with a helper whose calls are confirmed."""
    source = SOURCE.replace("async def helper(payload: Ask,", CONFIRMED + "async def helper(payload: Asked,")
    return world(source, {**LISTENERS, "helper": {"confirm": True, "payload_class": "Asked"}})


@pytest.mark.parametrize(("tenant", "who"), [("acme", "other"), ("globex", "boss")])
async def test_a_confirm_token_of_another_tenant_or_user_is_none(world: MakeWorld, tenant: str, who: str) -> None:
    play = confirmed(world)
    write_tokens(play.folder, {"acme": {"boss": ["admin"], "other": ["admin"]}, "globex": {"boss": ["admin"]}})
    async with served(play.config) as server:
        mine = bearer("acme", "boss")
        given = (await execute(server, "helper", {"text": "x"}, headers=mine)).json()["result"]["confirm_token"]
        call = {"text": "x", "confirm_token": given}
        theirs = await execute(server, "helper", call, headers=bearer(tenant, who))
        assert refusal_of(theirs) == (409, "confirm_mismatch", None)
        assert (await execute(server, "helper", call, headers=mine)).json() == {"result": {"text": "told x"}}


async def test_a_tool_that_is_to_be_confirmed_is_called_twice_and_a_wrong_token_is_a_conflict(world: MakeWorld) -> None:
    async with served(confirmed(world).config) as server:
        preview = (await execute(server, "helper", {"text": "x"})).json()["result"]
        assert (preview["confirm_required"], preview["op"]) == (True, "helper")
        given = preview["confirm_token"]
        other = await execute(server, "helper", {"text": "y", "confirm_token": given})
        assert refusal_of(other) == (409, "confirm_mismatch", None)
        acted = await execute(server, "helper", {"text": "x", "confirm_token": given})
        assert acted.json() == {"result": {"text": "told x"}}
        again = await execute(server, "helper", {"text": "x", "confirm_token": given})
        assert refusal_of(again) == (409, "confirm_used", None)
        listed = (await server.get("//v1/tools"))["data"]
        assert [tool["function"]["name"] for tool in listed if tool["confirm"]] == ["helper", *WRITING]


# ── GET /v1/models ────────────────────────────────────────────────────────────────────────────────────────────────────

MODELS = """
organism: {name: x}
models:
  small: {provider: offline}
  large: {provider: openai, base_url: "http://127.0.0.1:9/v1", model: gpt-x, context_window: 1000}
"""


async def models(server: Served, **more: Any) -> dict[str, Any]:
    """The models by their names."""
    answer = await server.call("GET", "//v1/models", **more)
    assert (answer.status_code, answer.json()["object"]) == (200, "list")
    return {model["id"]: model for model in answer.json()["data"]}


async def test_each_model_is_listed_as_clients_read_it_to_those_that_may_use_it(tmp_path: Path) -> None:
    (tmp_path / "organism.yaml").write_text(MODELS)
    tokens: dict[str, dict[str, Any]] = {
        "one": {"scopes": ["agents:chat"], "models": ["small"]},
        "reader": {"scopes": ["read"]},
    }
    write_tokens(tmp_path, {"default": tokens})
    async with served(tmp_path / "organism.yaml") as server:
        found = await models(server)
        assert list(await models(server, headers=bearer("default", "one"))) == ["small"]
        refused = await server.call("GET", "//v1/models", headers=bearer("default", "reader"))
    assert refused.status_code == 403
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

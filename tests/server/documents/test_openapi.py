"""OpenAPI 3.1: it is served, it is valid, and it is of the very routes, parameters and errors that there are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import orjson
import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR
from starlette.responses import Response

from organism.events.vocabulary import EVENTS
from organism.server.app import BASE, ROUTES
from organism.server.documents import asyncapi, events, openapi
from organism.server.documents.openapi import document
from organism.server.documents.page import element, page
from organism.server.http.call import Call, Route
from organism.server.http.contract import gives
from organism.server.http.problems import table
from organism.server.http.rights import OPEN
from organism.server.introspection import Healthy
from organism.server.ws.commands import COMMANDS
from scripts.write_wire import text
from tests.server.served import Frames, Served

OPERATIONS = [(route.method, route.address) for route in ROUTES]


@cache
def described() -> dict[str, Any]:
    """The document of all routes."""
    return document(ROUTES)


@cache
def declarations() -> str:
    """wire.ts as it is made now."""
    return text(ROUTES)


def components() -> dict[str, Any]:
    """What its schemas refer to."""
    return {"components": described()["components"]}


def operation(method: str, path: str) -> Any:
    return described()["paths"][path][method.lower()]


async def nothing(call: Call) -> Response:
    """Nothing at all."""
    return Response(b"{}")


async def test_it_is_served_without_a_token_at_the_root_and_below_the_base(hello: Served) -> None:
    for path in ("/openapi.json", f"{BASE}/openapi.json"):
        answer = await hello.client.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
        assert answer.json() == orjson.loads(orjson.dumps(described()))


def test_it_is_valid() -> None:
    OPENAPI_31_VALIDATOR.validate(described())
    for schema in described()["components"]["schemas"].values():
        jsonschema_rs.Draft202012Validator(schema | components())


def test_it_has_each_route_and_no_other() -> None:
    found = {(method.upper(), path) for path, methods in described()["paths"].items() for method in methods}
    assert found == set(OPERATIONS)
    names = [operation(*place)["operationId"] for place in OPERATIONS]
    assert len(set(names)) == len(names)


def test_each_operation_says_what_it_does_and_shows_an_example_that_fits() -> None:
    for place in OPERATIONS:
        described = operation(*place)
        assert described["summary"], place
        given = [answer for status, answer in described["responses"].items() if status in {"200", "201", "202"}]
        bodies = (*given, described.get("requestBody", {}))
        forms = [form for body in bodies for form in body.get("content", {}).values()]
        assert forms, place
        for form in forms:
            jsonschema_rs.Draft202012Validator(form["schema"] | components()).validate(form["example"])


def taken(said: Any) -> list[str]:
    """The parameters that the refusal of another one names; what looks at no query refuses none."""
    if "error" not in said:
        return []
    named = re.search(r"it takes (?:none|([^.]*))\.", said["error"]["message"])
    assert named, said
    return named[1].split(", ") if named[1] else []


async def test_its_parameters_are_those_that_the_server_takes(hello: Served) -> None:
    """An unknown parameter is refused, and the refusal names the known ones."""
    for route in ROUTES:
        path = route.address.replace("{name}", "greeter").replace("{id}", "x")
        user = {"SPASS-User-Id": "dan"} if route.needs_user else {}
        kind = {"Content-Type": "application/xml"} if route.takes_xml else {}
        answer = await hello.client.request(route.method, f"{path}?unheard-of=1", headers=hello.bearer | kind | user)
        parameters = operation(route.method, route.address)["parameters"]
        described = [each["name"] for each in parameters if each["in"] == "query"]
        assert sorted(described) == sorted(taken(answer.json())), route.address


def test_a_parameter_that_is_described_nowhere_cannot_be_taken() -> None:
    route = Route("GET /healthz", nothing, right=OPEN, gives=gives(Healthy), query=("unheard-of",))
    with pytest.raises(LookupError, match="unheard-of"):
        document([route])


def test_each_code_of_a_refusal_is_of_its_status() -> None:
    status_of = {entry["code"]: entry["http_status"] for entry in table()["entries"]}
    for method, path in OPERATIONS:
        for status, answer in operation(method, path)["responses"].items():
            if int(status) >= 400:
                shape = "RpcError" if path == "/mcp" else "ErrorAnswer"
                assert answer["content"]["application/json"]["schema"] == {"$ref": f"#/components/schemas/{shape}"}
                assert {status_of[code] for code in answer["x-error-codes"]} == {int(status)}


def test_it_names_no_version_of_the_software() -> None:
    assert described()["info"]["version"] == "1"


IS_PATTERN = jsonschema_rs.validator_for({"format": "regex"}, validate_formats=True)


def parts(part: Any) -> Iterator[dict[str, Any]]:
    """Every object of the document."""
    if isinstance(part, dict):
        yield part
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    for value in inner:
        yield from parts(value)


@pytest.mark.parametrize("made", [asyncapi.document, described], ids=["asyncapi", "openapi"])
def test_every_pattern_is_one_that_javascript_reads(made: Callable[[], Any]) -> None:
    found = {part["pattern"] for part in parts(made()) if isinstance(part.get("pattern"), str)}
    assert found
    assert [pattern for pattern in found if not IS_PATTERN.is_valid(pattern)] == []


@pytest.mark.parametrize("made", [asyncapi.document, described], ids=["asyncapi", "openapi"])
def test_no_default_is_null_and_no_list_says_what_it_has_not(made: Callable[[], Any]) -> None:
    found = list(parts(made()))
    assert [part for part in found if part.get("default", ...) is None or part.get("items") is False] == []


async def test_what_the_log_shows_of_an_event_is_of_that_events_own_schema(hello: Served) -> None:
    await hello.inject()
    found = (await hello.get("/log?limit=500"))["events"]
    assert {"organism_started", "thread_created", "message_sent", "message_handled"} <= {each["type"] for each in found}
    for each in found:
        own = {"$ref": f"#/components/schemas/{events.component_name(EVENTS[each['type']])}"}
        jsonschema_rs.Draft202012Validator(own | components()).validate(each["data"])


async def test_a_key_with_a_line_end_behind_it_is_no_key(hello: Served) -> None:
    async with hello.socket() as socket:
        refused = await Frames(socket).ask("inject", to="greeter", payload={"name": "Dan"}, idempotency_key="key\n")
    assert (refused["event"], refused["param"]) == ("error", "/idempotency_key")


WIRE = Path(__file__).parents[3] / "web" / "src" / "wire.ts"


def test_the_file_in_the_repository_is_the_present_one() -> None:
    assert WIRE.read_text("utf-8") == declarations(), "run ./scripts/schemas and commit web/src/wire.ts"


def test_every_shape_and_every_route_stands_in_it_once() -> None:
    declared = re.findall(r"^export (?:interface|type) (\w+)", declarations(), re.MULTILINE)
    shapes = {**openapi.schemas_of(ROUTES).components, **asyncapi.components()}
    assert sorted(declared) == sorted([*shapes, "Pushed", "Frame", "Command", "EventDataByType", "Answers", "Routes"])
    routes = re.findall(r'^  "(\w+) (\S+)": \{', declarations(), re.MULTILINE)
    assert sorted(routes) == sorted((route.method, route.address) for route in ROUTES)


async def test_it_is_served_without_a_token_with_its_style(hello: Served) -> None:
    answer = await hello.client.get("/docs")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answer.content == page(described(), asyncapi.document())
    for name, kind in (("docs.css", "css"), ("docs.js", "javascript")):
        file = await hello.client.get(f"/{name}")
        assert file.status_code == 200
        assert kind in file.headers["content-type"]
        assert "script-src 'self'" in file.headers["content-security-policy"]


async def test_its_policy_allows_nothing_inline_and_nothing_foreign_and_it_has_none(hello: Served) -> None:
    answer = await hello.client.get("/docs")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"<(style|iframe|img)\b|\s(style|action|on\w+)=|<script[^>]*>[^<]", answer.text)
    links = re.findall(r'(?:href|src)="([^"]*)"', answer.text)
    assert links
    assert all(link.startswith(("/", "#")) for link in links)


def test_it_shows_every_operation_with_its_form_and_every_frame_and_command_of_the_socket() -> None:
    shown = page(described(), asyncapi.document()).decode()
    for route in ROUTES:
        assert f'<form data-method="{route.method}" data-path="{route.address}">' in shown
    for name in [kind.__name__ for kind in asyncapi.frame_kinds()] + [asyncapi.command_name(cmd) for cmd in COMMANDS]:
        assert f'<a href="#{name}">' in shown
        assert f'<section id="{name}">' in shown


def test_text_cannot_become_an_element() -> None:
    assert element("p", "<script>", element("b", "&"), title='"') == (
        '<p title="&quot;">&lt;script&gt;<b>&amp;</b></p>'
    )

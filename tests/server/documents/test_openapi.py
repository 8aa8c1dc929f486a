"""OpenAPI 3.1: it is served, it is valid, and it is of the very routes, parameters and errors that there are."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import jsonschema_rs
import orjson
import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from organism.server.app import BASE, ROUTES
from organism.server.call import Answer, Call, Route
from organism.server.contract import QUERY, Contract, gives
from organism.server.documents.openapi import document
from organism.server.problems import table
from organism.server.shapes.standing import Healthy
from tests.server.served import Served

OPERATIONS = [(route.method, route.address) for route in ROUTES]
PATHS = document(ROUTES)["paths"]
COMPONENTS = {"components": document(ROUTES)["components"]}


def operation(method: str, path: str) -> Any:
    return PATHS[path][method.lower()]


async def nothing(call: Call) -> Answer:
    """Nothing at all."""
    return Answer(b"{}")


async def test_it_is_served_without_a_token_at_the_root_and_below_the_base(hello: Served) -> None:
    for path in ("/openapi.json", f"{BASE}/openapi.json"):
        answer = await hello.client.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
        assert answer.json() == orjson.loads(orjson.dumps(document(ROUTES)))


async def test_who_has_it_is_told_so(hello: Served) -> None:
    tag = (await hello.client.get("/openapi.json")).headers["etag"]
    assert (await hello.client.get("/openapi.json", headers={"If-None-Match": tag})).status_code == 304


def test_it_is_valid() -> None:
    OPENAPI_31_VALIDATOR.validate(document(ROUTES))
    for schema in COMPONENTS["components"]["schemas"].values():
        jsonschema_rs.Draft202012Validator(schema | COMPONENTS)


def test_it_has_each_route_and_no_other() -> None:
    described = {(method.upper(), path) for path, methods in PATHS.items() for method in methods}
    assert described == set(OPERATIONS)
    names = [operation(*place)["operationId"] for place in OPERATIONS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_each_operation_says_what_it_does_and_shows_an_example_that_fits(method: str, path: str) -> None:
    said = operation(method, path)
    assert said["summary"]
    given = [answer for status, answer in said["responses"].items() if status in {"200", "202"}]
    forms = [form for answer in (*given, said.get("requestBody", {})) for form in answer.get("content", {}).values()]
    assert forms
    for form in forms:
        jsonschema_rs.Draft202012Validator(form["schema"] | COMPONENTS).validate(form["example"])


def taken(said: Any) -> list[str]:
    """The parameters that the refusal of another one names; what looks at no query refuses none."""
    if "error" not in said:
        return []
    named = re.search(r"it takes (?:none|([^.]*))\.", said["error"]["message"])
    assert named, said
    return named[1].split(", ") if named[1] else []


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.address}")
async def test_its_parameters_are_those_that_the_server_takes(route: Route, hello: Served) -> None:
    """A parameter that nobody knows is refused, and the refusal names the known ones."""
    path = route.address.replace("{name}", "greeter").replace("{id}", "x")
    kind = {"Content-Type": "application/xml"} if route.contract.takes_xml else {}
    answer = await hello.client.request(route.method, f"{path}?unheard-of=1", headers=hello.bearer | kind)
    said = [said["name"] for said in operation(route.method, route.address)["parameters"] if said["in"] == "query"]
    assert sorted(said) == sorted(taken(answer.json()))


def test_a_parameter_that_is_described_nowhere_cannot_be_taken() -> None:
    route = Route("GET", "/healthz", nothing, contract=Contract(gives=gives(Healthy), query=("unheard-of",)))
    with pytest.raises(LookupError, match="unheard-of"):
        document([route])


def test_every_described_parameter_is_taken_somewhere() -> None:
    assert {name for route in ROUTES for name in route.contract.query} >= set(QUERY) - {"at"}


def test_a_route_cannot_be_made_without_a_contract() -> None:
    with pytest.raises(TypeError, match="contract"):
        Route("GET", "/healthz", nothing)  # type: ignore[call-arg] # that is the point


def test_each_code_of_a_refusal_is_of_its_status() -> None:
    status_of = {entry["code"]: entry["http_status"] for entry in table()["entries"]}
    for method, path in OPERATIONS:
        for status, answer in operation(method, path)["responses"].items():
            if int(status) >= 400:
                schema = answer["content"]["application/json"]["schema"]
                codes = schema["allOf"][1]["properties"]["error"]["properties"]["code"]["enum"]
                assert {status_of[code] for code in codes} == {int(status)}


def test_acts_that_are_kept_take_a_key() -> None:
    assert all("Idempotency-Key" in route.contract.headers for route in ROUTES if route.is_kept)


@pytest.mark.parametrize("mount", ["", BASE])
def test_what_needs_no_token_says_so(mount: str) -> None:
    route = replace(next(route for route in ROUTES if route.path == "/healthz"), mount=mount)
    assert document([route])["paths"][route.address]["get"]["security"] == []


def test_it_names_no_version_of_the_software() -> None:
    assert document(ROUTES)["info"]["version"] == "1"

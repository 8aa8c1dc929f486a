"""``web/src/wire.ts``: the types of the wire are those of the contract."""

from __future__ import annotations

import re
from pathlib import Path

from organism.server.app import ROUTES
from organism.server.documents import asyncapi, openapi
from organism.server.documents.typescript import text, type_of

WIRE = Path(__file__).parents[3] / "web" / "src" / "wire.ts"


def test_the_file_in_the_repository_is_the_present_one() -> None:
    assert WIRE.read_text("utf-8") == text(ROUTES), "run ./scripts/schemas and commit web/src/wire.ts"


def test_every_shape_and_every_route_stands_in_it_once() -> None:
    declared = re.findall(r"^export (?:interface|type) (\w+)", text(ROUTES), re.MULTILINE)
    shapes = {**openapi.schemas_of(ROUTES).components, **asyncapi.components()}
    assert sorted(declared) == sorted([*shapes, "Pushed", "Frame", "Command", "Answers", "Routes"])
    routes = re.findall(r'^  "(\w+) (\S+)": \{', text(ROUTES), re.MULTILINE)
    assert sorted(routes) == sorted((route.method, route.address) for route in ROUTES)


def test_every_name_that_is_used_is_declared() -> None:
    code = re.sub(r'/\*\*.*?\*/|//.*|"[^"]*"', "", text(ROUTES))
    declared = set(re.findall(r"export (?:interface|type) (\w+)", code))
    assert set(re.findall(r"\b[A-Z]\w+", code)) <= declared | {"Record", "Array"}


def test_each_kind_of_schema_has_its_type() -> None:
    assert type_of({"type": "integer"}) == "number"
    assert type_of({}) == "unknown"
    assert type_of({"anyOf": [{"type": "string"}, {"type": "null"}]}) == "string | null"
    assert type_of({"type": "array", "items": {"enum": ["a", "b"]}}) == 'Array<"a" | "b">'
    assert type_of({"type": "array", "items": {"$ref": "#/components/schemas/Agent"}}) == "Agent[]"
    assert type_of({"type": "object", "additionalProperties": True}) == "Record<string, unknown>"

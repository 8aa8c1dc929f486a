"""Each pattern in the documents is one of ECMA 262, as JSON Schema wants it: what JavaScript and other readers take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest

from organism.server.app import ROUTES
from organism.server.documents import asyncapi, openapi
from tests.server.served import Frames, Served

DOCUMENTS = {"asyncapi": asyncapi.document(), "openapi": openapi.document(ROUTES)}
IS_PATTERN = jsonschema_rs.validator_for({"format": "regex"}, validate_formats=True)


def patterns(part: Any) -> Iterator[str]:
    """Every pattern of the document."""
    if isinstance(part, dict):
        yield from [part["pattern"]] if isinstance(part.get("pattern"), str) else []
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    for value in inner:
        yield from patterns(value)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_pattern_is_one_that_javascript_reads(name: str) -> None:
    found = set(patterns(DOCUMENTS[name]))
    assert found
    assert [pattern for pattern in found if not IS_PATTERN.is_valid(pattern)] == []


async def test_a_key_with_a_line_end_behind_it_is_no_key(hello: Served) -> None:
    async with hello.socket() as socket:
        refused = await Frames(socket).ask("inject", to="greeter", payload={"name": "Dan"}, idempotency_key="key\n")
    assert (refused["event"], refused["param"]) == ("error", "/idempotency_key")

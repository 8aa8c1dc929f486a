"""A refused body costs little, however large it is and whatever route it is for (S14): generated from the contract."""

from __future__ import annotations

import asyncio
import re
import socket
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest

from organism.server.app import ROUTES
from organism.server.documents import openapi
from organism.server.documents.schemas import Schema
from organism.server.http.call import MAX_BODY_BYTES, MAX_GATEWAY_BODY_BYTES, USER, Route
from organism.server.json import MAX_ELEMENTS, MAX_GATEWAY_ELEMENTS, MAX_NAMES
from tests.server.hostile.client import first_answer
from tests.server.served import TOKEN, Frames, Served

DOCUMENT = openapi.document(ROUTES)
TAKING = {
    f"{route.method} {route.address}": route for route in ROUTES if route.takes is not None and not route.takes_files
}
JSON = {"Content-Type": "application/json", USER: "ann"}
MOST_GROWTH = 4
MOST_STALL_SECONDS = 1.0
"""Of the processor's time, so that what else the machine does is no stall."""
HERE = "here"
"""Stands in a body where a list is to be filled."""

WRONG: tuple[Any, ...] = (3, "", [[]], {"str": {"int": []}}, [{"type": "text"}], {"type": "function"})
"""Values that fit none of several types, or one of them not quite."""

Way = tuple[str | int, ...]


def body_schema(route: Route) -> Schema:
    operation = DOCUMENT["paths"][route.address][route.method.lower()]
    schema: Schema = operation["requestBody"]["content"]["application/json"]["schema"]
    return schema


def lists_in(schema: Schema, way: Way = ()) -> Iterator[tuple[Way, Schema]]:
    """Each list that the schema describes, and the way to it."""
    if "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    for choice in ("anyOf", "oneOf", "allOf"):
        for each in schema.get(choice, ()):
            yield from lists_in(each, way)
    for name, each in schema.get("properties", {}).items():
        yield from lists_in(each, (*way, name))
    if schema.get("type") == "array":
        yield way, schema
        yield from lists_in(schema["items"], (*way, 0))


def fields_in(schema: Schema, way: Way = ()) -> Iterator[Way]:
    """The way to each field that the schema describes, and to the first element of each list."""
    if "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    for choice in ("anyOf", "oneOf", "allOf"):
        for each in schema.get(choice, ()):
            yield from fields_in(each, way)
    inner = {**schema.get("properties", {}), **({0: schema["items"]} if schema.get("type") == "array" else {})}
    for name, each in inner.items():
        yield (*way, name)
        yield from fields_in(each, (*way, name))


def body_with(way: Way, value: Any) -> Any:
    """A body with this value at the end of the way, and nothing else."""
    for step in reversed(way):
        value = [value] if step == 0 else {step: value}
    return value


LISTS = {
    f"{name} {'/'.join(map(str, way))}": (route, way, schema)
    for name, route in TAKING.items()
    for way, schema in lists_in(body_schema(route))
}


def most_bytes(route: Route) -> int:
    return MAX_GATEWAY_BODY_BYTES if route.is_gateway else MAX_BODY_BYTES


def address(route: Route) -> str:
    return re.sub(r"\{\w+\}", "greeter", route.address)


async def refusal(server: Served, route: Route, content: bytes) -> dict[str, Any]:
    """The error with which a body is refused."""
    answer = await server.call(route.method, "/" + address(route), content=content, headers=JSON)
    assert answer.status_code in {400, 413}, answer.text
    error: dict[str, Any] = answer.json()["error"]
    return error


def test_the_contract_has_lists() -> None:
    assert len(LISTS) > 10


@pytest.mark.parametrize("name", LISTS)
async def test_a_list_has_a_maximum_and_ends_at_its_first_wrong_element(shared: Served, name: str) -> None:
    route, way, schema = LISTS[name]
    content = orjson.dumps(body_with(way, [[]] * schema["maxItems"]))
    error = await refusal(shared, route, content)
    assert len(error.get("details", ())) < 20
    assert " more" not in error["message"]


def stands_in(body: Any, param: str) -> bool:
    """Whether what is around a fault is there."""
    for step in param.split("/")[1:-1]:
        body = body[int(step)] if isinstance(body, list) else body.get(step) if isinstance(body, dict) else None
    return isinstance(body, dict | list)


@pytest.mark.parametrize("name", TAKING)
async def test_a_fault_is_where_the_body_has_it(shared: Served, name: str) -> None:
    """No pointer names a type that was tried there."""
    route = TAKING[name]
    for way in dict.fromkeys(fields_in(body_schema(route))):
        for wrong in WRONG:
            body = body_with(way, wrong)
            answer = await shared.call(route.method, "/" + address(route), content=orjson.dumps(body), headers=JSON)
            error = answer.json()["error"] if answer.status_code == 400 else {}
            for param in (fault["param"] for fault in error.get("details", ())):
                assert not param.startswith("/") or stands_in(body, param), (body, param)


@pytest.mark.parametrize(("value", "came"), [(2, "2"), (1.5, "1.5"), (False, "false"), ("2", "'2'")], ids=repr)
async def test_a_refusal_shows_the_value_as_the_body_has_it(shared: Served, value: Any, came: str) -> None:
    body = {"model": "gpt-4.1-mini", "messages": [{"role": "user", "content": "Hello!"}], "n": value}
    error = await refusal(shared, TAKING["POST /v1/chat/completions"], orjson.dumps(body))
    assert error["message"].endswith(f"; came {came}.")


async def test_a_list_of_a_command_ends_at_its_first_wrong_element(shared: Served) -> None:
    async with shared.socket() as opened:
        frames = Frames(opened)
        await frames.until("connected")
        refused = await frames.ask("subscribe", events=[1] * 1000)
        assert [fault["param"] for fault in refused["details"]] == ["/events/0"]
        await opened.send(orjson.dumps({"cmd": "subscribe", "events": [1] * MAX_ELEMENTS}).decode())
        assert (await frames.until("error"))[-1]["code"] == "body_too_large"


@pytest.mark.parametrize(("path", "most"), [("/inject", MAX_ELEMENTS), ("//v1/tools/execute", MAX_GATEWAY_ELEMENTS)])
async def test_a_body_has_so_many_values_and_no_more(shared: Served, path: str, most: int) -> None:
    async def asked(values: list[int]) -> tuple[int, str]:
        answer = await shared.call("POST", path, content=orjson.dumps({"x": values}), headers=JSON)
        return answer.status_code, answer.json()["error"]["code"]

    assert await asked([1] * (most - 2)) == (400, "missing_field")
    assert await asked([1] * (most - 1)) == (413, "body_too_large")


async def test_an_object_has_so_many_fields_and_no_more(shared: Served) -> None:
    named = {f"a{number}": 1 for number in range(MAX_NAMES + 1)}
    error = await refusal(shared, TAKING["POST /api/v1/inject"], orjson.dumps(named))
    assert error["code"] == "body_too_large"
    del named["a0"]
    error = await refusal(shared, TAKING["POST /api/v1/inject"], orjson.dumps(named))
    assert (error["code"], len(error["details"])) == ("missing_field", 20)


async def test_texts_of_many_brackets_commas_and_quotes_are_not_counted(shared: Served) -> None:
    text = '[]{},":\\' * MAX_NAMES
    body = {"to": "shouter", "payload": {"message": text, "original_sender": "x"}, "wait": 10}
    answer = await shared.call("POST", "/inject", json=body)
    assert answer.json()["replies"][0]["payload"]["message"] == text.upper()


# -- at their largest


def many(begin: bytes, bit: Callable[[int, bytes], bytes], end: bytes, count: int, size: int) -> bytes:
    """``count`` bits between ``begin`` and ``end``, each with so much in it that all are as large as ``size``."""
    pad = b"x" * ((size - len(begin) - len(end)) // count - len(bit(count, b"")) - 1)
    return begin + b",".join(bit(number, pad) for number in range(count)) + end


def largest(route: Route, way: Way | None) -> bytes:
    """As many values in a list, or fields that no route knows, as are read at all, in a body of the largest size."""
    size, most = most_bytes(route), MAX_GATEWAY_ELEMENTS if route.is_gateway else MAX_ELEMENTS
    if way is None:
        return many(b"{", lambda number, pad: b'"%07d%b":1' % (number, pad), b"}", MAX_NAMES, size)
    head, tail = orjson.dumps(body_with(way, HERE)).split(orjson.dumps(HERE))
    return many(head + b"[", lambda _, pad: b'["%b"]' % pad, b"]" + tail, (most - len(way)) // 2 - 2, size)


LARGEST = {
    **{f"{route.takes}, {route.is_gateway}, {way}": (route, way) for route, way, _ in LISTS.values()},
    **{f"{route.takes}, {route.is_gateway}": (route, None) for route in TAKING.values()},
}
"""Each list of each body class, and each class with unknown fields, at the largest size."""


class Stalls:
    """The longest time of this thread's processor between two turns of its loop."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def watch(self) -> None:
        """Watch until cancelled."""
        before, never = time.thread_time(), asyncio.get_running_loop().create_future()
        while True:
            await asyncio.wait([never], timeout=0.001)
            now = time.thread_time()
            self.longest = max(self.longest, now - before)
            before = now


async def status_of(server: Served, route: Route, body: bytes) -> int:
    """The status of the answer to a body that is sent without a copy of it."""
    url, loop = urlsplit(server.url), asyncio.get_running_loop()
    head = (
        f"{route.method} {address(route)} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Type: application/json\r\n{USER}: ann\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((url.hostname, url.port)) as sender:
        sender.settimeout(0)
        await loop.sock_sendall(sender, head.encode())
        await loop.sock_sendall(sender, memoryview(body))
        reader, writer = await asyncio.open_connection(sock=sender)
        answer = await first_answer(reader)
        writer.close()
    return int(answer.split(b" ", 2)[1])


@pytest.mark.thorough
@pytest.mark.parametrize("name", LARGEST)
async def test_the_largest_body_of_each_class_stalls_nobody(shared: Served, name: str) -> None:
    route, way = LARGEST[name]
    body = largest(route, way)
    stalls = Stalls()
    watching = asyncio.ensure_future(stalls.watch())
    assert await status_of(shared, route, body) in {400, 413}
    watching.cancel()
    assert stalls.longest < MOST_STALL_SECONDS


@pytest.mark.parametrize("path", ["/api/v1/inject", "/v1/tools/execute"])
@pytest.mark.parametrize("bit", [b"[]", b"{}", b"1", b'""', b'{"a":[]}'])
async def test_a_body_of_small_values_takes_no_more_than_four_times_its_size(
    shared: Served, path: str, bit: bytes
) -> None:
    route = TAKING[f"POST {path}"]
    body = b'{"arguments":[' + b",".join([bit] * (MAX_BODY_BYTES // (len(bit) + 1) - 20)) + b"]}"
    tracemalloc.start()
    try:
        assert await status_of(shared, route, body) in {400, 413}
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MOST_GROWTH * len(body)

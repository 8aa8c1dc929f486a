"""The examples of docs/wire.md are run, in their order, and what comes is what they say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import orjson

from tests.server.served import Served

DOC = Path(__file__).parents[2] / "docs" / "wire.md"
EXAMPLE = re.compile(r"^(GET|POST|DELETE) (/\S+)(?: (\{.*\}))?\n(\d{3}) (\{.*\})$", re.MULTILINE)


def fits(said: Any, came: Any) -> bool:
    """Whether it is as the example says: ``…`` is any text or value, and more at the end of a list or an object."""
    if said == "…" or (isinstance(said, str) and isinstance(came, str) and re.fullmatch(pattern(said), came)):
        return True
    if isinstance(said, dict) and isinstance(came, dict):
        named = said.keys() - {"…"}
        return (named == came.keys() or ("…" in said and named < came.keys())) and all(
            fits(said[name], came[name]) for name in named
        )
    if isinstance(said, list) and isinstance(came, list):
        first = said[:-1] if said[-1:] == ["…"] else said
        return (len(first) == len(came) or len(first) < min(len(said), len(came))) and all(map(fits, first, came))
    return bool(said == came)


def pattern(said: str) -> str:
    """The text as a pattern."""
    return ".*".join(map(re.escape, said.split("…")))


def parsed(said: str) -> Any:
    """The example's JSON; a bare ``…`` is a value like any other."""
    return orjson.loads(re.sub(r"(?<=[:\[,])…(?=[,\]}])", '"…"', said))


async def test_each_example_of_the_wire_is_answered_as_it_says(hello: Served) -> None:
    examples = EXAMPLE.findall(DOC.read_text())
    assert len(examples) > 10
    ids = {"THREAD": "THREAD", "MESSAGE": "MESSAGE"}
    for method, path, body, status, said in examples:
        for name, value in ids.items():
            path, said = path.replace(name, value), said.replace(name, value)  # noqa: PLW2901 - filled in
        answer = await hello.client.request(
            method, path, headers=hello.bearer | {"Content-Type": "application/json"}, content=body or None
        )
        assert (path, answer.status_code) == (path, int(status))
        assert fits(parsed(said), answer.json()), (path, answer.text)
        if ids["THREAD"] == "THREAD":
            ids = {"THREAD": answer.json()["thread_id"], "MESSAGE": answer.json()["message_id"]}
        await hello.organism.tenants["default"].ended(answer.json().get("thread_id", ""), 10)


def test_an_example_can_be_wrong() -> None:
    assert not fits({"a": 1}, {"a": 1, "b": 2})
    assert not fits({"a": "msg-…"}, {"a": "thr-1"})
    assert not fits({"a": 1, "…": 0}, {"a": 2, "b": 2})
    assert fits({"a": "msg-…", "…": 0}, {"a": "msg-1", "b": 2})
    assert not fits([1, "…"], [2, 3])
    assert not fits([1], [1, 2])
    assert not fits([1, 2, "…"], [1])
    assert fits([1, "…"], [1, 2, 3])

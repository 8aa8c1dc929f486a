"""Whatever the model is given: it answers, in work that grows as the text does."""

from __future__ import annotations

import json
import sys
from random import Random
from types import FrameType
from typing import Any

import jsonschema_rs
import pytest

from organism.agents.providers.builtin.answering import Reply, reply
from organism.model.completion import ModelRequest
from tests.agents.providers.builtin.generated.tools import TOOLS

UNITS = (
    *(
        "a ",
        "a/",
        "a.",
        "A ",
        '"',
        "1,",
        "1 + ",
        "(",
        "1.1.",
        "a@b.",
        ": ",
        "x: y\n",
        "https://",
        "-a",
        "AB ",
        "3 euro ",
    ),
    *("Ltd. A ", "My dog is ", "? ", "```", "<a>", "store a as ", "Berlin ", "May 1 2020 ", "12:30 ", "minus "),
    *("not ", "mein ", "de la ", "ä", "🎉", '{"a":', "\\", "sum of ", "twenty "),
)
FIELDS: dict[str, Any] = {
    **{
        name: {"type": "string"}
        for name in ("name", "city", "company", "path", "key", "host", "symbol", "id", "summary")
    },
    "amount": {"type": "integer"},
    "level": {"enum": ["low", "high"]},
    "is_open": {"type": "boolean"},
    "tags": {"type": "array", "items": {"type": "string"}},
}
SCHEMA: dict[str, Any] = {"type": "object", "properties": FIELDS, "required": list(FIELDS)}
FORM = {"type": "json_schema", "json_schema": {"name": "all", "schema": SCHEMA}}
SHORT = 2_000
MOST_GROWTH = 2.6
"""What twice the text may cost; a square would cost four times as much."""


def asked(kind: str, text: str) -> ModelRequest:
    """The text as a request for tools, as material for a schema, or as what was told before a question."""
    told = {"role": "user", "content": text}
    if kind == "tools":
        return ModelRequest("m", (told,), TOOLS)
    if kind == "schema":
        return ModelRequest("m", (told,), response_format=FORM)
    return ModelRequest("m", (told, {"role": "assistant", "content": "ok"}, {"role": "user", "content": "Who am I?"}))


def steps(request: ModelRequest) -> int:
    """How many calls the answer takes, those into C counted."""
    count = 0

    def called(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        reply(request)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("kind", ["tools", "schema", "facts"])
def test_twice_the_text_takes_no_more_than_about_twice_the_work(kind: str) -> None:
    reply(asked(kind, "warm up"))
    for unit in UNITS:
        short, long = (steps(asked(kind, (unit * size)[:size])) for size in (SHORT, 2 * SHORT))
        assert long <= MOST_GROWTH * short + SHORT, unit


@pytest.mark.parametrize("kind", ["tools", "schema", "facts"])
def test_every_jumble_is_answered_and_fits_its_schema(kind: str) -> None:
    random = Random("jumble")
    for _ in range(60):
        text = "".join(random.choice(UNITS) for _ in range(random.randint(0, 80)))
        came: Reply = reply(asked(kind, text))
        assert came.text or came.calls
        if kind == "schema":
            assert jsonschema_rs.is_valid(SCHEMA, json.loads(came.text)), text


def test_a_number_without_an_end_is_no_quantity() -> None:
    came = reply(asked("schema", "The amount is " + "9" * 5_000 + "."))
    assert jsonschema_rs.is_valid(SCHEMA, json.loads(came.text))

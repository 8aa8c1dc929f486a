"""The server's own log: one line an entry, forged by nobody, without secrets (S30, S31)."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import structlog

from organism.model.redact import Redactor
from organism.server import logs
from tests.server.logged import logged

FORGED = 'x\n{"level":"error","event":"forged"}\r\x1b[2J\x1b]0;title\x07\u2028\u2029\x85\u202e\x00\x7f'
SECRET = "canary-4711-of-the-vault"


def fail(text: str) -> None:
    """Raise an error of this text."""
    raise ValueError(text)


def test_an_entry_is_one_json_object_a_line_with_time_and_level_first() -> None:
    with logged() as said:
        structlog.get_logger("x").warning("it rains", inches=3)
    assert said.lines[0].startswith('{"timestamp": "')
    assert {"level": "warning", "event": "it rains", "inches": 3}.items() <= said.entries[0].items()


@pytest.mark.parametrize("place", ["event", "value", "name", "inside", "trace"])
def test_no_text_can_forge_a_line_or_move_a_cursor(place: str) -> None:
    with logged() as said:
        logger = structlog.get_logger("x")
        if place == "trace":
            try:
                fail(FORGED)
            except ValueError:
                logger.exception("it failed")
        else:
            fields: dict[str, dict[str, Any]] = {
                "value": {"said": FORGED},
                "name": {FORGED: 1},
                "inside": {"said": [{"deep": FORGED}]},
            }
            logger.warning(FORGED if place == "event" else "said", **fields.get(place, {}))
    assert len(said.lines) == 1
    assert said.lines[0].isprintable()
    assert said.lines[0].isascii()


@pytest.mark.parametrize("text", [FORGED, "\x9b31m", "\u2066", "\ufeff", "\U000e0001"])
def test_on_a_terminal_a_line_is_for_people_and_cannot_be_forged_either(text: str) -> None:
    with logged(is_terminal=True) as said:
        structlog.get_logger("x").warning(text, **{text: text, "list": [text]})
    assert len(said.lines) == 1
    assert said.lines[0].isprintable()
    assert " warning " in said.lines[0]


def test_on_a_terminal_a_trace_stands_below_its_line_indented() -> None:
    with logged(is_terminal=True) as said:
        try:
            fail(FORGED)
        except ValueError:
            structlog.get_logger("x").exception("it failed")
    first, *trace = said.lines
    assert " error   it failed" in first
    assert all(line.startswith("    ") and line.isprintable() for line in trace)
    assert any("ValueError" in line for line in trace)


def test_what_libraries_say_has_the_same_form() -> None:
    with logged() as said:
        logging.getLogger("uvicorn.error").warning("Invalid %s\n%s", "request", SECRET)
        try:
            fail(FORGED)
        except ValueError:
            logging.getLogger("asyncio").exception("it failed")
    assert [entry["level"] for entry in said.entries] == ["warning", "error"]
    assert said.entries[0]["event"] == f"Invalid request\n{SECRET}"
    assert "ValueError" in said.entries[1]["exception"]


def test_no_secret_is_in_an_entry_wherever_it_stood() -> None:
    with logged(Redactor([SECRET])) as said:
        logger = structlog.get_logger("x")
        logger.warning(SECRET, said=SECRET, deep=[{"x": SECRET}], odd=ValueError(SECRET), password="hunter2hunter2")
        logger.warning("named", **{SECRET: 1})
        logging.getLogger("lib").warning("%s", SECRET)
        try:
            fail(SECRET)
        except ValueError:
            logger.exception("it failed")
    assert len(said.lines) == 4
    assert SECRET not in said.getvalue()
    assert "hunter2" not in said.getvalue()


def test_what_is_below_the_level_is_not_written() -> None:
    with logged(level="warning") as said:
        structlog.get_logger("x").info("all is well")
    assert said.lines == []


def test_every_level_can_be_chosen() -> None:
    for level in logs.LEVELS:
        with logged(level=level) as said:
            structlog.get_logger("x").error("it failed")
        assert len(said.lines) == 1

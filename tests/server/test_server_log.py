"""The server's own log: one line an entry, forged by nobody, without secrets (S30, S31)."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
import structlog
from starlette.types import Message

from organism.model.redact import Redactor
from organism.server.http import server_log
from tests.flows.world import World
from tests.server.logged import Terminal, logged
from tests.server.served import Frames, Served, served

FORGED = 'x\n{"level":"error","event":"forged"}\r\x1b[2J\x1b]0;title\x07\u2028\u2029\x85\u202e\x00\x7f'
SECRET = "canary-4711-of-the-vault"


def fail(text: str) -> None:
    """Raise an error of this text."""
    raise ValueError(text)


@pytest.mark.parametrize("place", ["event", "value", "name", "inside", "trace"])
def test_no_text_can_forge_a_line_or_move_a_cursor(place: str) -> None:
    with logged() as log:
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
    (entry,) = log.entries
    assert log.lines[0].startswith('{"timestamp": "')
    assert entry["level"] in {"warning", "error"}
    assert log.lines[0].isprintable()
    assert log.lines[0].isascii()


@pytest.mark.parametrize("text", [FORGED, "\x9b31m", "\u2066", "\ufeff", "\U000e0001"])
def test_on_a_terminal_a_line_is_for_people_and_cannot_be_forged_either(text: str) -> None:
    with logged(is_terminal=True) as log:
        structlog.get_logger("x").warning(text, **{text: text, "list": [text]})
    assert len(log.lines) == 1
    assert log.lines[0].isprintable()
    assert " warning " in log.lines[0]


def test_on_a_terminal_a_trace_stands_below_its_line_indented() -> None:
    with logged(is_terminal=True) as log:
        try:
            fail(FORGED)
        except ValueError:
            structlog.get_logger("x").exception("it failed")
    first, *trace = log.lines
    assert " error   it failed" in first
    assert all(line.startswith("    ") and line.isprintable() for line in trace)
    assert any("ValueError" in line for line in trace)


def test_what_libraries_say_has_the_same_form() -> None:
    with logged() as log:
        logging.getLogger("uvicorn.error").warning("Invalid %s\n%s", "request", SECRET)
        try:
            fail(FORGED)
        except ValueError:
            logging.getLogger("asyncio").exception("it failed")
    assert [entry["level"] for entry in log.entries] == ["warning", "error"]
    assert log.entries[0]["event"] == f"Invalid request\n{SECRET}"
    assert "ValueError" in log.entries[1]["exception"]


def test_no_secret_is_in_an_entry_wherever_it_stood() -> None:
    with logged(Redactor([SECRET])) as log:
        logger = structlog.get_logger("x")
        logger.warning(SECRET, said=SECRET, deep=[{"x": SECRET}], odd=ValueError(SECRET), password="hunter2hunter2")
        logger.warning("named", **{SECRET: 1})
        logging.getLogger("lib").warning("%s", SECRET)
        try:
            fail(SECRET)
        except ValueError:
            logger.exception("it failed")
    assert len(log.lines) == 4
    assert SECRET not in log.getvalue()
    assert "hunter2" not in log.getvalue()


def test_every_level_can_be_chosen_and_what_is_below_it_is_not_written() -> None:
    for level in server_log.LEVELS:
        with logged(level=level) as log:
            structlog.get_logger("x").debug("all is well")
            structlog.get_logger("x").error("it failed")
        assert len(log.lines) == 1 + (level == "debug")


FIELDS = {"timestamp", "level", "event", "request_id", "tenant", "method", "route", "status", "duration_ms"}


def requests(said: Terminal) -> list[dict[str, Any]]:
    """The entries that are of requests."""
    return [entry for entry in said.entries if entry["event"] == "request"]


async def test_each_request_has_a_line_with_its_id_tenant_route_status_and_duration(shared: Served) -> None:
    with logged() as log:
        answer = await shared.call("GET", "/agents/greeter?")
    (entry,) = requests(log)
    assert entry.keys() == FIELDS
    assert entry["request_id"] == answer.headers["x-request-id"]
    assert (entry["level"], entry["tenant"], entry["route"]) == ("info", "default", "/api/v1/agents/{name}")
    assert (entry["method"], entry["status"]) == ("GET", 200)
    assert entry["duration_ms"] > 0


async def test_nothing_of_what_a_client_wrote_is_in_its_line(shared: Served) -> None:
    with logged() as log:
        for path in ("/agents/canary%0a", "/canary", "/messages?q=canary", "/messages?canary=1"):
            await shared.call("GET", path, headers={"User-Agent": "canary", "Referer": "canary"})
    assert len(requests(log)) == 4
    assert "canary" not in log.getvalue()


async def test_what_is_refused_for_want_of_rights_is_a_warning_and_has_no_tenant(hello: Served) -> None:
    with logged() as log:
        await hello.call("GET", "/organism", headers={"Authorization": "Bearer wrong"})
        await hello.call("GET", "/organism", headers={"Host": "evil.example"})
    found = [(entry["level"], entry["status"], entry["tenant"], entry["route"]) for entry in requests(log)]
    assert found == [("warning", 401, None, "/api/v1/organism"), ("warning", 403, None, None)]


async def test_what_cannot_be_done_now_is_a_warning(hello: Served) -> None:
    await hello.call("POST", "/organism/pause")
    with logged() as log:
        await hello.call("POST", "/agents/greeter/invoke", json={"data": {"inputs": {"payload": {"name": "Dan"}}}})
    assert [(entry["level"], entry["status"]) for entry in requests(log)] == [("warning", 503)]


async def test_what_fails_is_an_error_with_its_trace_under_the_same_id(shared: Served, monkeypatch: Any) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("disk on fire")

    monkeypatch.setattr(shared.views, "row", broken, raising=False)
    with logged() as log:
        answer = await shared.call("GET", "/agents/greeter")
    trace, line = log.entries
    assert (trace["level"], line["level"], line["status"]) == ("error", "error", 500)
    assert trace["request_id"] == line["request_id"] == answer.json()["error"]["request_id"]
    assert "disk on fire" in trace["exception"]
    assert "disk on fire" not in answer.text


async def test_a_socket_has_a_line_at_its_end(shared: Served) -> None:
    with logged() as log:
        async with shared.socket() as socket:
            await Frames(socket).until("connected")
        while not requests(log):
            await asyncio.wait([asyncio.ensure_future(shared.client.get("/healthz"))])
    entry = next(entry for entry in requests(log) if entry["route"] == "/ws")
    assert (entry["tenant"], entry["status"], entry["level"]) == ("default", 101, "info")
    assert entry["request_id"].startswith("ws-")


async def test_the_status_of_a_socket_is_a_plain_number_for_every_renderer(shared: Served) -> None:
    with structlog.testing.capture_logs() as entries:
        async with shared.socket() as socket:
            await Frames(socket).until("connected")
        await shared.until(lambda: any(entry.get("route") == "/ws" for entry in entries))
    (status,) = [entry["status"] for entry in entries if entry.get("route") == "/ws"]
    assert repr(status) == "101"


async def test_a_request_that_the_stop_does_not_wait_for_says_so_in_the_shape_of_all_errors(shared: Served) -> None:
    sent: list[Message] = []
    reached = asyncio.Event()

    async def receive() -> Message:
        reached.set()
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [
        (name.lower().encode(), value.encode()) for name, value in {**shared.bearer, "Host": "localhost"}.items()
    ]
    scope = {"type": "http", "method": "POST", "path": "/api/v1/inject", "query_string": b"", "headers": headers}
    asked = asyncio.ensure_future(shared.serving.app(scope, receive, send))
    await reached.wait()
    asked.cancel()
    await asked
    assert sent[0]["status"] == 503
    assert b'"code":"stopping"' in sent[1]["body"]
    assert (b"x-content-type-options", b"nosniff") in sent[0]["headers"]


async def test_what_a_handler_logs_names_its_thread_and_a_failure_its_line(tmp_path: Path) -> None:
    source = """
    import logging, structlog

    async def worker(payload: Ask, metadata: HandlerMetadata):
        logging.getLogger("shop").warning("by logging")
        structlog.get_logger("shop").warning("by structlog")
        return HandlerResponse.respond(Told(payload.texts))
    """
    made = World(tmp_path, source, {"worker": {}}, retry={"attempts": 2, "base_delay_s": 0, "max_delay_s": 0})
    for is_terminal in (False, True):
        with logged(is_terminal=is_terminal, level="warning") as log:
            async with served(made.config) as server:
                sent = await server.inject("worker", {"text": "x"})
        if is_terminal:
            lines = [line for line in log.lines if line.startswith("    ")]
            assert lines[0].endswith(" in worker")
            assert lines[1].strip() == "return HandlerResponse.respond(Told(payload.texts))"
            continue
        names = {"agent": "worker", "thread_id": sent["thread_id"], "message_id": sent["message_id"]}
        for entry in log.entries:
            assert names.items() <= entry.items()
        events = ["by logging", "by structlog", "handler_failed"]
        assert [entry["event"] for entry in log.entries] == events * 2
        assert [entry["level"] for entry in log.entries if entry["event"] == events[2]] == ["warning", "error"]
        replay = f"organism reload; organism dead-letters replay {sent['message_id']}"
        assert [entry["next"] for entry in log.entries if "next" in entry] == [replay]


async def test_what_fails_outside_of_a_route_is_answered_in_the_shape_of_all_errors(shared: Served) -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    without_query = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"localhost")]}
    with pytest.raises(KeyError), logged() as log:
        await shared.serving.app(without_query, receive, send)
    assert (sent[0]["status"], requests(log)[0]["status"]) == (500, 500)
    assert b'"code":"internal_error"' in sent[1]["body"]

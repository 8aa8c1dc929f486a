"""What a client is answered while the organism stops, and while its disk fails."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import closing
from http import HTTPStatus
from pathlib import Path
from typing import Any

import orjson
import pytest

from organism.bootstrap import Parts
from organism.server.app import ROUTES
from organism.sqlite.driver import Pysqlite
from tests.log.faulty import FaultyDriver, Plan
from tests.server.logged import logged
from tests.server.served import HELLO, Served, served

BODIES: dict[str, Any] = {
    "/inject": {"to": "greeter", "payload": {"name": "x"}},
    "/tools/execute": {"name": "calculator", "arguments": {"expression": "1"}},
    "/invoke": {"agent": "concise-de", "data": {"inputs": {"message": "x"}}},
    "/agents/{name}/invoke": {"data": {"inputs": {"message": "x"}}},
    "/approvals/{id}/resolve": {"decision": "approve"},
    "/indeterminate/{id}/resolve": {"outcome": "done"},
}
ACTS = [route for route in ROUTES if route.method != "GET" and route.path not in {"/organism/stop", "/mcp"}]


async def codes_of_all_acts(server: Served) -> dict[str, str]:
    """The code with which each act of the API is refused; those that are done have none."""
    codes = {}
    for at, route in enumerate(ACTS):
        path = route.address.replace("{name}", "concise-de").replace("{id}", "x")
        headers = {"Idempotency-Key": f"key-{at}", "Content-Type": "application/json"}
        body = b"" if route.method == "DELETE" else orjson.dumps(BODIES.get(route.path, {}))
        answer = await server.call(route.method, f"/{path}", content=body, headers=headers)
        if answer.status_code >= 400:
            codes[f"{route.method} {route.address}"] = answer.json()["error"]["code"]
    return codes


async def test_who_asks_for_new_work_during_the_stop_is_told_that_it_stops(tmp_path: Path) -> None:
    async with served(HELLO, tmp_path / "data") as server:
        with logged(level="warning") as log:
            await server.organism.stop()
            codes = await codes_of_all_acts(server)
        assert codes["POST /api/v1/inject"] == codes["POST /api/v1/organism/pause"] == "stopping"
        assert "log_unavailable" not in codes.values()
        assert {entry["event"] for entry in log.entries} == {"request"}  # and no failure


@pytest.mark.parametrize(("code", "status"), [("SQLITE_CANTOPEN", 503), ("SQLITE_IOERR", 503), ("SQLITE_CORRUPT", 500)])
async def test_no_path_of_the_disk_is_reported_to_a_client(tmp_path: Path, code: str, status: int) -> None:
    plan = Plan()
    async with served(HELLO, tmp_path / "data", parts=Parts(driver=FaultyDriver(plan))) as server:
        await server.inject()
        plan.is_broken = plan.is_unreadable = code
        found = [await server.call("POST", "/inject", json=BODIES["/inject"]) for _ in range(3)]
        found += [await server.call("GET", path) for path in ("/messages?q=x", "/log?limit=500")]
        plan.is_broken = plan.is_unreadable = ""
        assert [answer.status_code for answer in found[3:]] == [status] * 2
        assert not [answer.text for answer in found if str(tmp_path) in answer.text]
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            await server.until(lambda: server.log.available)


DAMAGES = {
    "emptied": "UPDATE content SET salt = x'', json = x'', xml = x''",
    "no JSON": "UPDATE content SET json = x'ff'",
    "of another owner": "UPDATE content SET owner = 'other'",
    "missing": "DELETE FROM content",
}


@pytest.fixture
async def on_disk(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(data=tmp_path / "data") as server:
        yield server


@pytest.mark.parametrize("damage", DAMAGES)
async def test_damaged_content_is_answered_by_a_code_of_its_own_wherever_it_would_be_shown(
    on_disk: Served, tmp_path: Path, damage: str
) -> None:
    answer = await on_disk.inject("greeter", {"name": "Dan"})
    message = answer["message_id"]
    with closing(Pysqlite().connect(str(tmp_path / "data" / "tenants" / "default" / "log.sqlite"))) as database:
        database.execute(DAMAGES[damage])
    position = (await on_disk.call("GET", "/log?type=message_sent")).json()["events"][0]["position"]
    for path in (
        f"/messages/{message}",
        f"/messages/{message}?xml=true",
        "/messages",
        "/messages?xml=true",
        f"/threads/{answer['thread_id']}/messages",
        f"/messages?at={position}",
        "/log?content=true",
    ):
        refused = await on_disk.call("GET", path)
        assert (path, refused.status_code, refused.json()["error"]["code"]) == (path, 500, "content_damaged")
        assert "content at position" in refused.json()["error"]["message"]

"""A real server is asked whatever its OpenAPI says can be asked, and what it says cannot: schemathesis, all checks.

Which 400 a request with every field in order may still get: a cursor that this server has not sealed, an id of an event
that no stream has sent, a moment that is yet to come or an end before its beginning, an injection that says in the
query what its JSON body says itself, words for a listener that takes a payload of its own, arguments of another tool,
and a model that is not there, or not of those dimensions. Some agents cannot stream, and not all can be forced: 406.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
from structlog.testing import capture_logs

from organism.server.app import ROUTES
from organism.server.http import auth
from organism.server.http.call import Route
from tests.server.served import HELLO, TOKEN, Served, served
from tests.tools import outside

SCHEMATHESIS: Final = Path(sys.executable).with_name("schemathesis")
NOT_ASKED: Final = {
    "/api/v1/organism/stop": "it would stop the server",
    "/api/v1/events": "its answer has no end",
    "/mcp": "its messages are of a protocol of its own",
    "/a1/rag/indices/{index_id}/documents/append": "a document may be called so, and what its address takes is allowed",
    "/a1/rag/indices/{index_id}/files": "what is asked there is a file of one of several types",
    **dict.fromkeys((f"/api/v1/threads/{act}" for act in ("kill", "pause", "resume")), "the same of a thread"),
    **dict.fromkeys((f"/api/v1/dead-letters/{act}" for act in ("replay", "discard")), "the same of a dead letter"),
}
"""What other tests ask."""
AGENT: Final = "concise-de"
PARTS: Final = 4
"""The routes are asked in so many parts, each by a test of its own, so that they run in parallel."""
ACCEPTED: Final = ["2xx", "3xx", 401, 403, 404, 409, 422, 429]
"""Of a request with every field in order; 422 is a key that was used with another body."""
BOUND: Final = [route.address for route in ROUTES if {"cursor", "at", "from", "buckets"} & set(route.query)]
ENDS: Final = (
    "/inject",
    "/invoke",
    "/execute",
    "/chat",
    "{sid}/messages",
    "/completions",
    "/embeddings",
    "/tenant/config",
)
SENDING: Final = [route.address for route in ROUTES if route.path.endswith(ENDS)]


def settings(sent: dict[str, Any], session: str) -> str:
    """The settings, with the ids of something that is there."""
    ids = {"threads": sent["thread_id"], "messages": sent["message_id"]}
    lines = ["[checks.positive_data_acceptance]", f"expected-statuses = {json.dumps(ACCEPTED)}"]
    for resource, found in ids.items():
        lines += ["[[operations]]", f'include-path-regex = "^/api/v1/{resource}/"', "[operations.parameters]"]
        lines += [f"id = {json.dumps(found)}"]
    lines += ["[[operations]]", 'include-path-regex = "^/a1/agents/"', "[operations.parameters]"]
    lines += [f"name = {json.dumps(AGENT)}", f"sid = {json.dumps(session)}"]
    for path in [*BOUND, *SENDING]:
        lines += ["[[operations]]", f'include-path = "{path}"', "[operations.checks.positive_data_acceptance]"]
        lines += [f"expected-statuses = {json.dumps([*ACCEPTED, 400, 406])}"]
    return "\n".join(lines)


def part_of_routes(part: int) -> list[Route]:
    """The routes of every ``PARTS``-th resource, so that what is paused is resumed; part ``PARTS`` is all of them."""
    routes = [route for route in ROUTES if route.address not in NOT_ASKED]
    resources = sorted({resource(route) for route in routes})
    chosen = resources if part == PARTS else resources[part::PARTS]
    return [route for route in routes if resource(route) in chosen]


def resource(route: Route) -> str:
    return route.path.split("/")[1]


async def asked(server: Served, folder: Path, paths: list[str], examples: int) -> tuple[int, str]:
    """Run it; gives its exit code and what it said."""
    sent = await server.inject()
    config = folder / "schemathesis.toml"
    headers = {**server.bearer, "SPASS-User-Id": "dan"}
    session = await server.client.post(f"/a1/agents/{AGENT}/sessions", headers=headers)
    config.write_text(settings(sent, session.json()["id"]))
    process = await asyncio.create_subprocess_exec(
        *(SCHEMATHESIS, "--config-file", config, "run", f"{server.url}/openapi.json"),
        *("--checks", "all", "--phases", "examples,coverage,fuzzing", "--max-examples", str(examples), "--seed", "1"),
        *("--generation-deterministic", "--no-color"),
        *("--max-response-time", "60", "--request-timeout", "60"),  # the machine may be busy
        *("--warnings", "off", "--header", f"Authorization: Bearer {TOKEN}"),
        *(part for path in paths for part in ("--include-path", path)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=folder,
    )
    said, _ = await process.communicate()
    return process.returncode or 0, said.decode()


@pytest.fixture
async def hello(tmp_path: Path) -> AsyncIterator[Served]:
    """The hello organism, whose tools ask a wiki of the test's own and no other."""
    page = b'{"title":"Dan","extract":"Dan is a name.","query":{"search":[]}}'
    async with outside.served(lambda _: outside.answer(page, kind="application/json")) as wiki:
        config = tmp_path / "organism.yaml"
        tools = f'\ntools: {{wikipedia: {{base_url: "http://127.0.0.1:{wiki.port}"}}}}\n'
        config.write_text(HELLO.read_text() + tools)
        shutil.copytree(HELLO.parent / "config/agents", tmp_path / "config/agents")
        async with served(config) as server:
            yield server


@pytest.fixture
def guessing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who guesses tokens is not slowed down: that it is so is another test's matter."""
    monkeypatch.setattr(auth, "FAILURES", 1_000_000)


async def check_whatever_can_be_asked(server: Served, folder: Path, part: int, examples: int) -> None:
    routes = part_of_routes(part)
    with capture_logs() as logged:
        code, said = await asked(server, folder, list(dict.fromkeys(route.address for route in routes)), examples)
    assert code == 0, said[-20_000:]
    reached = {(entry.get("method"), entry.get("route")) for entry in logged}
    assert {(route.method, route.address) for route in routes} <= reached
    assert (await server.get("/organism"))["status"] in {"running", "paused"}


@pytest.mark.thorough
@pytest.mark.usefixtures("guessing")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", range(PARTS))
async def test_whatever_can_be_asked_is_answered_as_described(hello: Served, tmp_path: Path, part: int) -> None:
    await check_whatever_can_be_asked(hello, tmp_path, part, 10)


@pytest.mark.long
@pytest.mark.usefixtures("guessing")
@pytest.mark.timeout(7200)
async def test_and_so_it_is_a_thousand_times(hello: Served, tmp_path: Path) -> None:
    await check_whatever_can_be_asked(hello, tmp_path, PARTS, 1000)

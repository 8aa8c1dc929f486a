"""The audit files of the real command: what was acknowledged has its line, once, also after kill -9."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import httpx2
import orjson

from tests.e2e.serving import Process, serving

CHAT = "/a1/agents/concise-de"
DAN = {"SPASS-User-Id": "dan"}


def lines(data: Path) -> list[dict[str, Any]]:
    """All whole lines."""
    texts = [path.read_bytes() for path in sorted((data / "audit").glob("*"))]
    return [orjson.loads(line) for text in texts for line in text.split(b"\n")[:-1]]


async def post(server: Process, path: str, body: Any, **headers: str) -> Any:
    async with server.client() as client:
        answer = await client.post(server.url + path, json=body, headers={**DAN, **headers})
    assert answer.status_code < 300, answer.text
    return answer.json()


async def test_each_acknowledged_call_has_its_line_once_though_the_server_is_killed_again_and_again(
    tmp_path: Path,
) -> None:
    acknowledged: list[str] = []

    async def inject_until_it_dies(server: Process, life: int) -> None:
        for number in range(200):
            own = f"call-{life}-{number}"
            try:
                sent = await post(server, "/v1/tools/execute", EXECUTE, **{"SPASS-Request-Id": own})
            except httpx2.HTTPError:  # it is dead
                return
            assert sent == {"result": {"value": "42", "exact": True, "fraction": ""}}
            acknowledged.append(own)
            if number == 10 * (life + 1):
                await server.end(signal.SIGKILL)

    for life in range(3):
        async with serving(tmp_path) as server:
            await inject_until_it_dies(server, life)
    async with serving(tmp_path) as server:
        await post(server, "/v1/tools/execute", EXECUTE)
        assert await server.end() == 0
    found = lines(tmp_path)
    assert [line["position"] for line in found] == sorted({line["position"] for line in found})
    requests = [line["fields"]["request_id"] for line in found if line["event"] == "call"]
    assert len(requests) == len(set(requests))
    assert set(acknowledged) <= set(requests)


EXECUTE = {"name": "calculator", "arguments": {"expression": "6*7"}}


async def test_what_a_session_does_leads_back_to_the_request_that_began_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        session = await post(server, f"{CHAT}/sessions", {}, **{"SPASS-Request-Id": "begin"})
        posted = await post(
            server,
            f"{CHAT}/sessions/{session['id']}/messages",
            {"message": "Hello!"},
            **{"X-Request-Id": "outer", "SPASS-Parent-Request-Id": "before"},
        )
        assert await server.end() == 0
    found = lines(tmp_path)
    begun, asked, thought = (line["fields"] for line in found)
    assert (begun["action"], begun["request_id"], begun["session_id"]) == ("session_created", "begin", session["id"])
    assert (asked["request_id"], asked["parent_request_id"], asked["user"]) == ("outer", "before", "dan")
    assert (thought["parent_request_id"], thought["thread_id"]) == ("outer", posted["thread_id"])
    assert {line["session_id"] for line in (begun, asked, thought)} == {session["id"]}
    assert "Hello!" not in str(found)

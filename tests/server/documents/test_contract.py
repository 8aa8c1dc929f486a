"""The clients of the tests hold what they are given to the contract: shown by what breaks it."""

from __future__ import annotations

from typing import Any

import httpx2
import orjson
import pytest

from tests.server.contract import contract
from tests.server.served import Frames, Served

SENT = {"thread_id": "thr-1", "message_id": "msg-1", "position": 3}
JSON = {"content-type": "application/json", "x-request-id": "req-1"}
REFUSED = {"error": {"type": "conflict", "code": "thread_killed", "message": "No.", "param": None, "request_id": "r"}}


def answer(method: str, path: str, status: int, value: Any, headers: dict[str, str] = JSON) -> httpx2.Response:
    """An answer as it never came."""
    request = httpx2.Request(method, f"http://127.0.0.1{path}")
    return httpx2.Response(status, headers=headers, content=orjson.dumps(value), request=request)


def test_what_the_contract_gives_passes() -> None:
    contract().check_answer(answer("POST", "/api/v1/inject", 202, SENT))
    contract().check_answer(answer("POST", "/api/v1/inject", 409, REFUSED))
    contract().check_frame(orjson.dumps({"event": "ok", "position": 3}))


@pytest.mark.parametrize(
    ("breach", "said"),
    [
        (answer("POST", "/api/v1/inject", 202, {**SENT, "news": 1}), "news"),
        (answer("POST", "/api/v1/inject", 202, {**SENT, "position": -1}), "position"),
        (answer("POST", "/api/v1/inject", 201, SENT), "201 is not described"),
        (answer("POST", "/api/v1/inject", 202, SENT, {**JSON, "content-type": "text/plain"}), "text/plain"),
        (answer("POST", "/api/v1/agents/x/pause", 503, REFUSED), "Retry-After"),
        (answer("GET", "/api/v1/nowhere", 409, REFUSED), "thread_killed"),
    ],
)
def test_an_answer_that_the_contract_does_not_give_is_found(breach: httpx2.Response, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        contract().check_answer(breach)


@pytest.mark.parametrize("news", [{"event": "surprise"}, {"news": 1}, {"position": None}])
def test_a_frame_that_the_contract_does_not_know_is_found(news: dict[str, Any]) -> None:
    with pytest.raises(AssertionError):
        contract().check_frame(orjson.dumps([{"event": "ok", "position": 3}, {"event": "ok", "position": 3, **news}]))


async def test_the_clients_of_the_tests_hold_what_they_are_given(
    hello: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(contract(), "check_answer", seen.append)
    monkeypatch.setattr(contract(), "check_frame", seen.append)
    given = await hello.client.get("/healthz")
    async with hello.socket() as socket:
        first = await Frames(socket).next()
    assert seen[0] is given
    assert orjson.loads(seen[1]) == first

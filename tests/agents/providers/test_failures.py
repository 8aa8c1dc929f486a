"""Which fault a status is, how long it asks to wait, and what the error says."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from organism.agents.providers import Fault, ProviderError
from organism.agents.providers.anthropic import AnthropicProvider
from organism.agents.providers.openai import OpenAIProvider
from organism.agents.providers.server import Waits
from tests.agents.peer.answers import Answer
from tests.agents.peer.steering import Peer
from tests.agents.providers.asking import KEY, PROMPT, ask, fault

NOW = 1_800_000_000.0
FAULTS: dict[Fault, tuple[int, ...]] = {
    "rejected": (301, 307, 400, 402, 404, 405, 413, 418, 422, 451),
    "unauthorized": (401, 403),
    "timeout": (408, 504, 524),
    "unavailable": (409, 425, 500, 501, 502, 503, 529, 599),
    "rate_limited": (429,),
}
STATUSES = [(status, fault) for fault, statuses in FAULTS.items() for status in statuses]
SPRING = datetime.fromtimestamp(NOW, UTC)
WAITS: tuple[tuple[dict[str, str], float | None], ...] = (
    ({"retry-after": "3"}, 3.0),
    ({"retry-after": "0.5"}, 0.5),
    ({"retry-after": "-3"}, 0.0),
    ({"retry-after": format_datetime(SPRING + timedelta(seconds=90), usegmt=True)}, 90.0),
    ({"retry-after": format_datetime(SPRING - timedelta(seconds=90), usegmt=True)}, 0.0),
    ({"retry-after-ms": "250"}, 0.25),
    ({"retry-after-ms": "250", "retry-after": "3"}, 0.25),
    ({}, None),
    ({"retry-after": "soon"}, None),
    ({"retry-after": "inf"}, None),
    ({"retry-after": "Fri, 99 Jan 2027 08:00:00 GMT"}, None),
)


class Refusing:
    """A server that refuses, and a provider that asks it."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.host = peer.place.removeprefix("http://")
        self.provider = OpenAIProvider(peer.url, KEY, "MODELS_KEY", Waits(now=lambda: NOW))

    async def with_(self, status: int, error: Any = None, **headers: str) -> ProviderError:
        """The fault of this status, with this error and these headers."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        await self.peer.script(Answer(status=status, body=json.dumps({"error": error}).encode(), headers=named))
        return await fault(self.provider)


@pytest.fixture
async def refused(peer: Peer) -> AsyncIterator[Refusing]:
    made = Refusing(peer)
    yield made
    await made.provider.close()


@pytest.mark.parametrize(("status", "expected"), STATUSES)
async def test_each_status_is_a_fault(refused: Refusing, status: int, expected: Fault) -> None:
    assert (await refused.with_(status)).fault == expected


@pytest.mark.parametrize(("headers", "seconds"), WAITS)
async def test_the_time_to_wait_is_read_in_every_form(
    refused: Refusing, headers: dict[str, str], seconds: float | None
) -> None:
    assert (await refused.with_(429, **headers)).retry_after_s == seconds


async def test_an_account_without_credit_is_not_asked_again(refused: Refusing) -> None:
    broke = {"code": "insufficient_quota", "message": "You exceeded your quota."}
    error = await refused.with_(429, broke, retry_after="3")
    assert (error.fault, error.retry_after_s) == ("rejected", None)
    assert str(error) == (
        f"{refused.host} refused the request (429, insufficient_quota): You exceeded your quota."
        " The account has no credit left."
    )


async def test_a_key_that_is_not_taken_is_reported_by_its_variable_without_the_servers_words(refused: Refusing) -> None:
    error = await refused.with_(401, {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"})
    assert str(error) == (
        f"{refused.host} does not take the key (401): set the variable MODELS_KEY to a valid one and start again."
    )


async def test_a_model_that_does_not_exist_is_named_with_what_else_may_be_wrong(refused: Refusing) -> None:
    assert str(await refused.with_(404)) == (
        f"{refused.host} refused the request (404). Is there a model `tested`, and does `base_url` lead to the API"
        " (as …/v1 does)?"
    )


async def test_no_error_holds_the_prompt_or_the_key(refused: Refusing) -> None:
    body = {"message": f"Bad: {PROMPT} {KEY}", "type": KEY, "code": PROMPT}
    errors = [await refused.with_(status, body) for status, _ in STATUSES]
    shown = "\n".join(f"{error!r} {error} {error.__cause__} {error.__context__}" for error in errors)
    assert KEY not in shown
    assert PROMPT not in shown


async def test_no_error_holds_a_credential_of_the_address() -> None:
    provider = OpenAIProvider(f"http://user:{KEY}@127.0.0.1:9/v1?key={KEY}", KEY)
    assert KEY not in str(await fault(provider))
    await provider.close()


@pytest.mark.parametrize("make", [OpenAIProvider, AnthropicProvider])
async def test_no_level_of_logging_shows_the_prompt_or_the_key(
    peer: Peer, caplog: pytest.LogCaptureFixture, make: type[OpenAIProvider | AnthropicProvider]
) -> None:
    caplog.set_level(logging.DEBUG)
    await peer.script(Answer(text="Hi."), Answer(status=400, error="No."))
    provider = make(peer.url, KEY)
    assert (await ask(provider, PROMPT)).text == "Hi."
    await fault(provider)
    await provider.close()
    assert caplog.records
    assert PROMPT not in caplog.text
    assert KEY not in caplog.text

"""The connections of the provider `openai`: kept, closed, waited for, broken."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from organism.agents.providers import ProviderError
from organism.agents.providers.openai import OpenAIProvider
from organism.agents.providers.server import Waits
from organism.model.completion import TextDelta
from tests.agents.peer.answers import Answer
from tests.agents.peer.steering import Peer
from tests.agents.providers.asking import KEY, ask, fault, request
from tests.tools.certificates import certificate
from tests.tools.outside import served


@pytest.fixture
async def provider(peer: Peer) -> AsyncIterator[OpenAIProvider]:
    made = OpenAIProvider(peer.url, KEY, "SOME_KEY")
    yield made
    await made.close()


async def test_the_first_words_are_there_before_the_last_are_sent(peer: Peer, provider: OpenAIProvider) -> None:
    await peer.script(Answer(text="abcdef", hang_after=4))
    parts = provider.stream(request("Hello!"))
    assert await anext(parts) == TextDelta("ab")
    assert (await peer.requests())[0]["end"] is None
    await cast("Any", parts).aclose()


async def test_a_reader_that_goes_at_the_end_leaves_the_connection_to_the_next_call(
    peer: Peer, provider: OpenAIProvider
) -> None:
    for _ in range(5):
        parts = cast("Any", provider.stream(request("Hello!")))
        while not hasattr(await anext(parts), "reason"):
            pass
        await parts.aclose()
    await peer.until(requests=5, open=2)


async def test_a_closed_provider_holds_no_connection_and_asks_nothing(peer: Peer) -> None:
    provider = OpenAIProvider(peer.url)
    await ask(provider, "Hello!")
    await provider.close()
    await peer.until(open=1)
    assert (await fault(provider)).fault == "unavailable"
    await provider.close()


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        provider = OpenAIProvider(f"http://127.0.0.1:{unused.getsockname()[1]}/v1")
        error = await fault(provider)
    assert error.fault == "unavailable"
    assert "cannot be reached; is it running, and is `base_url` right?" in str(error)
    await provider.close()


async def test_a_server_that_takes_no_connection_is_given_up() -> None:
    with socket.socket() as busy, socket.socket() as first, socket.socket() as second:
        busy.bind(("127.0.0.1", 0))
        busy.listen(0)
        for waiting in (first, second):  # so many the system lets in though nobody accepts them
            waiting.settimeout(0)
            waiting.connect_ex(busy.getsockname())
        provider = OpenAIProvider(f"http://127.0.0.1:{busy.getsockname()[1]}/v1", waits=Waits(connect_s=0.1))
        error = await fault(provider)
        await provider.close()
    assert (error.fault, "could not be connected to within 0.1 s" in str(error)) == ("timeout", True)


async def test_a_server_whose_certificate_is_not_trusted_is_named_as_such(tmp_path: Path) -> None:
    serving, _ = certificate(tmp_path, "localhost")
    async with served(lambda _: b"", serving) as server:
        provider = OpenAIProvider(f"https://localhost:{server.port}/v1", KEY)
        error = await fault(provider)
        await provider.close()
        assert (error.fault, "does not show a certificate that is trusted" in str(error)) == ("unavailable", True)
        assert server.heads == []


async def test_a_connection_that_breaks_before_the_answer_is_unavailable(peer: Peer, provider: OpenAIProvider) -> None:
    await peer.script(Answer(cut_after=0))
    assert "hung up before it answered" in str(await fault(provider))


async def test_an_answer_that_is_whole_is_not_lost_to_a_connection_that_breaks_behind_it(
    peer: Peer, provider: OpenAIProvider
) -> None:
    await peer.script(Answer(text="Hi.", pieces=1, cut_after=4))
    assert (await ask(provider, "Hello!")).finish == "stop"


async def test_an_answer_that_is_whole_is_not_waited_for_any_more(peer: Peer) -> None:
    await peer.script(Answer(text="Hi.", pieces=1, hang_after=4))
    provider = OpenAIProvider(peer.url, waits=Waits(end_s=0.05))
    assert (await ask(provider, "Hello!")).finish == "stop"
    await provider.close()


@pytest.mark.parametrize(
    ("answer", "waits", "timeout_s", "missed"),
    [
        (Answer(hang_after=0), Waits(first_share=0.0002), 500, "did not begin to answer within 0.1 s"),
        (Answer(hang_after=1), Waits(first_share=0.0002), 500, "did not begin to answer within 0.1 s"),
        (Answer(text="abcdef", hang_after=4), Waits(next_share=0.0002), 500, "did not go on within 0.1 s"),
        (
            Answer(text="a" * 10_000, pieces=10_000, drip_s=0.01),
            Waits(first_share=1, next_share=1),
            0.3,
            "did not end its answer within 0.3 s",
        ),
    ],
)
async def test_a_server_is_waited_for_as_long_as_its_first_its_next_and_its_last_event_may_take(
    peer: Peer, answer: Answer, waits: Waits, timeout_s: float, missed: str
) -> None:
    await peer.script(answer)
    provider = OpenAIProvider(peer.url, waits=waits)
    error = await fault(provider, timeout_s=timeout_s)
    assert (error.fault, missed in str(error)) == ("timeout", True)
    await peer.until(gone=1)
    await provider.close()


async def test_a_redirect_is_not_followed(peer: Peer, provider: OpenAIProvider) -> None:
    await peer.script(Answer(status=307, headers={"Location": f"{peer.place}/elsewhere/chat/completions"}, body=b""))
    error = await fault(provider)
    assert (error.fault, "Set `base_url`" in str(error)) == ("rejected", True)
    assert len(await peer.requests()) == 1


async def test_of_a_long_error_the_beginning_is_read(peer: Peer, provider: OpenAIProvider) -> None:
    await peer.script(Answer(status=500, body=b"x" * 200_000, chunk_bytes=50_000, hang_after=4))
    assert (await fault(provider, timeout_s=500)).fault == "unavailable"


async def test_an_answer_in_an_encoding_is_not_unpacked(peer: Peer, provider: OpenAIProvider) -> None:
    await peer.script(Answer(body=gzip.compress(b"x" * 1_000_000), headers={"Content-Encoding": "gzip"}))
    error = await fault(provider)
    assert (error.fault, "in the encoding `gzip`, which was not asked for" in str(error)) == ("malformed", True)
    assert (await peer.requests())[0]["headers"]["accept-encoding"] == "identity"


async def test_a_request_that_no_json_can_hold_is_rejected_before_it_is_sent(
    peer: Peer, provider: OpenAIProvider
) -> None:
    with pytest.raises(ProviderError) as caught:
        await ask(provider, "half a \ud83c")
    assert caught.value.fault == "rejected"
    assert await peer.requests() == []


async def test_more_calls_than_a_pool_usually_has_do_not_wait_for_each_other(
    peer: Peer, provider: OpenAIProvider
) -> None:
    await peer.script(Answer(hang_after=0, times=0))
    calls = [asyncio.ensure_future(ask(provider, "Hello!")) for _ in range(120)]
    await peer.until(requests=120)
    for call in calls:
        call.cancel()
    await asyncio.wait(calls)

"""Whatever a server says: the right parts or the right fault, and never anything else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from organism.agents.providers import ProviderError
from organism.agents.providers.anthropic import AnthropicProvider
from organism.agents.providers.openai import OpenAIProvider
from organism.agents.providers.transport import MOST_BYTES
from tests.agents.peer.answers import Answer
from tests.agents.peer.steering import Peer, steering_client
from tests.agents.providers import odd_chat, odd_messages
from tests.agents.providers.asking import ask
from tests.agents.providers.odd_chat import sse, summed

Make = type[OpenAIProvider | AnthropicProvider]

SMALL_BYTES = 20_000
MADE_IDS = ("call_", "toolu_", "new-")
CHAT = [pytest.param(OpenAIProvider, *odd, id=f"chat: {name}") for name, odd in odd_chat.ODD.items()]
MESSAGES = [pytest.param(AnthropicProvider, *odd, id=f"messages: {name}") for name, odd in odd_messages.ODD.items()]


@pytest.mark.parametrize(("make", "body", "expected"), CHAT + MESSAGES)
async def test_an_odd_answer_gives_its_parts_or_its_fault(
    peer: Peer, make: Make, body: bytes, expected: str | list[Any]
) -> None:
    for chunk_bytes in (0, 5 if len(body) < SMALL_BYTES else 4093):
        assert _without_made_ids(await _came(peer, make, body, chunk_bytes)) == _without_made_ids(expected)


async def _came(peer: Peer, make: Make, body: bytes, chunk_bytes: int = 0) -> str | list[Any]:
    """The fault of an answer, or its parts in short."""
    kind = "application/json" if body.lstrip()[:1] in {b"{", b"["} else "text/event-stream"
    kind = "text/html" if body.lstrip()[:1] == b"<" else kind
    await peer.script(Answer(body=body, chunk_bytes=chunk_bytes, headers={"Content-Type": kind}))
    provider = make(peer.url)
    try:
        return summed((await ask(provider, "Hello!")).parts)
    except ProviderError as error:
        return error.fault
    finally:
        await provider.close()


def _without_made_ids(summary: str | list[Any]) -> Any:
    """Ids that were made here are random."""
    if isinstance(summary, str):
        return summary
    return [
        ("made", *each[1:]) if isinstance(each, tuple) and str(each[0]).startswith(MADE_IDS) else each
        for each in summary
    ]


@pytest.mark.parametrize("make", [OpenAIProvider, AnthropicProvider])
@pytest.mark.parametrize("event", [b"data: " + b"x" * (1 << 20), b"data: " + b"x" * (1 << 20) + b"\n"])
async def test_an_event_without_end_is_read_no_further(peer: Peer, make: Make, event: bytes) -> None:
    await peer.script(Answer(body=event, repeats=9, hang_after=10))
    provider = make(peer.url)
    with pytest.raises(ProviderError, match="more than 8 MiB"):
        await ask(provider, "Hello!", timeout_s=500)
    await peer.until(gone=1)
    await provider.close()


async def test_an_answer_without_end_is_read_no_further(peer: Peer) -> None:
    comment = b":" + b"x" * (1 << 20) + b"\n\n"
    await peer.script(Answer(body=comment, repeats=MOST_BYTES // len(comment) + 1))
    provider = OpenAIProvider(peer.url)
    with pytest.raises(ProviderError, match="more than 64 MiB"):
        await ask(provider, "Hello!", timeout_s=500)
    await provider.close()


KEYS = (
    "choices delta message content tool_calls function name arguments index id type finish_reason usage prompt_tokens "
    "completion_tokens cost error code text reasoning content_block partial_json input stop_reason input_tokens "
    "output_tokens thinking x"
)
VALUES = (
    "hi stop length error tool_use tool_calls text {} 429 null message_start message_delta message_stop "
    "content_block_start content_block_delta text_delta"
)
NAMES = st.sampled_from(KEYS.split())
WORDS = st.sampled_from([*VALUES.split(), "", '{"a":', "🎉", "\ud83c", "a\udf89"])
LEAVES = st.none() | st.booleans() | st.integers(-2, 600) | st.floats() | WORDS | st.text(max_size=4)
DOCUMENTS = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5), max_leaves=20
)
CHUNKS = DOCUMENTS | st.builds(
    lambda delta, finish: {"choices": [{"delta": delta, "finish_reason": finish}]}, DOCUMENTS, LEAVES
)
PLACES = st.builds(
    lambda kind, rest: {"type": kind, **(rest if isinstance(rest, dict) else {"delta": rest})}, WORDS, DOCUMENTS
)


class Played:
    """A peer, and providers that ask it, in an event loop of their own: hypothesis calls plain functions."""

    def __init__(self, place: str) -> None:
        self._runner = asyncio.Runner()
        self._client = self._runner.run(self._made(steering_client))
        self._peer = Peer(place, self._client)
        self._providers = [make(self._peer.url) for make in (OpenAIProvider, AnthropicProvider)]

    async def _made(self, make: Any) -> Any:
        return make()

    def is_understood(self, at: int, body: bytes, kind: str) -> bool:
        """Whether it came to parts of whole characters with one end; a fault otherwise. Any other error is raised."""
        return self._runner.run(self._is_understood(at, body, kind))

    async def _is_understood(self, at: int, body: bytes, kind: str) -> bool:
        await self._peer.reset()
        await self._peer.script(Answer(body=body, headers={"Content-Type": kind}))
        try:
            orjson.dumps(summed((await ask(self._providers[at], "Hello!")).parts), default=str)
        except ProviderError:
            return False
        return True

    def close(self) -> None:
        """Close all connections."""
        for closing in (*self._providers, self._client):
            self._runner.run(closing.close() if hasattr(closing, "close") else closing.aclose())
        self._runner.close()


@pytest.fixture(scope="module")
def played(peer_place: str) -> Iterator[Played]:
    made = Played(peer_place)
    yield made
    made.close()


def _escaped(document: Any) -> bytes:
    return b"data: " + json.dumps(document).encode() + b"\n\n"


AT = st.sampled_from([0, 1])
STREAM, JSON = "text/event-stream", "application/json"


SOUND = (sse(odd_chat.SOUND), odd_messages.SOUND)
BODIES = st.one_of(
    st.lists(CHUNKS | PLACES, max_size=6).map(lambda documents: (sse(*map(_escaped, documents)), STREAM)),
    st.lists(PLACES, max_size=6).map(
        lambda documents: (b"".join(b"event: message_delta\n" + _escaped(each) for each in documents), STREAM)
    ),
    DOCUMENTS.map(lambda document: (json.dumps(document).encode(), JSON)),
    st.tuples(st.binary(max_size=200), st.sampled_from(SOUND), st.binary(max_size=200)).map(
        lambda parts: (b"".join(parts), STREAM)
    ),
)


@given(AT, BODIES)
def test_whatever_comes_is_parts_or_a_fault(played: Played, at: int, body: tuple[bytes, str]) -> None:
    played.is_understood(at, *body)


@given(AT, st.data())
def test_the_beginning_of_a_sound_answer_is_never_taken_for_all_of_it(
    played: Played, at: int, data: st.DataObject
) -> None:
    sound = SOUND[at]
    reason = sound.rindex(b"stop_reason" if at else b"finish_reason")
    assert not played.is_understood(at, sound[: data.draw(st.integers(0, reason))], STREAM)

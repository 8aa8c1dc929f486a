"""Whatever a server says: the right parts or the right fault, wherever the bytes are cut; never anything else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from organism.agents.provider import ProviderError
from organism.agents.providers.anthropic import AnthropicProvider
from organism.agents.providers.openai import OpenAIProvider
from organism.model.completion import Part
from tests.agents.peer.answers import Answer
from tests.agents.peer.fixture import Peer
from tests.agents.providers.wire import odd_chat, odd_messages
from tests.agents.providers.wire.reading import (
    REQUEST,
    NewReader,
    chat_reader,
    messages_reader,
    read,
    sse,
    summed,
    told,
)

SIZES = (0, 1, 2, 3, 7, 64)
SMALL_BYTES = 20_000
CHAT = [pytest.param(chat_reader, *odd, id=f"chat: {name}") for name, odd in odd_chat.ODD.items()]
MESSAGES = [pytest.param(messages_reader, *odd, id=f"messages: {name}") for name, odd in odd_messages.ODD.items()]
PROVIDERS: Mapping[NewReader, type[OpenAIProvider | AnthropicProvider]] = {
    chat_reader: OpenAIProvider,
    messages_reader: AnthropicProvider,
}


@pytest.mark.parametrize(("new", "body", "expected"), CHAT + MESSAGES)
def test_an_odd_answer_gives_its_parts_or_its_fault(new: NewReader, body: bytes, expected: str | list[Any]) -> None:
    assert told(new, body) == expected


@pytest.mark.parametrize(("new", "body", "expected"), CHAT + MESSAGES)
def test_it_does_not_matter_where_an_answer_is_cut(new: NewReader, body: bytes, expected: str | list[Any]) -> None:
    sizes = SIZES if len(body) < SMALL_BYTES else (4093,)
    assert [told(new, body, size) for size in sizes] == [expected] * len(sizes)


@pytest.mark.parametrize(("new", "body", "expected"), CHAT + MESSAGES)
async def test_an_odd_answer_comes_through_a_connection(
    peer: Peer, new: NewReader, body: bytes, expected: str | list[Any]
) -> None:
    await peer.script(Answer(body=body, chunk_bytes=5 if len(body) < SMALL_BYTES else 0))
    provider = PROVIDERS[new](peer.url)
    try:
        parts: list[Part] = [part async for part in provider.stream(REQUEST)]
    except ProviderError as error:
        came: str | list[Any] = error.fault
    else:
        came = summed(parts)
    finally:
        await provider.close()
    assert _without_new_ids(came) == _without_new_ids(expected)


def _without_new_ids(summary: str | list[Any]) -> Any:
    """Ids that were made here are of chance."""
    if isinstance(summary, str):
        return summary
    made = ("call_", "toolu_", "new-")
    return [
        ("new", *each[1:]) if isinstance(each, tuple) and str(each[0]).startswith(made) else each for each in summary
    ]


def test_an_answer_out_of_all_measure_is_malformed() -> None:
    comment = b":" + b"x" * (1 << 20) + b"\n\n"
    assert told(chat_reader, comment * 65, len(comment)) == "malformed"
    assert told(chat_reader, comment * 3 + sse(odd_chat.SOUND), len(comment)) == told(chat_reader, sse(odd_chat.SOUND))


NAMES = st.sampled_from(
    [
        *(
            "choices",
            "delta",
            "message",
            "content",
            "tool_calls",
            "function",
            "name",
            "arguments",
            "index",
            "id",
            "type",
        ),
        *("finish_reason", "usage", "prompt_tokens", "completion_tokens", "cost", "error", "code", "text", "reasoning"),
        *("content_block", "partial_json", "input", "stop_reason", "input_tokens", "output_tokens", "thinking", "x"),
    ]
)
WORDS = st.sampled_from(
    [
        *(
            "hi",
            "",
            "stop",
            "length",
            "error",
            "tool_use",
            "tool_calls",
            "text",
            "{}",
            '{"a":',
            "429",
            "null",
            "🎉",
            "\ud83c",
            "a\udf89",
        ),
        *("message_start", "message_delta", "message_stop", "content_block_start", "content_block_delta", "text_delta"),
    ]
)
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
READERS = st.sampled_from([chat_reader, messages_reader])


def _is_understood(new: NewReader, body: bytes) -> bool:
    """Whether it came to parts with one end, of whole characters; a fault is the only other thing that may come."""
    try:
        orjson.dumps(summed(read(new, body)), default=str)
    except ProviderError:
        return False
    return True


def _escaped(document: Any) -> bytes:
    return b"data: " + json.dumps(document).encode() + b"\n\n"


@given(READERS, st.lists(CHUNKS | PLACES, max_size=6), st.sampled_from([b"", b"data: [DONE]\n\n"]))
def test_whatever_json_comes_it_is_parts_or_a_fault(new: NewReader, documents: list[Any], end: bytes) -> None:
    assert _is_understood(new, sse(*map(_escaped, documents), end=end)) in {True, False}


@given(READERS, DOCUMENTS)
def test_whatever_document_comes_it_is_parts_or_a_fault(new: NewReader, document: Any) -> None:
    assert _is_understood(new, _escaped(document).removeprefix(b"data: ")) in {True, False}


@given(READERS, st.binary(max_size=200), st.binary(max_size=200))
@example(chat_reader, b"\r", b"\n")
def test_whatever_bytes_come_they_are_parts_or_a_fault(new: NewReader, before: bytes, after: bytes) -> None:
    body = sse(before, odd_chat.SOUND, after) if new is chat_reader else before + odd_messages.SOUND + after
    assert _is_understood(new, body) in {True, False}


@given(READERS, st.data())
def test_a_sound_answer_that_is_cut_anywhere_is_never_taken_for_malformed(new: NewReader, data: st.DataObject) -> None:
    sound = sse(odd_chat.SOUND) if new is chat_reader else odd_messages.SOUND
    cut = sound[: data.draw(st.integers(0, len(sound)))]
    came = told(new, cut)
    assert came == "unavailable" or came == told(new, sound)

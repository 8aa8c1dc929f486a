"""A run as chunks of a completion: what a reader has cannot be taken back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from organism.model.run import RunEntry
from organism.server.turns.write.openai import CompletionWriter, Head


def entry(kind: str, **data: Any) -> RunEntry:
    return {"type": kind, "data": data}


def block(text: str, block_id: str = "say-1", *, ends: bool = True) -> list[RunEntry]:
    """A block of text, in two deltas."""
    half = len(text) // 2
    parts = [(0, text[:half]), (half, text[half:])]
    deltas = [entry("message_delta", id=block_id, offset=offset, delta=part) for offset, part in parts]
    return [entry("message_start", id=block_id), *deltas, *([entry("message_end", id=block_id)] if ends else [])]


DONE = entry("done", stopReason="stop")


def events(*entries: RunEntry) -> list[str]:
    writer = CompletionWriter(Head("thr-1", 1, "m"), lambda error: orjson.dumps({"error": {"code": error.code}}))
    lines = (b"".join(map(writer.lines, entries)) + writer.end({})).decode().split("\n\n")
    return [line.removeprefix("data: ") for line in lines if line]


def texts(found: list[str]) -> Iterator[str]:
    for event in found:
        chunk = orjson.loads(event) if event != "[DONE]" else {}
        yield from (choice["delta"].get("content", "") for choice in chunk.get("choices", ()))


def test_a_text_that_begins_again_goes_on_where_it_is_the_same() -> None:
    found = events(*block("Hello, you", ends=False), *block("Hello, you of many words."), DONE)
    assert "".join(texts(found)) == "Hello, you of many words."
    assert found[-1] == "[DONE]"


def test_in_other_words_it_ends_the_stream_with_an_error() -> None:
    found = events(*block("Hello, you", ends=False), *block("Goodbye, all of you."), DONE)
    assert "".join(texts(found)) == "Hello, you"
    assert found[-2:] == ['{"error":{"code":"upstream_error"}}', "[DONE]"]


def test_so_does_one_that_becomes_shorter() -> None:
    found = events(*block("Hello, you", ends=False), *block("Hello"), DONE)
    assert found[-2:] == ['{"error":{"code":"upstream_error"}}', "[DONE]"]


def test_an_error_after_which_the_run_succeeds_is_not_shown() -> None:
    failed = entry("error", code="upstream_error", message="Busy.")
    found = events(*block("Hello", ends=False), failed, *block("Hello, you."), DONE)
    assert "".join(texts(found)) == "Hello, you."
    assert orjson.loads(found[-2])["choices"][0]["finish_reason"] == "stop"


def test_a_killed_run_ends_with_its_error() -> None:
    killed = entry("error", code="thread_killed", message="The thread was killed.")
    found = events(*block("Hello", ends=False), killed, entry("done", stopReason="killed"))
    assert found[-2:] == ['{"error":{"code":"thread_killed"}}', "[DONE]"]


def test_what_was_cut_by_a_bound_ends_by_its_length() -> None:
    for reason in ("length", "budget", "tool_rounds"):
        found = events(*block("Hello"), entry("done", stopReason=reason))
        assert orjson.loads(found[-2])["choices"][0]["finish_reason"] == "length"


def test_texts_of_two_rounds_are_separated() -> None:
    found = events(*block("I look."), entry("message", text="Found."), *block("Done.", "say-2"), DONE)
    assert "".join(texts(found)) == "I look.\n\nFound.\n\nDone."

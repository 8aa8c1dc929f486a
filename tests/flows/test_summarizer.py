"""The summarizer that is shipped as a handler: short texts in one call, long ones in parts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.summarizer import PART_CHARS, REQUEST, pieces_of
from organism.events.vocabulary import MessageDead
from tests.flows.thinking import MODEL, Say, Thinking, says, thinking
from tests.flows.world import MakeWorld

SOURCE = "from handlers.summarizer import Summarize, Summary, summarize"
SUMMARIZER = {"handler": "summarize", "payload_class": "Summarize", "model": MODEL}
SENTENCE = "The harbour of Kiel was opened in 1895 and is used by 2,400 ships a year. "


def made(world: MakeWorld, *answers: Say) -> Thinking:
    return thinking(world, {"summarizer": SUMMARIZER}, *answers, source=SOURCE)


async def summary(play: Thinking, text: str, **more: Any) -> dict[str, Any]:
    async with play.running(on_disk=False) as o:
        outcome = await o.inject("summarizer", {"text": text, **more}, wait=True)
    found: dict[str, Any] = outcome.replies[0]
    return found


async def test_a_short_text_is_summarised_in_one_call(world: MakeWorld) -> None:
    play = made(world, says(" In short. "))
    assert await summary(play, SENTENCE) == {"text": "In short.", "parts": 1}
    (messages,) = play.models.calls
    assert [message["role"] for message in messages] == ["system", "user"]
    assert "It is material" in messages[0]["content"]
    assert messages[1]["content"] == REQUEST + SENTENCE.strip()


async def test_a_long_text_is_summarised_in_parts_and_the_summaries_once_more(world: MakeWorld) -> None:
    play = made(world, *(says(f"Part {n}.") for n in range(3)), says("All in all."))
    text = SENTENCE * (PART_CHARS * 5 // 2 // len(SENTENCE))
    assert await summary(play, text) == {"text": "All in all.", "parts": 3}
    assert play.models.calls[3][1]["content"] == f"{REQUEST}Part 0.\n\nPart 1.\n\nPart 2."


async def test_summaries_that_do_not_get_shorter_are_given_as_they_are(world: MakeWorld) -> None:
    endless = {"text": "x" * (PART_CHARS + 1)}
    play = made(world, endless)
    found = await summary(play, SENTENCE * (PART_CHARS // len(SENTENCE) + 1))
    assert found["parts"] == 2
    assert len(play.models.calls) == 2


async def test_a_summary_that_is_withheld_is_none(world: MakeWorld) -> None:
    play = made(world, says("Half of", finish="content_filter"))
    async with play.running(on_disk=False) as o:
        outcome = await o.inject("summarizer", {"text": SENTENCE}, wait=True)
        assert outcome.replies == ()
        (dead,) = await o.records(MessageDead)
    assert "SummaryWithheld: The model gave no whole summary (content_filter)" in dead.event.reason
    assert dead.event.attempts == 1


async def test_nothing_is_summarised_by_nobody(world: MakeWorld) -> None:
    play = made(world)
    assert await summary(play, " \n ") == {"text": "", "parts": 0}
    assert play.models.calls == []


@pytest.mark.parametrize(("is_talk", "words"), [(False, "summarise what"), (True, "summarise a conversation")])
async def test_a_conversation_is_summarised_by_another_prompt(world: MakeWorld, *, is_talk: bool, words: str) -> None:
    play = made(world, says("In short."))
    await summary(play, SENTENCE, is_talk=is_talk)
    assert words in play.models.calls[0][0]["content"]


async def test_the_caller_may_name_the_model(world: MakeWorld) -> None:
    play = made(world, says("One."), says("Two."))
    async with play.running(on_disk=False) as o:
        await o.inject("summarizer", {"text": SENTENCE, "model": "another"}, wait=True)
        await o.inject("summarizer", {"text": SENTENCE}, wait=True)
    assert [options.get("model") for options in play.models.options] == ["another", None]


@given(st.text("ab .\n", max_size=400), st.integers(10, 50))
def test_pieces_are_short_and_nothing_but_spaces_is_lost(text: str, most: int) -> None:
    pieces = list(pieces_of(text, most))
    assert all(0 < len(piece) <= most for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())

"""Sessions that hold more than their model takes: what is refused, what is left out, and that they go on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson
import pytest

from organism.agents.conversation import unfenced
from organism.errors import MessageTooLarge
from organism.events.vocabulary import SessionSettings, StepError
from organism.model.commands import CreateSession, Injected, SendTurn, SessionBegun
from organism.pump.decide.spend import ModelCall, Outcome
from organism.pump.history import said_before
from organism.pump.run.model_call import StreamPart
from organism.sessions.commands import Caller
from organism.sessions.compaction import compact
from organism.sessions.lineage import uncompact
from organism.testing import Running
from tests.flows.stage import at_gate, messages_of, open_gate
from tests.flows.thinking import MODEL, Played, Thinking, agent, call, calls, says, thinking
from tests.flows.world import MakeWorld

SOURCE = """
async def looker(payload: Ask, metadata: HandlerMetadata):
    if payload.text == "wait":
        await gate("looker")
    return HandlerResponse.respond(Told("found " + payload.text * 4000))
"""
WINDOW = 2000
"""Tokens; about 8,000 characters."""
LONG = "x" * 4 * WINDOW
ANN = Caller(user="ann")


@dataclass
class Narrow(Played):
    """Models that refuse what is longer than their context, as their provider counts."""

    tokens: int = WINDOW
    chars_a_token: int = 4
    refused: int = 0

    async def call(self, call: ModelCall, on_part: Callable[[StreamPart], None]) -> Outcome:
        chars = sum(len(message["content"]) for message in messages_of(call))
        if chars > self.tokens * self.chars_a_token:
            self.refused += 1
            return Outcome(None, StepError("context_length_exceeded", f"It takes {self.tokens} tokens."), 1, 0)
        return await super().call(call, on_part)


def made(world: MakeWorld, *answers: dict[str, Any], window: int = WINDOW, **models: Any) -> Thinking:
    listeners = {"looker": {}, "thinker": agent(tools=["looker"])}
    play = thinking(world, listeners, *(answers or ({"text": "Well."},)), source=SOURCE)
    play.models = Narrow(play.models.path, **models)
    set_window(play, window)
    return play


def set_window(play: Thinking, window: int) -> None:
    config = orjson.loads(play.world.config.read_bytes())
    config["models"][MODEL]["context_window"] = window
    config["retry"] = {"attempts": 1}
    play.world.config.write_bytes(orjson.dumps(config))


async def begun(o: Running, **settings: Any) -> str:
    answer = await o.do(CreateSession(agent="thinker", user="ann", settings=SessionSettings(**settings)))
    assert isinstance(answer, SessionBegun)
    return answer.session_id


async def say(o: Running, session: str, text: str, **more: Any) -> str:
    answer = await o.do(SendTurn(session_id=session, user="ann", to="thinker", json={"message": text}, **more))
    assert isinstance(answer, Injected)
    return answer.thread_id


async def said(o: Running, session: str, text: str) -> str:
    """How the turn ended."""
    thread = await say(o, session, text)
    assert await o.tenant.ended(thread, 20)
    return str((await o.thread(thread))["status"])


def prompt_of(play: Thinking) -> str:
    """All that the model was sent at last."""
    return "\n".join(message["content"] for message in play.models.calls[-1])


async def contents(o: Running, session: str) -> list[str]:
    return [str(each["content"]) for each in await said_before(o.log, o.views, session, o.log.head + 1)]


async def test_a_message_that_the_model_cannot_take_is_refused_and_not_kept(world: MakeWorld) -> None:
    play = made(world)
    async with play.running_with(play.models, on_disk=False) as o:
        session = await begun(o)
        with pytest.raises(MessageTooLarge, match=f"about {WINDOW:,} tokens.*room for 1,488.*takes {WINDOW:,} in all"):
            await say(o, session, LONG)
        assert await contents(o, session) == []
        assert await said(o, session, "again") == "completed"


async def test_a_message_that_steers_is_refused_as_well_and_the_turn_goes_on(world: MakeWorld) -> None:
    play = made(world, calls(call("looker", text="wait")), {"text": "Well."})
    async with play.running_with(play.models, on_disk=False) as o:
        session = await begun(o)
        turn = await say(o, session, "Look.")
        await at_gate(o, "looker")
        with pytest.raises(MessageTooLarge):
            await say(o, session, LONG, on_busy="steer")
        halves = [await say(o, session, each * 5000, on_busy="steer") for each in "ab"]
        open_gate(o, "looker")
        for thread in (turn, *halves):
            assert await o.tenant.ended(thread, 20)
        assert (await o.thread(turn))["status"] == "completed"
    assert "b" * 5000 in prompt_of(play)
    assert "a" * 5000 not in prompt_of(play)


async def test_what_was_said_before_is_left_out_where_there_is_no_room_the_oldest_first(world: MakeWorld) -> None:
    play = made(world)
    async with play.running_with(play.models, on_disk=False) as o:
        session = await begun(o)
        for number in range(8):
            assert await said(o, session, f"{number}" * WINDOW) == "completed"
        assert len(await contents(o, session)) == 16
    roles = [message["role"] for message in play.models.calls[-1]]
    assert roles == ["system", *["user", "assistant"] * 2, "user"]
    assert "earlier messages]" in play.models.calls[-1][2]["content"]
    assert "6" * WINDOW in prompt_of(play)
    assert "4" * WINDOW not in prompt_of(play)


async def test_a_message_of_before_for_which_the_model_is_too_small_now_ends_no_session(world: MakeWorld) -> None:
    """It is in the log of an earlier life; its first words are in the prompt."""
    play = made(world, window=100_000, tokens=100_000)
    async with play.running_with(play.models) as o:
        session = await begun(o, compact_keep_last_n=2)
        assert await said(o, session, "one") == "completed"
        assert await said(o, session, LONG) == "completed"
    set_window(play, WINDOW)
    async with play.running_with(Narrow(play.models.path)) as o:
        assert await said(o, session, "two") == "completed"
        assert "xxx" in prompt_of(play)
        assert "characters]" in prompt_of(play)
        assert await contents(o, session) == ["one", "Well.", LONG, "Well.", "two", "Well."]


async def test_a_turn_whose_message_found_no_room_leaves_the_session_to_the_next(world: MakeWorld) -> None:
    """The model was said to take more than it does."""
    play = made(world, window=100_000)
    async with play.running_with(play.models, on_disk=False) as o:
        session = await begun(o)
        assert await said(o, session, LONG) == "error"
        assert await said(o, session, "two") == "completed"


async def test_where_the_provider_counts_more_tokens_than_estimated_it_is_sent_less(world: MakeWorld) -> None:
    play = made(world, chars_a_token=1)
    async with play.running_with(play.models, on_disk=False) as o:
        session = await begun(o)
        for number in range(8):
            assert await said(o, session, f"{number}" * 500) == "completed"
    assert "earlier messages]" in prompt_of(play)
    assert play.models.refused  # type: ignore[attr-defined]  # as it was made


@pytest.mark.parametrize("count", [1, 3])
async def test_huge_results_are_cut_in_their_fences_and_older_ones_left_out_first(world: MakeWorld, count: int) -> None:
    looks = [calls(*(call("looker", text=f"{at}{each}") for each in range(count))) for at in range(3)]
    play = made(world, *looks, says("Found."))
    async with play.running_with(play.models, on_disk=False) as o:
        session = await begun(o)
        assert await said(o, session, "Look three times.") == "completed"
        kept = [each for each in await contents(o, session) if each.startswith('{"text":"found')]
    results = [unfenced(each["content"]) for each in play.models.calls[-1] if each["role"] == "tool"]
    assert [len(each) for each in kept] == [len('{"text":"found ') + 8000 + len('"}')] * 3 * count
    assert all(each is not None and "left out" in each.label for each in results)
    lengths = [len(each.text) for each in results if each is not None]
    assert lengths[-count:] == [lengths[-1]] * count
    assert 0 < lengths[-1] < 4 * WINDOW
    assert lengths[0] == 0


async def test_a_successor_that_begins_with_long_messages_goes_on_and_so_does_its_whole_history(
    world: MakeWorld,
) -> None:
    play = made(world, window=100_000, tokens=100_000)
    async with play.running_with(play.models) as o:
        session = await begun(o, compact_keep_last_n=2)
        for text in ("one", LONG, LONG):
            assert await said(o, session, text) == "completed"
    set_window(play, WINDOW)
    async with play.running_with(Narrow(play.models.path)) as o:
        successor = (await compact(o.tenant, session, ANN)).successor_session_id
        assert await said(o, successor, "two") == "completed"
        assert "[compaction summary" in prompt_of(play)
        whole = (await uncompact(o.tenant, successor, ANN)).session_id
        assert await said(o, whole, "three") == "completed"

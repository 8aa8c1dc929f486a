"""The turn loop in a session: what its model reads of earlier turns, and of messages that steer the current one."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from organism.agents.conversation import unfenced
from organism.events.vocabulary import OnBusy, SessionSettings, TurnEnded
from organism.model.commands import CreateSession, Injected, KillThread, SendTurn, SessionBegun
from organism.pump.history import NO_RESULT
from organism.sessions.commands import Caller
from organism.sessions.compaction import compact
from organism.testing import Running, running
from tests.flows.stage import at_gate, open_gate
from tests.flows.thinking import Thinking, agent, call, calls, says, thinking
from tests.flows.world import MakeWorld

ROOT = Path(__file__).parents[2]
SOURCE = """
async def looker(payload: Ask, metadata: HandlerMetadata):
    if payload.text == "wait":
        await gate("looker")
    return HandlerResponse.respond(Told("found " + payload.text))
"""


def made(world: MakeWorld, *answers: dict[str, Any]) -> Thinking:
    listeners = {"looker": {"brings_outside_text": True}, "thinker": agent(tools=["looker"])}
    return thinking(world, listeners, *answers, source=SOURCE)


async def begun(o: Running, to: str = "thinker", **settings: Any) -> str:
    answer = await o.do(CreateSession(agent=to, user="ann", settings=SessionSettings(**settings)))
    assert isinstance(answer, SessionBegun)
    return answer.session_id


async def say(o: Running, session: str, text: str, to: str = "thinker", on_busy: OnBusy = "queue") -> str:
    turn = SendTurn(session_id=session, user="ann", to=to, json={"message": text}, on_busy=on_busy)
    answer = await o.do(turn)
    assert isinstance(answer, Injected)
    return answer.thread_id


async def said(o: Running, session: str, text: str, to: str = "thinker") -> str:
    """The agent's answer."""
    thread = await say(o, session, text, to)
    assert await o.tenant.ended(thread, 20)
    return str((await o.replies(thread))[-1]["text"])


async def test_the_model_is_told_of_earlier_turns_with_their_calls_and_results(world: MakeWorld) -> None:
    two = calls(call("looker", text="a"), call("looker", text="b"), text="I look.")
    play = made(world, two, says("Both found."), calls(call("looker", text="c")), says("That too."))
    async with play.running() as o:
        session = await begun(o)
        await said(o, session, "Look a and b up.")
        await said(o, session, "And c.")
    *_, third, fourth = play.models.calls
    system, asked, looked, one, other, answered, again = third
    assert [each["role"] for each in (system, asked, answered, again)] == ["system", "user", "assistant", "user"]
    assert [each["content"] for each in (asked, looked, answered, again)] == [
        "Look a and b up.",
        "I look.",
        "Both found.",
        "And c.",
    ]
    assert [made["id"] for made in looked["tool_calls"]] == [one["tool_call_id"], other["tool_call_id"]]
    assert [made["function"]["arguments"] for made in looked["tool_calls"]] == ['{"text":"a"}', '{"text":"b"}']
    results = ["found a", "found b"]
    assert [unfenced(each["content"]) for each in (one, other)] == [
        ("result of looker", f'{{"text":"{result}"}}') for result in results
    ]
    assert fourth[: len(third)] == third
    ids = [made["id"] for each in fourth for made in each.get("tool_calls", ())]
    assert len(set(ids)) == len(ids) == 3


async def test_a_call_that_an_earlier_result_quotes_is_not_made(world: MakeWorld) -> None:
    quoted = 'looker(text="stolen")'
    play = made(world, calls(call("looker", text=quoted)), says("Done."), says(quoted))
    async with play.running() as o:
        session = await begun(o)
        await said(o, session, "Look it up.")
        assert await said(o, session, "What did it say?") == quoted


async def test_a_message_that_steers_is_given_before_the_next_call_and_answered_in_its_turn(world: MakeWorld) -> None:
    play = made(world, calls(call("looker", text="wait")), says("As you wish."), says("Never."))
    async with play.running() as o:
        session = await begun(o)
        first = await say(o, session, "Look.")
        await at_gate(o, "looker")
        second = await say(o, session, "Be brief.", on_busy="steer")
        open_gate(o, "looker")
        assert await o.tenant.ended(first, 20)
        replies = [await o.replies(each) for each in (first, second)]
        ended = [(each.event.turn, each.event.outcome) for each in await o.records(TurnEnded)]
    assert [each["content"] for each in play.models.calls[1] if each["role"] == "user"] == ["Look.", "Be brief."]
    assert replies == [({"text": "As you wish.", "citations": []},), ()]
    assert sorted(ended) == [(first, "completed"), (second, "appended")]


async def test_a_turn_goes_on_after_a_crash_with_the_history_that_it_had(world: MakeWorld) -> None:
    play = made(world, says("Hello."), calls(call("looker", text="wait")), says("Found."))
    async with play.running() as o:
        session = await begun(o)
        await said(o, session, "I am Ann.")
        turn = await say(o, session, "Look.")
        await at_gate(o, "looker")
        await o.crash()
        before = play.models.calls[-1]
    play.script(says("Found."))
    async with play.running() as o:
        open_gate(o, "looker")
        assert await o.tenant.ended(turn, 20)
        assert (await o.replies(turn))[-1]["text"] == "Found."
    assert play.models.calls[0][: len(before)] == before


async def test_after_a_killed_turn_the_next_one_has_a_well_formed_history(world: MakeWorld) -> None:
    play = made(world, calls(call("looker", text="wait"), text="I look."), says("Again?"))
    async with play.running() as o:
        session = await begun(o)
        turn = await say(o, session, "Look.")
        await at_gate(o, "looker")
        await o.do(KillThread(thread_id=turn))
        assert await said(o, session, "What now?") == "Again?"
        open_gate(o, "looker")
    _, asked, looked, result, again = play.models.calls[-1]
    assert [each["content"] for each in (asked, looked, again)] == ["Look.", "I look.", "What now?"]
    assert (result["role"], result["tool_call_id"]) == ("tool", looked["tool_calls"][0]["id"])
    assert unfenced(result["content"]) == ("result of looker", NO_RESULT)


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    """A copy of what a clone has."""
    for name in ("handlers", "config/agents"):
        shutil.copytree(ROOT / name, tmp_path / name)
    return Path(shutil.copy(ROOT / "organism.yaml", tmp_path))


async def test_an_agent_that_ships_remembers_with_nothing_configured_after_a_compaction_too(shipped: Path) -> None:
    question, to = "Welcher Sport ist mein Liebling?", "concise-de"
    async with running(shipped) as o:
        session = await begun(o, to, compact_keep_last_n=0)
        await said(o, session, "Mein Lieblingssport ist Tennis.", to)
        answers = [await said(o, session, question, to)]
        done = await compact(o.tenant, session, Caller(user="ann"))
        answers.append(await said(o, done.successor_session_id, question, to))
    assert "Tennis" in done.summary_text
    assert ["Tennis" in answer for answer in answers] == [True, True]

"""Failures: they lead to the line, are one thing however many asks wait for them, and are resolved as one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from organism.errors import AlreadyResolved, InvalidField
from organism.events.vocabulary import MessageDead, MessageRefused, MessageStarted, StepStarted
from organism.model.commands import DiscardDeadLetter, PauseAgent, ReplayDeadLetter, ReplayDeadLetters, ResumeAgent
from organism.pump.failures import MOST_FAILURES
from organism.testing import Running
from organism.views.views import Query
from tests.flows.stage import at_gate, open_gate, play
from tests.flows.world import MakeWorld

CHAIN = """
import json
NAMES = {}

async def outer(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(await metadata.ask("middle", payload))

async def middle(payload: Ask, metadata: HandlerMetadata):
    try:
        return HandlerResponse.respond(await metadata.ask("inner", payload))
    except AskError as error:
        raise RuntimeError("no luck") from error

async def inner(payload: Ask, metadata: HandlerMetadata):
    return find(payload.text)

def find(name):
    return HandlerResponse.respond(Told(NAMES[name]))
"""
ASKERS: Mapping[str, Any] = {"outer": {"peers": ["middle"]}, "middle": {"peers": ["inner"]}, "inner": {}}


async def letters(o: Running) -> dict[str, dict[str, Any]]:
    """The open dead letters, by agent."""
    rows = orjson.loads((await o.views.rows("dead_letters", Query())).rows)
    return {row["agent"]: row for row in rows}


async def starts(o: Running) -> list[str]:
    """Who was started, in order."""
    return [record.event.agent for record in await o.records(MessageStarted)]


@pytest.mark.parametrize("replayed", ASKERS)
async def test_a_failure_behind_asks_has_its_attempts_once_and_a_replay_of_any_of_it_resolves_it(
    world: MakeWorld, replayed: str
) -> None:
    made = world(CHAIN, dict(ASKERS))
    async with made.running() as o:
        failed = await o.inject("outer", {"text": "ann"}, wait=True)
        assert await starts(o) == ["outer", "middle", "inner", "inner", "inner"]
        dead = await letters(o)
        root = dead["inner"]["id"]
        assert [dead[name].get("root") for name in ASKERS] == [root, root, None]
        made.write(CHAIN.replace("NAMES = {}", 'NAMES = {"ann": "Ann"}'))
        await o.organism.reload()
        await o.do(ReplayDeadLetter(message_id=dead[replayed]["id"]))
        assert await o.tenant.ended(failed.thread_id, 30)
        assert await letters(o) == {}
        assert (await o.thread(failed.thread_id))["status"] == "completed"
        assert await o.replies(failed.thread_id) == ({"text": "Ann"},)
        with pytest.raises(AlreadyResolved):
            await o.do(ReplayDeadLetter(message_id=root))


async def test_a_dead_letter_has_the_lines_of_its_handlers_own_code_without_values(world: MakeWorld) -> None:
    source = """
    import asyncio, json

    async def direct(payload: Ask, metadata: HandlerMetadata):
        return read(payload.text)

    def read(text):
        secret = "4711"
        return json.loads(text)

    async def grouped(payload: Ask, metadata: HandlerMetadata):
        async with asyncio.TaskGroup() as group:
            group.create_task(later(payload.text))

    async def later(text):
        raise KeyError(text)

    async def waiting(payload: Ask, metadata: HandlerMetadata):
        await asyncio.Event().wait()
    """
    made = world(source, {"direct": {}, "grouped": {}, "waiting": {"timeout_s": 0.1}}, retry={"attempts": 1})
    text = (made.folder / "actors" / "play.py").read_text().splitlines()
    async with made.running() as o:
        for name in ("direct", "grouped", "waiting"):
            await o.inject(name, {"text": "x"}, wait=True)
        found = await letters(o)
    said = {name: [(each["function"], each["code"]) for each in row["traceback"]] for name, row in found.items()}
    assert said["direct"] == [("read", "return json.loads(text)"), ("direct", "return read(payload.text)")]
    assert said["grouped"][0] == ("later", "raise KeyError(text)")
    assert said["waiting"] == [("waiting", "await asyncio.Event().wait()")]
    first = found["direct"]["traceback"][0]
    assert first["file"] == "actors/play.py"
    assert text[first["line"] - 1].strip() == first["code"]
    assert "4711" not in str(found)


async def test_an_ask_error_names_who_was_asked_the_question_and_its_cause(world: MakeWorld) -> None:
    source = """
    async def asker(payload: Ask, metadata: HandlerMetadata):
        try:
            await metadata.ask(payload.text, Ask("x"), timeout=0.1)
        except AskError as error:
            TRACE.append((error.listener, error.message_id, error.cause, error.dead_letter, str(error)))

    async def broken(payload: Ask, metadata: HandlerMetadata):
        raise ValueError("no good")

    async def passing(payload: Ask, metadata: HandlerMetadata):
        return HandlerResponse(payload, to="broken")

    async def slow(payload: Ask, metadata: HandlerMetadata):
        await gate("slow")
    """
    peers = {"asker": {"peers": ["broken", "passing", "slow"]}, "passing": {"peers": ["broken"]}}
    made = world(source, {**peers, "broken": {}, "slow": {}}, retry={"attempts": 1})
    async with made.running() as o:
        for name in ("broken", "passing", "slow"):
            thread = (await o.inject("asker", {"text": name})).thread_id
            if name == "slow":
                await at_gate(o, "slow")
                await o.tenant.ended(thread, 0.5)
                open_gate(o, "slow")
            assert await o.tenant.ended(thread, 30)
        trace = play(o)["TRACE"]
        dead = [record.event.message for record in await o.records(MessageDead)]
        asked = [record.event.message for record in await o.records(MessageStarted) if record.event.agent != "asker"]
    broken, passing, slow = trace
    assert broken[:4] == ("broken", asked[0], "ValueError: no good", dead[0])
    assert asked[0] in broken[4]
    assert "ValueError: no good" in broken[4]
    assert passing[:4] == ("passing", asked[1], "ValueError: no good", dead[1])
    assert slow[:4] == ("slow", asked[3], "", "")


async def test_a_refused_ask_and_what_failed_with_it_are_one_failure(world: MakeWorld) -> None:
    made = world(CHAIN, {**ASKERS, "middle": {"peers": []}})
    async with made.running() as o:
        failed = await o.inject("outer", {"text": "ann"}, wait=True)
        (refused,) = await o.records(MessageRefused)
        rows = orjson.loads((await o.views.rows("dead_letters", Query())).rows)
        assert {row.get("root") for row in rows if row["id"] != refused.event.message} == {refused.event.message}
        await o.do(DiscardDeadLetter(message_id=refused.event.message))
        assert await letters(o) == {}
    assert failed.thread is not None
    assert failed.thread["status"] == "error"


async def test_what_cannot_succeed_is_not_tried_again(world: MakeWorld) -> None:
    source = """
    from organism import NonRetryable

    class Broken(NonRetryable):
        pass

    async def final(payload: Ask, metadata: HandlerMetadata):
        raise Broken("for good")

    async def wrong(payload: Ask, metadata: HandlerMetadata):
        return "no response"
    """
    async with world(source, {"final": {}, "wrong": {}}).running() as o:
        for name in ("final", "wrong"):
            await o.inject(name, {"text": "x"}, wait=True)
        dead = [(record.event.code, record.event.attempts) for record in await o.records(MessageDead)]
    assert dead == [("handler_error", 1), ("wrong_return", 1)]


async def test_an_answer_that_cannot_be_sent_fails_its_handling_at_once_and_is_replayed_by_its_call(
    world: MakeWorld,
) -> None:
    source = """
    async def asker(payload: Ask, metadata: HandlerMetadata):
        return HandlerResponse.respond(await metadata.ask("answerer", payload))

    async def answerer(payload: Ask, metadata: HandlerMetadata):
        return [HandlerResponse(Ask("x"), to="sink"), HandlerResponse.respond(Told({text}))]

    async def sink(payload: Ask, metadata: HandlerMetadata):
        TRACE.append("sink")
    """
    listeners = {"asker": {"peers": ["answerer"]}, "answerer": {"peers": ["sink"]}, "sink": {}}
    made = world(source.replace("{text}", "'x' * 300_000"), listeners)
    async with made.running() as o:
        outcome = await o.inject("asker", {"text": "x"}, wait=True)
        first, second = [record.event for record in await o.records(MessageDead)]
        assert play(o)["TRACE"] == []  # what it would have sent besides was not sent
        assert (await o.thread(outcome.thread_id))["status"] == "error"
        assert (first.code, first.attempts, second.root) == ("wrong_return", 1, first.message)
        assert "answer of answerer cannot be sent" in first.reason
        assert [(line.file, line.function) for line in first.traceback] == [("actors/play.py", "answerer")]
    made.write(source.replace("{text}", "'fine'"))
    async with made.running() as o:
        await o.do(ReplayDeadLetter(message_id=first.message))
        assert await o.tenant.ended(outcome.thread_id, 10)
        assert await o.replies(outcome.thread_id) == ({"text": "fine"},)


async def test_an_unsafe_effect_under_way_waits_for_a_person_though_no_attempt_could_succeed(world: MakeWorld) -> None:
    source = """
    import asyncio

    async def payer(payload: Ask, metadata: HandlerMetadata):
        async with asyncio.TaskGroup() as group:
            group.create_task(metadata.effect("pay", pay, kind="unsafe"))
            await gate("paying")
            group.create_task(metadata.ask("broken", payload))

    async def pay(key):
        await asyncio.Event().wait()

    async def broken(payload: Ask, metadata: HandlerMetadata):
        raise ValueError("no good")
    """
    made = world(source, {"payer": {"peers": ["broken"]}, "broken": {}}, retry={"attempts": 1})
    async with made.running() as o:
        sent = await o.inject("payer", {"text": "x"})
        await o.until(StepStarted, effect="unsafe")
        open_gate(o, "paying")
        await o.until(StepStarted, unknown=True)
        assert (await o.thread(sent.thread_id))["status"] == "active"
        assert list(await letters(o)) == ["broken"]


async def test_an_edited_payload_belongs_to_the_message_that_is_sent_again(world: MakeWorld) -> None:
    source = CHAIN.replace("NAMES = {}", 'NAMES = {"ann": "Ann"}')
    async with world(source, dict(ASKERS)).running() as o:
        failed = await o.inject("outer", {"text": "bob"}, wait=True)
        dead = await letters(o)
        with pytest.raises(InvalidField):
            await o.do(ReplayDeadLetter(message_id=dead["inner"]["id"], json={"text": "ann"}))
        await o.do(ReplayDeadLetter(message_id=dead["outer"]["id"], json={"text": "ann"}))
        assert await o.tenant.ended(failed.thread_id, 30)
        assert await o.replies(failed.thread_id) == ({"text": "Ann"},)


async def test_a_handling_does_not_hang_on_a_dead_letter_that_was_closed_before_it_failed(world: MakeWorld) -> None:
    source = """
    async def asker(payload: Ask, metadata: HandlerMetadata):
        try:
            await metadata.ask("broken", payload)
        except AskError:
            await gate("asker")
            raise

    async def broken(payload: Ask, metadata: HandlerMetadata):
        raise ValueError("no good")
    """
    made = world(source, {"asker": {"peers": ["broken"]}, "broken": {}}, retry={"attempts": 1})
    async with made.running() as o:
        sent = await o.inject("asker", {"text": "x"})
        await at_gate(o, "asker")
        await o.do(DiscardDeadLetter(message_id=(await letters(o))["broken"]["id"]))
        open_gate(o, "asker")
        assert await o.tenant.ended(sent.thread_id, 30)
        found = await letters(o)
    assert list(found) == ["asker"]
    assert "root" not in found["asker"]


async def test_a_thread_is_not_completed_while_failures_are_left_that_one_act_did_not_send_again(
    world: MakeWorld,
) -> None:
    made = world(CHAIN, {"inner": {}}, retry={"attempts": 1})
    async with made.running() as o:
        await o.do(PauseAgent(agent="inner"))
        first = await o.inject("inner", {"text": "ann"})
        more = [o.inject("inner", {"text": "ann"}, thread_id=first.thread_id) for _ in range(MOST_FAILURES)]
        await asyncio.gather(*more)
        await o.do(ResumeAgent(agent="inner"))
        assert await o.tenant.ended(first.thread_id, 60)
        assert (await o.thread(first.thread_id))["status"] == "error"
    made.write(CHAIN.replace("NAMES = {}", 'NAMES = {"ann": "Ann"}'))
    async with made.running() as o:
        for left, status in ((1, "error"), (0, "completed")):
            await o.do(ReplayDeadLetters(thread_id=first.thread_id))
            assert await o.tenant.ended(first.thread_id, 60)
            assert (await o.views.rows("dead_letters", Query())).total == left
            assert (await o.thread(first.thread_id))["status"] == status


async def test_all_failures_of_a_thread_are_sent_again_at_once_after_a_restart_too(world: MakeWorld) -> None:
    made = world(CHAIN, dict(ASKERS))
    async with made.running() as o:
        first = await o.inject("outer", {"text": "ann"}, wait=True)
        await o.inject("inner", {"text": "ann"}, thread_id=first.thread_id, wait=True)
        assert len(await letters(o)) == 3
    made.write(CHAIN.replace("NAMES = {}", 'NAMES = {"ann": "Ann"}'))
    async with made.running() as o:
        await o.do(ReplayDeadLetters(thread_id=first.thread_id))
        assert await o.tenant.ended(first.thread_id, 30)
        assert await letters(o) == {}
        assert await o.replies(first.thread_id) == ({"text": "Ann"}, {"text": "Ann"})
        assert (await o.thread(first.thread_id))["status"] == "completed"

"""Sessions: one turn at a time, each a thread of its own; what comes meanwhile waits, takes over or is refused."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from typing import Any, cast

import pytest
from msgspec.structs import replace

from organism.bootstrap import Parts
from organism.errors import (
    CommitUnknown,
    InvalidRequest,
    NotFound,
    SessionAgentMismatch,
    SessionBusy,
    SessionCompactConflict,
)
from organism.events.record import Record
from organism.events.vocabulary import (
    ContentErased,
    Event,
    MessageRetried,
    MessageSent,
    MessageStarted,
    SessionDeleted,
    SessionEvent,
    TurnAppended,
    TurnEnded,
    TurnStarted,
)
from organism.log.log import EventLog
from organism.model.commands import (
    Command,
    CommandAnswer,
    CreateSession,
    DeleteSession,
    Idempotency,
    Inject,
    Injected,
    KeptMessage,
    KillThread,
    ReplaceSession,
    SendTurn,
    SessionBegun,
)
from organism.pump.decide.decision import Decision
from organism.pump.history import NO_RESULT, Histories
from organism.sessions.commands import MOST_OPEN_TURNS
from tests.flows.disk import Disk, Fault
from tests.flows.stage import at_gate, folded_again, folded_live, open_gate, until
from tests.flows.talking import begun, history_of, holds, position_of, row_of, said, say
from tests.flows.test_lost_commits import FAULTS, mend
from tests.flows.world import MakeWorld, World

TALK = """
async def talk(payload: Ask, metadata: HandlerMetadata):
    if payload.text.startswith("wait"):
        await gate(payload.text)
    if payload.text == "fail":
        raise ValueError("no")
    await metadata.emit("message", {"text": "heard " + payload.text})
    return HandlerResponse.respond(Told("heard " + payload.text))
"""


def talking(world: MakeWorld) -> World:
    return world(TALK, {"talk": {"max_concurrent": 4}, "other": {"handler": "talk"}})


async def test_a_turn_is_a_thread_that_names_its_session(world: MakeWorld) -> None:
    async with talking(world).running() as o:
        session = await begun(o)
        threads = [await said(o, session, "one"), await said(o, session, "two")]
        row = await row_of(o, session)
        assert await folded_live(o) == await folded_again(o.log)
    assert [thread["id"] for thread in threads] == [f"{session}.1", f"{session}.2"]
    assert {thread["session_id"] for thread in threads} == {session}
    assert (row["agent"], row["user_id"], row["message_count"]) == ("talk", "ann", 4)


async def test_a_second_turn_waits_for_the_first_and_goes_on_after_a_restart(world: MakeWorld) -> None:
    made = talking(world)
    async with made.running() as o:
        session = await begun(o)
        turns = [await say(o, session, "wait one"), await say(o, session, "two"), await say(o, session, "three")]
        await at_gate(o, "wait one")
        started = [record.thread for record in await o.records(MessageStarted)]
        assert await folded_live(o) == await folded_again(o.log)
        await o.crash()
    async with made.running() as o:
        await at_gate(o, "wait one")
        open_gate(o, "wait one")
        assert await o.tenant.ended(turns[2], 20)
        records = await o.records(TurnEnded, MessageStarted)
        order = [(record.type, record.thread) for record in records if getattr(record.event, "after", "") == ""]
    one, two, three = turns
    assert started == [one]
    assert order == [
        ("message_started", one),
        ("turn_ended", session),
        ("message_started", two),
        ("turn_ended", session),
        ("message_started", three),
        ("turn_ended", session),
    ]


async def test_a_busy_session_rejects_if_it_is_asked_to(world: MakeWorld) -> None:
    async with talking(world).running() as o:
        session = await begun(o)
        first = await say(o, session, "wait")
        with pytest.raises(SessionBusy):
            await say(o, session, "two", on_busy="reject")
        open_gate(o, "wait")
        assert await o.tenant.ended(first, 20)
        assert (await said(o, session, "two", on_busy="reject"))["status"] == "completed"


async def test_force_kills_what_is_open_in_the_unit_that_takes_over(world: MakeWorld) -> None:
    async with talking(world).running() as o:
        session = await begun(o)
        first, second = await say(o, session, "wait"), await say(o, session, "two")
        await at_gate(o, "wait")
        third = await said(o, session, "three", on_busy="force")
        (started,) = [each for each in await o.records(TurnStarted) if each.event.turn == third["id"]]
        ended = await o.records(TurnEnded)
        assert await folded_live(o) == await folded_again(o.log)
    assert third["status"] == "completed"
    assert [(each.event.turn, each.event.outcome) for each in ended] == [
        (second, "killed"),
        (first, "killed"),
        (third["id"], "completed"),
    ]
    assert {each.at for each in ended[:2]} == {started.at}


async def test_the_end_of_a_turn_is_reported_however_it_ends(world: MakeWorld) -> None:
    async with talking(world).running() as o:
        session = await begun(o)
        failed = await said(o, session, "fail")
        killed, next_one = await say(o, session, "wait"), await say(o, session, "next")
        await at_gate(o, "wait")
        await o.do(KillThread(thread_id=killed))
        assert await o.tenant.ended(next_one, 20)
        ended = [(each.event.turn, each.event.outcome) for each in await o.records(TurnEnded)]
    assert ended == [(failed["id"], "failed"), (killed, "killed"), (next_one, "completed")]


async def test_nobody_else_speaks_into_a_turn(world: MakeWorld) -> None:
    async with talking(world).running() as o:
        session = await begun(o)
        turn = await say(o, session, "wait")
        with pytest.raises(SessionBusy):
            await o.do(Inject(to="talk", json={"text": "x"}, thread_id=turn))
        open_gate(o, "wait")


async def test_a_session_is_there_for_its_user_and_its_agent_alone(world: MakeWorld) -> None:
    async with talking(world).running() as o:
        session = await begun(o)
        refusals: list[str] = []
        for named in (session, "ses-none"):
            with pytest.raises(NotFound) as refused:
                await say(o, named, "x", user="bob")
            refusals.append(refused.value.message.replace(named, ""))
            with pytest.raises(NotFound):
                await o.do(DeleteSession(session_id=named, user="bob"))
        with pytest.raises(SessionAgentMismatch):
            await say(o, session, "x", agent="other")
        with pytest.raises(InvalidRequest):
            await o.do(SendTurn(session_id=session, user="ann", to="talk", json={"nothing": 1}))
        with pytest.raises(NotFound):
            await begun(o, agent="nobody")
        assert not await o.records(TurnStarted)
    assert len(set(refusals)) == 1


# what comes to a running turn, and what was said before it


STEERED = """
async def talk(payload: Ask, metadata: HandlerMetadata):
    heard = [payload.text]
    for name in ("first", "second"):
        await gate(name)
        heard += [each.text for each in await metadata.steered()]
    await metadata.effect("once", lambda _key: noted(), kind="pure")
    await gate("last")
    return HandlerResponse.respond(Told(" ".join(heard)))

async def noted():
    return None
"""


async def test_a_running_turn_takes_in_what_steers_it_and_does_so_again_after_a_restart(world: MakeWorld) -> None:
    made = world(STEERED, {"talk": {}})
    async with made.running() as o:
        session = await begun(o)
        turn = await say(o, session, "one")
        await at_gate(o, "first")
        queued = await say(o, session, "two")
        steering = await say(o, session, "three", on_busy="steer")
        open_gate(o, "first", "second")
        await at_gate(o, "last")
        appended = await o.records(TurnAppended)
        assert await folded_live(o) == await folded_again(o.log)
        await o.crash()
    async with made.running() as o:
        open_gate(o, "first", "second", "last")
        assert await o.tenant.ended(queued, 20)
        ended = [(each.event.turn, each.event.outcome) for each in await o.records(TurnEnded)]
        replies = [await o.replies(each) for each in (turn, steering, queued)]
        texts = [each["content"] for each in await history_of(o, session)]
    assert [(each.event.turn, each.event.source) for each in appended] == [(turn, steering)]
    assert ended == [(steering, "appended"), (turn, "completed"), (queued, "completed")]
    assert replies == [({"text": "one three"},), (), ({"text": "two"},)]
    assert texts == ['{"text":"one"}', '{"text":"three"}', '{"text":"two"}']


async def test_what_steers_too_late_is_a_turn_like_any_other(world: MakeWorld) -> None:
    async with world(STEERED, {"talk": {}}).running() as o:
        session = await begun(o)
        turn = await say(o, session, "one")
        open_gate(o, "first", "second")
        await at_gate(o, "last")
        late = await say(o, session, "two", on_busy="steer")
        open_gate(o, "last")
        assert await o.tenant.ended(late, 20)
        assert await o.replies(turn) == ({"text": "one"},)
        assert await o.replies(late) == ({"text": "two"},)
        assert not await o.records(TurnAppended)


RECALL = """
async def talk(payload: Ask, metadata: HandlerMetadata):
    before = [each["content"] for each in await metadata.history()]
    await metadata.emit("message_start", {"id": "a"})
    await metadata.emit("message_delta", {"id": "a", "delta": "after "})
    await metadata.emit("message_delta", {"id": "a", "delta": " ".join(before)})
    if payload.text == "look":
        await metadata.emit("message_end", {"id": "a"})
        await metadata.emit("tool_call", {"id": "c1", "name": "see", "input": {"at": 1}})
        await metadata.emit("tool_call", {"id": "c2", "name": "see", "input": {"at": 2}})
        await metadata.emit("tool_result", {"id": "c1", "output": "dark", "isError": False})
        await gate("look")
    if payload.text == "nested":
        await metadata.ask("inner", Ask("one"))
    return HandlerResponse.respond(Told(""))

async def inner(payload: Ask, metadata: HandlerMetadata):
    assert await metadata.history() == ()
    await metadata.emit("message", {"text": "to the caller alone"})
    return HandlerResponse.respond(Told(""))
"""


async def test_a_turn_is_given_what_was_said_before_it(world: MakeWorld) -> None:
    async with world(RECALL, {"talk": {"peers": ["inner"]}, "inner": {}}).running() as o:
        session, other = await begun(o), await begun(o)
        for text in ("1", "nested", "3"):
            await said(o, session, text)
            await said(o, other, "not here")
        shown = await history_of(o, session)
        row = await row_of(o, session)
    asked = ['{"text":"1"}', '{"text":"nested"}', '{"text":"3"}']
    answers = ["after "]
    answers.append(f"after {asked[0]} {answers[0]}")
    answers.append(f"after {asked[0]} {answers[0]} {asked[1]} {answers[1]}")
    assert [each["content"] for each in shown] == [text for pair in zip(asked, answers, strict=True) for text in pair]
    assert [each["role"] for each in shown] == ["user", "assistant"] * 3
    assert [each["thread_id"] for each in shown] == [f"{session}.{n}" for n in (1, 1, 2, 2, 3, 3)]
    assert len({each["id"] for each in shown}) == len(shown) == row["message_count"]


async def test_a_killed_turn_leaves_what_was_said_and_every_call_has_a_result(world: MakeWorld) -> None:
    async with world(RECALL, {"talk": {}}).running() as o:
        session = await begun(o)
        turn, never_begun = await say(o, session, "look"), await say(o, session, "never begun")
        await at_gate(o, "look")
        for thread in (never_begun, turn):
            await o.do(KillThread(thread_id=thread))
        shown = [
            (each["role"], each["content"], each.get("tool_call_id"), each.get("is_error"), each.get("stop_reason"))
            for each in await history_of(o, session)
        ]
    assert shown == [
        ("user", '{"text":"look"}', None, None, None),
        ("assistant", "after ", None, None, None),
        ("tool", "", "c1", None, None),
        ("tool", "", "c2", None, None),
        ("tool", "dark", "c1", False, None),
        ("tool", NO_RESULT, "c2", True, "killed"),
        ("user", '{"text":"never begun"}', None, None, "killed"),
    ]


async def test_what_is_killed_while_it_waits_parts_no_call_of_the_running_turn_from_its_result(
    world: MakeWorld,
) -> None:
    source = """
    async def talk(payload: Ask, metadata: HandlerMetadata):
        await metadata.emit("tool_call", {"id": "c1", "name": "see", "input": {}})
        await gate("look")
        await metadata.emit("tool_result", {"id": "c1", "output": "dark", "isError": False})
        return HandlerResponse.respond(Told(""))
    """
    async with world(source, {"talk": {}}).running() as o:
        session = await begun(o)
        turn, waiting = await say(o, session, "one"), await say(o, session, "two")
        await at_gate(o, "look")
        await o.do(KillThread(thread_id=waiting))
        open_gate(o, "look")
        assert await o.tenant.ended(turn, 20)
        shown = [(each["role"], each["content"]) for each in await history_of(o, session)]
    assert shown == [("user", '{"text":"one"}'), ("tool", ""), ("tool", "dark"), ("user", '{"text":"two"}')]


# deletion


async def test_a_deleted_session_is_shown_no_more_and_its_text_is_in_no_file(world: MakeWorld) -> None:
    made = talking(world)
    async with made.running() as o:
        session, other = await begun(o), await begun(o)
        await said(o, session, "sesame")
        await said(o, other, "kept")
        running, queued = await say(o, session, "wait sesame"), await say(o, session, "more sesame")
        await at_gate(o, "wait sesame")
        assert holds(made, b"sesame")
        await o.do(DeleteSession(session_id=session, user="ann"))
        statuses = [(await o.thread(each))["status"] for each in (running, queued)]
        for _ in range(2):
            with pytest.raises(NotFound):
                await say(o, session, "x")
            with pytest.raises(NotFound):
                await o.do(DeleteSession(session_id=session, user="ann"))
        checked = await o.log.verify()
        assert await folded_live(o) == await folded_again(o.log)
        assert [each["content"] for each in await history_of(o, other)] == ['{"text":"kept"}', "heard kept"]
    assert statuses == ["killed", "killed"]
    assert not checked.damage
    assert not holds(made, b"sesame")
    assert holds(made, b"heard kept")


async def test_a_start_erases_what_a_crash_left_of_a_deleted_session(world: MakeWorld) -> None:
    made = talking(world)
    async with made.running() as o:
        session = await begun(o)
        await said(o, session, "sesame")
        decision = Decision.on(o.pump.state, None)
        decision.expect[session] = await position_of(o, session)
        decision.add_to_session(session, SessionDeleted())
        await o.pump.commit(decision)
        await o.crash()
    assert holds(made, b"sesame")
    async with made.running() as o:
        assert [each.event.owner for each in await o.records(ContentErased)] == [session]
        assert not (await o.log.verify()).damage
    assert not holds(made, b"sesame")
    async with made.running() as o:
        assert len(await o.records(ContentErased)) == 1


# at the same time, and twice


async def test_turns_that_come_at_the_same_time_run_one_after_the_other(world: MakeWorld) -> None:
    made = talking(world)
    async with made.running() as o:
        session = await begun(o)
        for _ in range(3):
            turns = await asyncio.gather(*(say(o, session, str(number)) for number in range(8)))
            for turn in turns:
                assert await o.tenant.ended(turn, 20)
        started = [record.event.turn for record in await o.records(TurnStarted)]
        assert (await row_of(o, session))["message_count"] == 48
    assert started == [f"{session}.{number}" for number in range(1, 25)]


async def test_a_session_has_so_many_open_turns_at_most(world: MakeWorld) -> None:
    async with talking(world).running(on_disk=False) as o:
        session = await begun(o)
        for _ in range(MOST_OPEN_TURNS):
            await say(o, session, "wait")
        with pytest.raises(SessionBusy, match="100 turns"):
            await say(o, session, "one more", on_busy="steer")
        assert (await said(o, session, "one more", on_busy="force"))["status"] == "completed"
        ended = Counter(record.event.outcome for record in await o.records(TurnEnded))
    assert ended == {"killed": MOST_OPEN_TURNS, "completed": 1}


async def test_a_turn_and_a_deletion_at_the_same_time_leave_no_text(world: MakeWorld) -> None:
    made = talking(world)
    async with made.running() as o:
        session = await begun(o)
        acts = [
            say(o, session, "sesame"),
            o.do(DeleteSession(session_id=session, user="ann")),
            say(o, session, "sesame"),
        ]
        _, deleted, late = await asyncio.gather(*acts, return_exceptions=True)
        assert not isinstance(deleted, BaseException)
        assert isinstance(late, NotFound)
        assert not o.pump.state.folded.sessions
    assert not holds(made, b"sesame")


async def test_each_command_is_done_once_under_its_key(world: MakeWorld) -> None:
    async with talking(world).running() as o:

        async def twice(command: Command, key: str) -> CommandAnswer:
            once = Idempotency(key, "POST", "/", "digest")
            first = await o.do(replace(command, idempotency=once))
            assert await o.do(replace(command, idempotency=once)) == first
            return first

        begun_once = await twice(CreateSession(agent="talk", user="ann"), "1")
        assert isinstance(begun_once, SessionBegun)
        session = begun_once.session_id
        sent = await twice(SendTurn(session_id=session, user="ann", to="talk", json={"text": "x"}), "2")
        assert isinstance(sent, Injected)
        assert await o.tenant.ended(sent.thread_id, 20)
        kept = (KeptMessage("user", b'{"role":"user","content":"x"}'),)
        await twice(ReplaceSession(session_id=session, user="ann", messages=kept), "3")
        await twice(DeleteSession(session_id=session, user="ann"), "4")
        counts = Counter(record.type for record in await o.records() if isinstance(record.event, SessionEvent))
    assert counts == {
        "session_created": 2,
        "turn_started": 1,
        "turn_ended": 1,
        "session_uncompacted": 1,
        "message_kept": 1,
        "session_deleted": 1,
    }


# replacing a session


async def test_a_successor_begins_with_what_was_kept_and_the_source_takes_no_turn_any_more(world: MakeWorld) -> None:
    async with talking(world).running() as o:
        session = await begun(o)
        await said(o, session, "one")
        seen = await position_of(o, session)
        kept = (
            KeptMessage("assistant", b'{"role":"assistant","content":"Someone said one."}'),
            KeptMessage("user", b'{"role":"user","content":"two"}'),
        )
        replacing = ReplaceSession(session_id=session, user="ann", messages=kept, if_position=seen, compacted_before=9)
        turn = await say(o, session, "wait")
        with pytest.raises(SessionBusy):
            await o.do(replacing)
        open_gate(o, "wait")
        assert await o.tenant.ended(turn, 20)
        with pytest.raises(SessionCompactConflict):
            await o.do(replacing)
        done = await o.do(replace(replacing, if_position=await position_of(o, session)))
        assert isinstance(done, SessionBegun)
        for refused in (say(o, session, "x"), o.do(replacing)):
            with pytest.raises(SessionCompactConflict, match=done.session_id):
                await refused
        await said(o, done.session_id, "three")
        shown = [(each["role"], each["content"]) for each in await history_of(o, done.session_id)]
        source, successor = await row_of(o, session), await row_of(o, done.session_id)
        await o.do(DeleteSession(session_id=session, user="ann"))
        assert len(await history_of(o, done.session_id)) == 4
    assert shown == [
        ("assistant", "Someone said one."),
        ("user", "two"),
        ("user", '{"text":"three"}'),
        ("assistant", "heard three"),
    ]
    assert (source["successor_session_id"], successor["parent_session_id"]) == (done.session_id, session)
    assert source["archived_at"] is not None
    assert (successor["user_id"], successor["agent"], successor["message_count"]) == ("ann", "talk", 4)


# whose text it is


READING = """
async def talk(payload: Ask, metadata: HandlerMetadata):
    if payload.text == "read":
        await metadata.ask("web", Ask())
        await gate("read")
    if payload.text == "act":
        await metadata.ask("tool", Ask())
    return HandlerResponse.respond(Told(""))

async def web(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told("from outside"))

tool = web
"""


@pytest.mark.parametrize("is_queued", [True, False])
async def test_the_authors_of_what_a_turn_has_read_are_those_of_the_turns_after_it(
    world: MakeWorld, *, is_queued: bool
) -> None:
    listeners = {"talk": {"peers": ["web", "tool"]}, "web": {"brings_outside_text": True}, "tool": {}}
    async with world(READING, listeners).running() as o:
        session = await begun(o)
        first = await say(o, session, "read")
        await at_gate(o, "read")
        if is_queued:
            await say(o, session, "between")
        else:
            open_gate(o, "read")
            assert await o.tenant.ended(first, 20)
        act = await say(o, session, "act")
        open_gate(o, "read")
        assert await o.tenant.ended(act, 20)
        (asked,) = [each for each in await o.records(MessageSent, thread=act) if each.event.to == "tool"]
        done = await o.do(ReplaceSession(session_id=session, user="ann", messages=()))
        assert isinstance(done, SessionBegun)
        later = await say(o, done.session_id, "act")
        sent = (await o.records(MessageSent, thread=later))[0]
    assert "web" in asked.event.authors
    assert "web" in sent.event.authors


# what it costs, and what fails


class CountedLog:
    """A log, and how many records were read of it."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self.records = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def read(self, *given: Any, **more: Any) -> list[Record[Event]]:
        found = await self._log.read(*given, **more)
        self.records += len(found)
        return found


async def test_a_later_turn_reads_no_more_of_the_history_than_an_early_one(world: MakeWorld) -> None:
    async with talking(world).running(on_disk=False) as o:
        session = await begun(o)
        histories, log = Histories(), CountedLog(o.log)
        read: list[int] = []
        found: list[dict[str, Any]] = []
        for number in range(1, 31):
            await said(o, session, str(number))
            log.records = 0
            found = await histories.said_before(cast("EventLog", log), o.views, session, o.log.head + 1)
            read.append(log.records)
            assert len(found) == 2 * number
        assert found == await history_of(o, session)
    assert set(read[1:]) == {read[0]}
    assert read[0] < 10


@FAULTS
async def test_a_turn_whose_commit_is_unknown_is_done_once_and_those_that_wait_go_on(
    world: MakeWorld, fault: Fault
) -> None:
    disk = Disk()
    async with talking(world).running(parts=Parts(driver=disk)) as o:
        session, other = await begun(o), await begun(o)
        turns = [await say(o, session, "wait"), await say(o, session, "two")]
        await at_gate(o, "wait")
        await o.pump.settled()
        once = Idempotency("key", "POST", "/", "digest")
        disk.fail(fault)
        with pytest.raises(CommitUnknown):
            await say(o, other, "one", idempotency=once)
        await mend(o, disk)
        open_gate(o, "wait")
        again = await say(o, other, "one", idempotency=once)
        turns += [await say(o, session, "three")]
        for turn in (*turns, again):
            assert await o.tenant.ended(turn, 20)
        assert [await o.replies(each) for each in turns] == [
            ({"text": f"heard {it}"},) for it in ("wait", "two", "three")
        ]
        assert again == f"{other}.1"
        assert len(await history_of(o, other)) == 2
        assert await folded_live(o) == await folded_again(o.log)


@FAULTS
@pytest.mark.parametrize("good_commits", [0, 1], ids=["the deletion fails", "the erasure fails"])
async def test_a_deletion_that_is_unknown_can_be_said_again_until_nothing_is_left(
    world: MakeWorld, fault: Fault, good_commits: int
) -> None:
    disk = Disk()
    made = talking(world)
    deletion = DeleteSession(session_id="", user="ann")
    async with made.running(parts=Parts(driver=disk)) as o:
        session = await begun(o)
        await said(o, session, "sesame")
        deletion = replace(deletion, session_id=session)
        disk.fail(fault, good_commits)
        with pytest.raises(CommitUnknown):
            await o.do(deletion)
        disk.mend()
        await until(lambda: o.log.available and not o.tenant.recovering)
        with suppress(NotFound):  # the new life of the organism has erased it
            await o.do(deletion)
        with pytest.raises(NotFound):
            await o.do(deletion)
    assert not holds(made, b"sesame")


BROKEN_OFF = """
async def talk(payload: Ask, metadata: HandlerMetadata):
    await metadata.emit("message_start", {"id": "a"})
    await metadata.emit("message_delta", {"id": "a", "delta": "so far"})
    if payload.text == "fails":
        raise ValueError("no")
    await gate("middle")
    await metadata.emit("message_end", {"id": "a"})
    return HandlerResponse.respond(Told(""))
"""


async def test_a_message_that_begins_again_after_a_restart_stands_once(world: MakeWorld) -> None:
    made = world(BROKEN_OFF, {"talk": {}})
    async with made.running() as o:
        session = await begun(o)
        turn = await say(o, session, "one")
        await at_gate(o, "middle")
        await o.crash()
    async with made.running() as o:
        await at_gate(o, "middle")
        open_gate(o, "middle")
        assert await o.tenant.ended(turn, 20)
        shown = [(each["role"], each["content"]) for each in await history_of(o, session)]
        row = await row_of(o, session)
    assert shown == [("user", '{"text":"one"}'), ("assistant", "so far")]
    assert row["message_count"] == 2


async def test_a_turn_that_is_killed_between_its_attempts_stands_once_with_what_it_said(world: MakeWorld) -> None:
    async with world(
        BROKEN_OFF, {"talk": {}}, retry={"attempts": 2, "base_delay_s": 600, "max_delay_s": 600}
    ).running() as o:
        session = await begun(o)
        turn = await say(o, session, "fails")
        await o.until(MessageRetried, thread=turn)
        await o.do(KillThread(thread_id=turn))
        shown = [(each["role"], each["content"], each.get("stop_reason")) for each in await history_of(o, session)]
    assert shown == [("user", '{"text":"fails"}', None), ("assistant", "so far", "killed")]

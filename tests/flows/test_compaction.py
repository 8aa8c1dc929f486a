"""Compaction: what a successor begins with, what becomes of its source, and how the whole history comes back."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import to_builtins
from structlog.testing import capture_logs

from organism.bootstrap import Parts
from organism.errors import (
    NotFound,
    Paused,
    SessionAgentMismatch,
    SessionBusy,
    SessionCompactConflict,
    Upstream,
    UpstreamTimeout,
)
from organism.events.vocabulary import (
    Event,
    MessageDead,
    MessageHandled,
    MessageKept,
    MessageRefused,
    MessageSent,
    MessageStarted,
    ModelCalled,
    SessionCompacted,
    SessionCreated,
    SessionSettings,
    StepRecorded,
    ThreadCompleted,
    ThreadCreated,
)
from organism.model.commands import (
    ChangeTenantConfig,
    CreateSession,
    DeleteSession,
    Idempotency,
    Injected,
    PauseAgent,
    PauseOrganism,
    ResumeAgent,
    ResumeOrganism,
    SendTurn,
    SessionBegun,
)
from organism.model.sessions import CompactionResult
from organism.pump.history import messages, said_before
from organism.sessions.commands import Caller
from organism.sessions.compaction import compact, compact_if_full
from organism.sessions.cut import cut
from organism.sessions.lineage import lineage, uncompact
from organism.testing import Running
from organism.views.sessions import SESSIONS, MessagePlace
from organism.views.views import Query, Where, rows_of
from tests.flows.disk import Disk, Fault
from tests.flows.stage import at_gate, folded_again, folded_live, open_gate, until
from tests.flows.talking import holds
from tests.flows.thinking import MODEL, agent
from tests.flows.world import MakeWorld, World
from tests.model.histories import Messages, histories

SOURCE = '''
import json
from organism import NonRetryable

@dataclass
class Summarize:
    """Make a text short."""

    text: str
    is_talk: bool = False
    model: str | None = None

async def talk(payload: Ask, metadata: HandlerMetadata):
    if payload.text.startswith("wait"):
        await gate(payload.text)
    if payload.text.startswith("{"):
        return HandlerResponse(json.loads(payload.text), to="system.compaction")
    for kind, data in json.loads(payload.text) if payload.text.startswith("[") else [["message", {"text": "Well."}]]:
        if kind == "die":
            raise NonRetryable("no")
        await metadata.emit(kind, data)
    return HandlerResponse.respond(Told("."))

async def summarizer(payload: Summarize, metadata: HandlerMetadata):
    TRACE.append([payload.text, payload.is_talk, payload.model])
    if "fail" in payload.text:
        raise ValueError("no")
    if "hold" in payload.text:
        await gate("summary")
    return HandlerResponse.respond(Told("In short."))
'''
ANN = Caller(user="ann", agent="talk")
ONCE = Idempotency("once", "POST", "/compact", "")
PAUSES = PauseOrganism(), ResumeOrganism()


LISTENERS: dict[str, dict[str, Any]] = {
    "talk": {"max_concurrent": 4},
    "summarizer": {"payload_class": "Summarize", "timeout_s": 60},
}


def talking(world: MakeWorld, **listeners: dict[str, Any]) -> World:
    return world(SOURCE, {**LISTENERS, **listeners})


def trace(o: Running) -> list[list[Any]]:
    """What the summarizer was asked."""
    listener = o.organism.settings.listener("summarizer")
    found: list[list[Any]] = listener.handler.__globals__["TRACE"]  # type: ignore[union-attr]  # it has code
    return found


async def begun(o: Running, **settings: Any) -> str:
    answer = await o.do(CreateSession(agent="talk", user="ann", settings=SessionSettings(**settings)))
    assert isinstance(answer, SessionBegun)
    return answer.session_id


async def say(o: Running, session: str, text: str) -> str:
    answer = await o.do(SendTurn(session_id=session, user="ann", to="talk", json={"text": text}))
    assert isinstance(answer, Injected)
    return answer.thread_id


async def said(o: Running, session: str, *texts: str) -> None:
    for text in texts:
        assert await o.tenant.ended(await say(o, session, text), 20)


async def words(o: Running, session: str) -> list[dict[str, Any]]:
    """What a session's messages say, without what tells one session from another."""
    found = await said_before(o.log, o.views, session, o.log.head + 1)
    return [{name: each[name] for name in each if name not in {"id", "compacted_at"}} for each in found]


async def row_of(o: Running, session: str) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(await o.views.row("sessions", session) or b"{}")
    return found


def summary_of(session: str) -> dict[str, Any]:
    return {"role": "assistant", "content": f"[compaction summary from session {session}] In short."}


async def test_a_successor_begins_with_the_summary_and_the_newest_messages(world: MakeWorld) -> None:
    async with talking(world).running() as o:
        session = await begun(o, compact_keep_last_n=3)
        await said(o, session, "one", "two", "three")
        before = await words(o, session)
        done = await compact(o.tenant, session, ANN)
        source, successor = await row_of(o, session), await row_of(o, done.successor_session_id)
        first, *kept = await words(o, done.successor_session_id)
        assert await words(o, session) == before
        (sent,) = [each for each in await o.records(MessageSent) if each.event.to == "summarizer"]
        unit = await o.records(SessionCompacted, SessionCreated, MessageKept)
        page = await o.views.rows("session_messages", Query((Where("session_id", "=", session),), "position"))
        shown = await messages(o.log, rows_of(page, MessagePlace), await o.views.private_row(SESSIONS, session))
    assert [each["compacted_at"] for each in shown] == [source["archived_at"]] * 3 + [None] * 3
    assert {name: first[name] for name in ("role", "content")} == summary_of(session)
    assert kept == before[-3:]
    assert (source["successor_session_id"], source["archived_at"] is None) == (done.successor_session_id, False)
    assert (successor["parent_session_id"], successor["archived_at"]) == (session, None)
    assert (done.source_session_id, done.summary_text, done.thread_id) == (session, "In short.", sent.thread)
    assert [each.position for each in unit[1:]] == [unit[1].position + at for at in range(len(unit) - 1)]


def turns_of(history: Messages) -> list[str]:
    """A message for each turn that makes ``talk`` show what the history has of it, and fail with a call unanswered."""
    turns: list[list[Any]] = []
    for each in history:
        if each["role"] == "user":
            turns.append([])
        elif each["role"] == "assistant":
            turns[-1].append(["message", {"text": each["content"]}])
        elif "tool_name" in each:
            given = {"input": each["input"]} if isinstance(each["input"], dict) else {"input": {}, "rawInput": "{"}
            turns[-1].append(["tool_call", {"id": each["tool_call_id"], "name": each["tool_name"], **given}])
        else:
            shown = {"output": each["content"], "isError": each["is_error"]}
            turns[-1].append(["tool_result", {"id": each["tool_call_id"], **shown}])
    for turn in turns:
        ids = [[data["id"] for kind, data in turn if kind == wanted] for wanted in ("tool_call", "tool_result")]
        if len(ids[0]) > len(ids[1]):
            turn.append(["die", {}])
    return [orjson.dumps(turn).decode() for turn in turns]


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(histories(), min_size=1, max_size=3), st.integers(0, 12))
def test_what_is_kept_is_the_same_to_the_byte_and_the_whole_history_comes_back(
    rounds: list[Messages], keep: int
) -> None:
    async def lives(folder: Path) -> None:
        async with World(folder, SOURCE, LISTENERS).running(on_disk=False) as o:
            live, known, whole = await begun(o, compact_keep_last_n=keep), 0, list[bytes]()
            first = live
            for history in rounds:
                await said(o, live, *turns_of(history))
                messages = await words(o, live)
                now, end = list(map(orjson.dumps, messages)), cut(messages, keep)
                whole += now[known:]
                if end == 0:
                    with pytest.raises(SessionCompactConflict):
                        await compact(o.tenant, live, ANN)
                    known = len(now)
                    continue
                source, live = live, (await compact(o.tenant, live, ANN)).successor_session_id
                after = await words(o, live)
                assert after[0]["content"] == summary_of(source)["content"]
                assert list(map(orjson.dumps, after[1:])) == now[end:]
                known = len(after)
            if live == first:
                with pytest.raises(SessionCompactConflict):
                    await uncompact(o.tenant, live, ANN)
                return
            back = await uncompact(o.tenant, live, ANN)
            assert list(map(orjson.dumps, await words(o, back.session_id))) == whole
            await said(o, back.session_id, "more")
            again = await compact(o.tenant, back.session_id, Caller(user="ann")) if keep < len(whole) else None
            assert again is None or again.source_session_id == back.session_id

    with TemporaryDirectory() as folder:
        asyncio.run(lives(Path(folder)))


@pytest.mark.parametrize(("masked", "has_results"), [(True, False), (False, True)])
async def test_a_summarizer_reads_no_results_of_tools_if_they_are_masked(
    world: MakeWorld, *, masked: bool, has_results: bool
) -> None:
    turn = [
        ["tool_call", {"id": "a", "name": "adder", "input": {"a": 1}}],
        ["tool_result", {"id": "a", "output": "RAW", "isError": False}],
        ["message", {"text": "It is 1."}],
    ]
    async with talking(world).running(on_disk=False) as o:
        session = await begun(o, compact_keep_last_n=0, compact_observation_mask=masked)
        await said(o, session, orjson.dumps(turn).decode())
        await compact(o.tenant, session, ANN)
        ((text, is_talk, model),) = trace(o)
    assert ('assistant calls adder: {"a":1}' in text, "assistant: It is 1." in text) == (True, True)
    assert ("result: RAW" in text) is has_results
    assert (is_talk, model) == (masked, None)


async def test_a_history_that_is_longer_than_the_summarizer_takes_is_summarised_in_pieces(world: MakeWorld) -> None:
    made = talking(world, summarizer={"payload_class": "Summarize", "max_payload_bytes": 1024})
    async with made.running(on_disk=False) as o:
        session = await begun(o, compact_keep_last_n=0)
        await said(o, session, orjson.dumps([["message", {"text": "<" * 200 + "\x0b"}]]).decode())
        done = await compact(o.tenant, session, ANN)
        pieces = [text for text, _, _ in trace(o)]
    assert "".join(pieces).endswith(f"\n\nassistant: {'<' * 200}\ufffd")
    assert done.summary_text == "\n\n".join(["In short."] * len(pieces))
    assert len(pieces) > 1


async def test_a_successor_may_contain_text_of_whoever_made_the_summary(world: MakeWorld) -> None:
    made = talking(world, summarizer={"payload_class": "Summarize", "brings_outside_text": True})
    async with made.running(on_disk=False) as o:
        session = await begun(o, compact_keep_last_n=0)
        await said(o, session, "one")
        done = await compact(o.tenant, session, ANN)
        (created,) = await o.records(SessionCreated, thread=done.successor_session_id)
    assert "summarizer" in created.event.authors


async def test_there_is_nothing_to_compact_where_all_stays(world: MakeWorld) -> None:
    async with talking(world).running(on_disk=False) as o:
        session = await begun(o)
        for text in ("one", "two", "three"):
            await said(o, session, text)
            with pytest.raises(SessionCompactConflict, match="nothing to summarise"):
                await compact(o.tenant, session, ANN)
        assert await o.records(SessionCompacted) == []


async def test_a_session_is_not_compacted_where_it_must_not_be(world: MakeWorld) -> None:
    async with talking(world).running(on_disk=False) as o:
        session, off = await begun(o, compact_keep_last_n=0), await begun(o, compact_strategy="off")
        for each in (session, off):
            await said(o, each, "one")
        with pytest.raises(SessionCompactConflict, match="is off"):
            await compact(o.tenant, off, ANN)
        done = await compact(o.tenant, session, ANN)
        for act in (compact, uncompact):
            with pytest.raises(SessionCompactConflict, match=done.successor_session_id):
                await act(o.tenant, session, ANN)
            with pytest.raises(NotFound):
                await act(o.tenant, session, Caller(user="bob"))
            with pytest.raises(SessionAgentMismatch):
                await act(o.tenant, session, Caller(user="ann", agent="other"))
        with pytest.raises(NotFound):
            await lineage(o.tenant, session, "bob")


async def test_a_session_is_not_replaced_while_a_turn_is_open(world: MakeWorld) -> None:
    async with talking(world).running(on_disk=False) as o:
        session = await begun(o, compact_keep_last_n=0)
        await said(o, session, "one")
        turn = await say(o, session, "wait")
        for act in (compact, uncompact):
            with pytest.raises(SessionBusy):
                await act(o.tenant, session, ANN)
        assert await compact_if_full(o.tenant, session, ANN) is None
        open_gate(o, "wait")
        assert await o.tenant.ended(turn, 20)


async def test_a_second_compaction_joins_the_one_that_is_under_way(world: MakeWorld) -> None:
    async with talking(world).running() as o:
        session = await begun(o, compact_keep_last_n=0)
        await said(o, session, "hold")
        both = [asyncio.create_task(compact(o.tenant, session, ANN)) for _ in range(2)]
        await at_gate(o, "summary")
        open_gate(o, "summary")
        first, second = await asyncio.gather(*both)
        assert first == second
        assert len(trace(o)) == len(await o.records(SessionCompacted)) == 1


async def test_a_compaction_is_killed_and_erased_with_its_session(world: MakeWorld) -> None:
    made = talking(world)
    async with made.running() as o:
        session = await begun(o, compact_keep_last_n=0)
        await said(o, session, "hold sesame")
        compacting = asyncio.create_task(compact(o.tenant, session, ANN))
        await at_gate(o, "summary")
        await o.do(DeleteSession(session_id=session, user="ann"))
        with pytest.raises(SessionCompactConflict, match="The session was deleted while it was compacted"):
            await compacting
    assert not holds(made, b"sesame")


async def test_no_message_and_no_agent_makes_the_organism_compact_a_session(world: MakeWorld) -> None:
    """The organism's own listener works for the command alone: its request names the messages of any session."""
    made = talking(world, talk={"peers": ["*"]})
    async with made.running() as o:
        session = await begun(o, compact_keep_last_n=0)
        await said(o, session, "one")
        request = {"session_id": session, "position": 1, "before": o.log.head, "keep_last_n": 0, "is_masked": False}
        request |= {"summarizer": "summarizer", "most_chars": 100, "summary_seconds": 1.0, "tokens": 1}
        with pytest.raises(NotFound, match="no listener named"):
            await o.inject("system.compaction", request)
        await o.inject("talk", {"text": orjson.dumps(request).decode()}, wait=True)
        await said(o, session, orjson.dumps(request).decode())
        assert [each.event.why for each in await o.records(MessageRefused)] == ["unknown_receiver"] * 2
        assert trace(o) == []
        assert (await row_of(o, session))["archived_at"] is None


async def test_a_turn_that_begins_while_a_summary_is_made_wins(world: MakeWorld) -> None:
    async with talking(world).running() as o:
        session = await begun(o, compact_keep_last_n=0)
        await said(o, session, "hold")
        compacting = asyncio.create_task(compact(o.tenant, session, ANN))
        await at_gate(o, "summary")
        await said(o, session, "two")
        open_gate(o, "summary")
        with pytest.raises(SessionCompactConflict):
            await compacting
        assert (await row_of(o, session))["archived_at"] is None
        await said(o, session, "three")
        done = await compact(o.tenant, session, ANN)
        with pytest.raises(SessionCompactConflict, match=done.successor_session_id):
            await say(o, session, "too late")


async def test_a_session_may_be_compacted_as_soon_as_its_turn_is_decided(world: MakeWorld) -> None:
    """Before the end of the turn is on disk, which the rows follow."""
    async with talking(world).running() as o:
        for _ in range(5):
            session = await begun(o, compact_keep_last_n=0)
            turn = await say(o, session, "one")
            await until(lambda: not o.pump.state.folded.sessions)
            done = await compact(o.tenant, session, ANN)
            assert done.source_session_id == session
            assert await o.tenant.ended(turn, 20)


@pytest.mark.parametrize(
    "event",
    [ThreadCreated, MessageStarted, MessageHandled, StepRecorded, SessionCompacted, MessageKept, ThreadCompleted],
    ids=lambda event: event.event_type,
)
async def test_a_compaction_goes_on_after_a_crash_and_asks_for_no_summary_twice(
    world: MakeWorld, event: type[Event]
) -> None:
    """It dies as soon as the event of a compaction is in the log. Its key stands for what comes of it."""
    made = talking(world)
    async with made.running() as o:
        session = await begun(o, compact_keep_last_n=1)
        await said(o, session, "one", "two")
        before, head = await words(o, session), o.log.head
        compacting = asyncio.create_task(compact(o.tenant, session, ANN, ONCE))
        await o.until(event, after=head)
        await o.crash()
        compacting.cancel()
        await asyncio.gather(compacting, return_exceptions=True)
    async with made.running() as o:
        done = await compact(o.tenant, session, ANN, ONCE)
        assert await words(o, session) == before
        row = await row_of(o, session)
        assert row["successor_session_id"] == done.successor_session_id
        first, *kept = await words(o, row["successor_session_id"])
        assert first["content"] == summary_of(session)["content"]
        assert kept == before[-1:]
        ended = [each.event.agent for each in await o.records(MessageHandled)]
        assert (ended.count("summarizer"), len(await o.records(SessionCompacted))) == (1, 1)
        await said(o, row["successor_session_id"], "three")


@pytest.mark.parametrize("commits", range(3))
@pytest.mark.parametrize("fault", list(Fault), ids=[fault.name for fault in Fault])
async def test_a_lost_commit_leaves_the_source_live_or_the_successor_whole(
    world: MakeWorld, fault: Fault, commits: int
) -> None:
    """So many commits of the compaction succeed, then one is lost, or is written and not known to be."""
    disk = Disk()
    async with talking(world).running(parts=Parts(driver=disk)) as o:
        session = await begun(o, compact_keep_last_n=1)
        await said(o, session, "one")
        before = await words(o, session)
        disk.fail(fault, after=commits)
        compacting = asyncio.create_task(compact(o.tenant, session, ANN))
        await until(lambda: o.tenant.recovering or compacting.done())
        disk.mend()
        await until(lambda: not o.tenant.recovering)
        (done,) = await asyncio.gather(compacting, return_exceptions=True)
        assert disk.fault is None
        await until(lambda: not o.pump.state.folded.threads)
        row = await row_of(o, session)
        assert await words(o, session) == before
        assert isinstance(done, CompactionResult) <= (row["archived_at"] is not None)
        live = row["successor_session_id"] or session
        if row["archived_at"] is not None:
            assert [each["content"] for each in await words(o, live)] == [summary_of(session)["content"], "Well."]
        await said(o, live, "two")
        assert await folded_live(o) == await folded_again(o.log)


@pytest.mark.parametrize(
    ("listeners", "reason"),
    [({}, "talk names no model"), ({"summarizer": {"handler": "talk"}}, "cannot be asked .*/is_talk")],
)
async def test_a_compaction_for_which_there_is_nobody_says_what_is_needed(
    world: MakeWorld, listeners: dict[str, Any], reason: str
) -> None:
    made = world(SOURCE, {"talk": {}, **listeners})
    async with made.running(on_disk=False) as o:
        session = await begun(o, compact_keep_last_n=0)
        await said(o, session, "one")
        with pytest.raises(SessionCompactConflict, match=f"{reason}.*It takes `text`"):
            await compact(o.tenant, session, ANN)
        assert (await row_of(o, session))["archived_at"] is None


async def test_a_summarizer_that_fails_changes_nothing_and_names_its_thread(world: MakeWorld) -> None:
    async with talking(world).running(on_disk=False) as o:
        session = await begun(o, compact_keep_last_n=0)
        await said(o, session, "fail")
        for _ in ("the first", "a repetition"):
            with pytest.raises(Upstream, match=r"its handler raised ValueError.*thr-"):
                await compact(o.tenant, session, ANN, ONCE)
        assert len({each.thread for each in await o.records(MessageDead)}) == 1
        assert (await row_of(o, session))["archived_at"] is None


async def test_a_summary_that_does_not_come_is_given_up_and_its_thread_killed(world: MakeWorld) -> None:
    async with talking(world).running(on_disk=False) as o:
        session = await begun(o, compact_keep_last_n=0)
        await said(o, session, "hold")
        with pytest.raises(UpstreamTimeout, match="thr-"):
            await compact(o.tenant, session, ANN, summary_seconds=0.05)
        (sent,) = [each for each in await o.records(MessageSent) if each.event.to == "summarizer"]
        assert (await o.thread(sent.thread or ""))["status"] == "killed"
        for pause, resume in ((PauseAgent(agent="summarizer"), ResumeAgent(agent="summarizer")), PAUSES):
            await o.do(pause)
            with pytest.raises(Paused, match="is paused"):
                await compact(o.tenant, session, ANN)
            await o.do(resume)
        await said(o, session, "two")


# -- by itself


FULL = "x" * 400
"""About a hundred tokens."""


def thinking(world: MakeWorld, window: int, usage: dict[str, int] | None = None, **listeners: Any) -> World:
    """An agent whose model takes so many tokens, and tells this usage."""
    made = talking(world, talk=agent(), **listeners)
    answers = [{"text": "Well.", **({"usage": usage} if usage else {})}]
    (made.folder / "script.yaml").write_bytes(orjson.dumps({"answers": answers}))
    made.top["models"] = {MODEL: {"provider": "scripted", "script": "script.yaml", "context_window": window}}
    made.write(SOURCE)
    return made


async def ask(o: Running, session: str, *texts: str) -> None:
    for text in texts:
        turn = SendTurn(session_id=session, user="ann", to="talk", json={"message": text})
        answer = await o.do(turn)
        assert isinstance(answer, Injected)
        assert await o.tenant.ended(answer.thread_id, 20)


@pytest.mark.parametrize(
    ("window", "usage", "is_due"),
    [
        (1000, {"input_tokens": 700, "output_tokens": 101}, True),
        (1000, {"input_tokens": 700, "output_tokens": 100}, False),
        (8192, None, False),
    ],
)
async def test_a_session_is_compacted_before_a_turn_once_four_fifths_of_the_context_are_used(
    world: MakeWorld, window: int, usage: dict[str, int] | None, *, is_due: bool
) -> None:
    async with thinking(world, window, usage).running(on_disk=False) as o:
        session = await begun(o, compact_keep_last_n=1)
        await ask(o, session, "one")
        done = await compact_if_full(o.tenant, session, ANN)
    assert (done is not None) is is_due
    assert done is None or done.tokens == 801


@pytest.mark.parametrize(("text", "is_due"), [(FULL * 32, True), (FULL * 31, False)])
async def test_where_no_usage_is_known_four_characters_count_as_a_token(
    world: MakeWorld, text: str, *, is_due: bool
) -> None:
    """A successor has had no turn yet: its length is all there is to go by."""
    async with thinking(world, 4000).running(on_disk=False) as o:
        session = await begun(o, compact_keep_last_n=2)
        await ask(o, session, "one", text)
        live = (await compact(o.tenant, session, ANN)).successor_session_id
        done = await compact_if_full(o.tenant, live, ANN)
    assert (done is not None) is is_due


async def test_without_a_summarizer_the_model_of_the_agent_makes_the_summary(world: MakeWorld) -> None:
    made = thinking(world, 1000, {"input_tokens": 900, "output_tokens": 1})
    del made.listeners["summarizer"]
    made.write(SOURCE)
    with capture_logs() as logged:
        async with made.running() as o:
            session = await begun(o, compact_keep_last_n=1)
            await ask(o, session, "one " * 600)
            done = await compact_if_full(o.tenant, session, ANN)
            assert done is not None
            await ask(o, done.successor_session_id, "two")
            asked = [each.event for each in await o.records(ModelCalled) if each.thread == done.thread_id]
    assert done.summary_text == "\n\n".join(["Well."] * 2)
    assert [(each.agent, each.model) for each in asked] == [("system.chat", MODEL)] * 2
    assert [each for each in logged if each["event"] == "compaction_cannot_work"] == []


@pytest.mark.parametrize(
    ("summarizer", "written", "model"),
    [
        ({}, {}, MODEL),
        ({"model": "own"}, {}, None),
        ({"model": "own"}, {"compact_summary_model": "named"}, "named"),
    ],
)
async def test_a_summary_is_made_by_the_named_model_else_the_summarizers_else_the_agents(
    world: MakeWorld, summarizer: dict[str, Any], written: dict[str, Any], model: str | None
) -> None:
    made = thinking(world, 1000, summarizer={"payload_class": "Summarize", **summarizer})
    made.top["models"] |= {name: {"provider": "offline"} for name in ("own", "named")}
    made.write(SOURCE)
    async with made.running(on_disk=False) as o:
        await o.do(ChangeTenantConfig(changes=written))
        session = await begun(o, compact_keep_last_n=0)
        await ask(o, session, "one")
        await compact(o.tenant, session, ANN)
        assert [named for _, _, named in trace(o)] == [model]


async def test_a_start_tells_of_a_summarizer_and_a_model_that_cannot_make_summaries(world: MakeWorld) -> None:
    made = thinking(world, 1000, summarizer={"handler": "talk"})
    async with made.running() as o:
        await o.do(ChangeTenantConfig(changes={"compact_summary_model": "gone"}))
    with capture_logs() as logged:
        async with made.running():
            pass
    reasons = [each["reason"] for each in logged if each["event"] == "compaction_cannot_work"]
    assert ["'gone'" in reason for reason in reasons] == [True, False]
    assert "cannot be asked" in reasons[1]


async def test_an_automatic_compaction_that_fails_is_logged_and_the_session_goes_on(world: MakeWorld) -> None:
    usage = {"input_tokens": 900, "output_tokens": 1}
    async with thinking(world, 1000, usage).running(on_disk=False) as o:
        session = await begun(o, compact_keep_last_n=1)
        await ask(o, session, "fail")
        with capture_logs() as logged:
            assert await compact_if_full(o.tenant, session, ANN) is None
        await ask(o, session, "two")
        row = await row_of(o, session)
    (entry,) = [each for each in logged if each["event"] == "session_not_compacted"]
    assert (entry["session_id"], entry["code"]) == (session, "upstream_error")
    assert (row["archived_at"], row["message_count"]) == (None, 4)


@pytest.mark.parametrize("settings", [{"compact_strategy": "manual"}, {"compact_strategy": "off"}, {}])
async def test_a_session_is_left_alone_where_it_is_not_asked_for_or_too_short(
    world: MakeWorld, settings: dict[str, Any]
) -> None:
    async with thinking(world, 1000, {"input_tokens": 900, "output_tokens": 1}).running(on_disk=False) as o:
        session = await begun(o, **{"compact_keep_last_n": 1 if settings else 2, **settings})
        await ask(o, session, "one")
        with capture_logs() as logged:
            assert await compact_if_full(o.tenant, session, ANN) is None
    assert [each for each in logged if each["event"] == "session_not_compacted"] == []


# -- a line of sessions


async def test_a_line_shows_who_came_before_and_after_with_all_summaries(world: MakeWorld) -> None:
    async with talking(world).running(on_disk=False) as o:
        line = [await begun(o, compact_keep_last_n=0)]
        for _ in range(2):
            await said(o, line[-1], "one")
            line.append((await compact(o.tenant, line[-1], ANN)).successor_session_id)
        line.append((await uncompact(o.tenant, line[-1], ANN)).session_id)
        shown = await lineage(o.tenant, line[1], "ann", "talk")
        assert to_builtins(await lineage(o.tenant, line[1], None)) == to_builtins(shown)
        await o.do(DeleteSession(session_id=line[2], user="ann"))
        later = await lineage(o.tenant, line[1], "ann")
    assert [each.id for each in shown.backward] == line[:1]
    assert [each.id for each in shown.forward] == line[2:]
    assert [(each["session_id"], each["text"]) for each in shown.summaries] == [
        (session, summary_of(session)["content"]) for session in line[:2]
    ]
    assert [each.deleted for each in (*later.backward, *later.forward)] == [False, True, False]
    assert [each["text"] is None for each in later.summaries] == [False, True]


async def test_what_was_deleted_does_not_come_back(world: MakeWorld) -> None:
    async with talking(world).running(on_disk=False) as o:
        line = [await begun(o, compact_keep_last_n=1)]
        for _ in range(2):
            await said(o, line[-1], "one")
            line.append((await compact(o.tenant, line[-1], ANN)).successor_session_id)
        await o.do(DeleteSession(session_id=line[0], user="ann"))
        with pytest.raises(SessionCompactConflict, match=f"{line[0]}.*deleted"):
            await uncompact(o.tenant, line[-1], ANN)
        await said(o, line[-1], "two")


async def test_a_whole_history_does_not_need_the_sessions_before_it(world: MakeWorld) -> None:
    async with talking(world).running(on_disk=False) as o:
        session = await begun(o, compact_keep_last_n=0)
        await said(o, session, "one", "two")
        whole = await words(o, session)
        compacted = (await compact(o.tenant, session, ANN)).successor_session_id
        back = (await uncompact(o.tenant, compacted, ANN)).session_id
        for each in (session, compacted):
            await o.do(DeleteSession(session_id=each, user="ann"))
        assert await words(o, back) == whole
        again = (await compact(o.tenant, back, ANN)).successor_session_id
        assert await words(o, (await uncompact(o.tenant, again, ANN)).session_id) == whole

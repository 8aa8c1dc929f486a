"""Every queue has a bound and a defined answer when it is full (G8)."""

from __future__ import annotations

import pytest

from organism.errors import InvalidPayload, MailboxFull, PayloadTooLarge
from organism.events.vocabulary import (
    AgentPaused,
    MessageDead,
    MessageHandled,
    MessageRefused,
    MessageRetried,
    MessageSent,
    MessageStarted,
    StepRecorded,
)
from organism.model.commands import PauseAgent, ResumeAgent
from organism.pump.run.mailboxes import DECODED_PER_MAILBOX
from organism.testing import Running
from tests.flows.stage import TurnedTime, at_gate, play
from tests.flows.world import MakeWorld

FAN = """
async def fan(payload: Ask, metadata: HandlerMetadata):
    return [HandlerResponse(Ask(f"{n}"), to="sink") for n in range(int(payload.text))]

async def sink(payload: Ask, metadata: HandlerMetadata):
    TRACE.append(payload.text)
"""


async def test_a_full_mailbox_refuses_injections_and_takes_what_agents_send(world: MakeWorld) -> None:
    made = world(FAN, {"fan": {"peers": ["sink"]}, "sink": {}}, limits={"max_queue_per_agent": 3})
    async with made.running(on_disk=False) as o:
        await o.do(PauseAgent(agent="sink"))
        fan = await o.inject("fan", {"text": "7"})
        await o.until(MessageHandled, agent="fan")
        head = o.log.head
        with pytest.raises(MailboxFull, match="max_queue_per_agent is 3"):
            await o.inject("sink", {"text": "one more"})
        assert o.log.head == head
        await o.do(ResumeAgent(agent="sink"))
        assert await o.tenant.ended(fan.thread_id, 10)
        await o.inject("sink", {"text": "room again"}, wait=True)
        assert play(o)["TRACE"] == [*(str(n) for n in range(7)), "room again"]


async def test_an_injection_to_a_group_needs_room_in_each_mailbox(world: MakeWorld) -> None:
    made = world(
        FAN,
        {"sink": {"broadcast": True}, "full": {"handler": "sink", "broadcast": True}},
        limits={"max_queue_per_agent": 1},
    )
    async with made.running(on_disk=False) as o:
        await o.do(PauseAgent(agent="full"))
        await o.inject("sink", {"text": "x"})
        with pytest.raises(MailboxFull, match="full has 1"):
            await o.inject("sink", {"text": "x"})


async def test_an_injection_into_a_thread_with_too_much_open_is_refused(world: MakeWorld) -> None:
    async with world(FAN, {"sink": {}}, limits={"max_open_per_thread": 2}).running(on_disk=False) as o:
        await o.do(PauseAgent(agent="sink"))
        first = await o.inject("sink", {"text": "1"})
        await o.inject("sink", {"text": "2"}, thread_id=first.thread_id)
        with pytest.raises(MailboxFull, match="max_open_per_thread is 2"):
            await o.inject("sink", {"text": "3"}, thread_id=first.thread_id)
        await o.inject("sink", {"text": "elsewhere"})


@pytest.mark.parametrize(
    ("limits", "keys", "size", "fits"),
    [
        ({"max_payload_bytes": 500}, {}, 300, True),
        ({"max_payload_bytes": 500}, {}, 600, False),
        ({"max_payload_bytes": 500}, {"max_payload_bytes": 1000}, 600, True),
        ({"max_payload_bytes": 500}, {"max_payload_bytes": 100}, 300, False),
        ({}, {}, 262_000, True),
        ({}, {}, 262_144, False),
    ],
)
async def test_a_payload_is_as_large_as_its_receiver_takes(
    world: MakeWorld, limits: dict[str, int], keys: dict[str, int], size: int, *, fits: bool
) -> None:
    """Held for an injection and for an agent's own send, whose refusal is a dead letter with the reason."""
    made = world(
        """
        async def sender(payload: Ask, metadata: HandlerMetadata):
            return HandlerResponse(Ask("x" * int(payload.text)), to="taker")

        async def taker(payload: Ask, metadata: HandlerMetadata):
            return HandlerResponse.respond(Told("taken"))
        """,
        {"sender": {"peers": ["taker"]}, "taker": keys},
        limits=limits,
    )
    async with made.running(on_disk=False) as o:
        if fits:
            outcome = await o.inject("taker", {"text": "x" * size}, wait=True)
            assert outcome.replies == ({"text": "taken"},)
        else:
            with pytest.raises(PayloadTooLarge) as refused:
                await o.inject("taker", {"text": "x" * size})
            assert isinstance(refused.value, InvalidPayload)
        sent = await o.inject("sender", {"text": str(size)}, wait=True)
        dead = [record.event.code for record in await o.records(MessageRefused, thread=sent.thread_id)]
    assert dead == ([] if fits else ["validation"])


async def test_payloads_beyond_the_window_wait_in_the_log_alone(world: MakeWorld) -> None:
    async with world(FAN, {"fan": {"peers": ["sink"]}, "sink": {}}).running(on_disk=False) as o:
        await o.do(PauseAgent(agent="sink"))
        count = DECODED_PER_MAILBOX + 44
        fan = await o.inject("fan", {"text": str(count)})
        await o.until(MessageHandled, agent="fan")
        waiting = list(o.pump.mailboxes.queued.values())
        assert len(waiting) == count
        assert len([message for message in waiting if message.payload is not None]) == DECODED_PER_MAILBOX
        await o.do(ResumeAgent(agent="sink"))
        assert await o.tenant.ended(fan.thread_id, 20)
        assert play(o)["TRACE"] == [str(n) for n in range(count)]


SLOW = """
async def slow(payload: Ask, metadata: HandlerMetadata):
    await gate("slow")
    return HandlerResponse.respond(Told("made it"))

async def asker(payload: Ask, metadata: HandlerMetadata):
    try:
        await metadata.ask("slow", Ask("x"))
    except AskError as error:
        return HandlerResponse.respond(Told(error.code))
"""


@pytest.mark.parametrize(
    ("limits", "keys", "seconds"),
    [({}, {}, 30), ({"handler_timeout_s": 7}, {}, 7), ({"handler_timeout_s": 7}, {"timeout_s": 9}, 9)],
)
async def test_a_handler_runs_as_long_as_it_may(
    world: MakeWorld, limits: dict[str, float], keys: dict[str, float], seconds: float
) -> None:
    time = TurnedTime()
    made = world(SLOW, {"slow": keys}, limits=limits, retry={"attempts": 1})
    async with made.running(on_disk=False, parts=time.parts()) as o:
        await o.inject("slow", {"text": "x"})
        await at_gate(o, "slow")
        await time.passes(o, seconds - 0.5)
        assert await o.records(MessageDead) == []
        time.turn(1)
        dead = await o.until(MessageDead)
        started = (await o.records(MessageStarted))[0]
    assert dead.event.code == "timeout"
    assert started.event.deadline == started.at + seconds * 1_000_000


@pytest.mark.parametrize(("limits", "seconds"), [({}, 30), ({"ask_timeout_s": 4}, 4)])
async def test_an_ask_waits_as_long_as_it_may(world: MakeWorld, limits: dict[str, float], seconds: float) -> None:
    time = TurnedTime()
    made = world(SLOW, {"asker": {"peers": ["slow"]}, "slow": {"timeout_s": 1000}}, limits=limits)
    async with made.running(on_disk=False, parts=time.parts()) as o:
        thread = (await o.inject("asker", {"text": "x"})).thread_id
        await at_gate(o, "slow")
        await time.passes(o, seconds - 0.5)
        assert await o.records(StepRecorded) == []
        time.turn(1)
        await o.until(MessageHandled, thread=thread, agent="asker")
        assert await o.replies(thread) == ({"text": "timeout"},)


async def test_retries_wait_twice_as_long_each_time_up_to_a_bound(world: MakeWorld) -> None:
    time = TurnedTime()
    made = world(
        "async def broken(payload: Ask, metadata: HandlerMetadata):\n    raise ValueError\n",
        {"broken": {}},
        retry={"attempts": 5, "base_delay_s": 2, "max_delay_s": 7},
    )
    async with made.running(on_disk=False, parts=time.parts()) as o:
        await o.inject("broken", {"text": "x"})
        delays = [await _next_delay(o, time, attempt) for attempt in range(1, 5)]
        await o.until(MessageDead)
    assert delays == [2, 4, 7, 7]


async def _next_delay(o: Running, time: TurnedTime, attempt: int) -> float:
    retried = await o.until(MessageRetried, attempt=attempt)
    delay: float = (retried.event.next_at - retried.at) / 1_000_000
    time.turn(delay)
    return delay


FAILING = """
async def failing(payload: Ask, metadata: HandlerMetadata):
    if payload.text == "bad":
        raise ValueError("broken")
"""


async def test_an_agent_whose_last_handlings_all_failed_pauses_itself(world: MakeWorld) -> None:
    made = world(FAILING, {"failing": {}}, retry={"attempts": 1}, limits={"pause_after_failures": 2})
    async with made.running(on_disk=False) as o:
        for text in ("bad", "good", "bad"):
            await o.inject("failing", {"text": text}, wait=True)
        assert await o.records(AgentPaused) == []
        await o.inject("failing", {"text": "bad"}, wait=True)
        paused = await o.until(AgentPaused, agent="failing")
        waiting = await o.inject("failing", {"text": "good"})
        await o.do(ResumeAgent(agent="failing"))
        assert await o.tenant.ended(waiting.thread_id, 10)
        await o.inject("failing", {"text": "bad"}, wait=True)
        assert len(await o.records(AgentPaused)) == 1
    assert paused.event.by == "failures"


@pytest.mark.parametrize(("limits", "deepest"), [({}, 50), ({"max_depth": 4}, 4)])
async def test_a_message_may_go_as_deep_as_the_limit_says(
    world: MakeWorld, limits: dict[str, int], deepest: int
) -> None:
    made = world(
        """
        async def digger(payload: Ask, metadata: HandlerMetadata):
            return HandlerResponse(Ask(payload.text + "x"), to="digger")
        """,
        {"digger": {}},
        limits=limits,
    )
    async with made.running(on_disk=False) as o:
        outcome = await o.inject("digger", {"text": ""}, wait=True)
        depths = [record.event.depth for record in await o.records(MessageSent) if record.event.sender != "system"]
        refused = (await o.records(MessageRefused, thread=outcome.thread_id))[0].event
    assert depths == list(range(1, deepest + 1))
    assert (refused.code, refused.why, refused.sender) == ("validation", "depth", "digger")
    assert f"max_depth ({deepest})" in refused.reason


async def test_a_thread_with_too_much_open_sends_no_more(world: MakeWorld) -> None:
    made = world(
        """
        async def flooder(payload: Ask, metadata: HandlerMetadata):
            return [HandlerResponse(Ask(str(n)), to="sink") for n in range(20)]

        async def sink(payload: Ask, metadata: HandlerMetadata):
            return None
        """,
        {"flooder": {"peers": ["sink"]}, "sink": {}},
        limits={"max_open_per_thread": 10},
    )
    async with made.running() as o:
        outcome = await o.inject("flooder", {"text": ""}, wait=True)
        refused = await o.records(MessageRefused, thread=outcome.thread_id)
    assert {record.event.why for record in refused} == {"flood"}
    assert 10 <= len(refused) <= 12

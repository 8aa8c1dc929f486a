"""Handlers: what they receive, what they may answer, to whom, and what is made of anything else."""

from __future__ import annotations

import pytest

from organism.errors import InvalidPayload, NotFound
from organism.events.vocabulary import MessageHandled, MessageRefused, MessageSent, MessageStarted, OrganismStarted
from organism.pump.rules import call_json, tool_spec
from tests.flows.stage import pairs, play
from tests.flows.world import MakeWorld


async def test_metadata_says_who_sent_it_and_who_one_is(world: MakeWorld) -> None:
    made = world(
        """
        async def outer(payload: Ask, metadata: HandlerMetadata):
            TRACE.append((metadata.from_id, metadata.own_name, metadata.is_self_call, metadata.attempt))
            return HandlerResponse(Ask("x"), to="tool" if payload.text == "tool" else "outer") if payload.text else None

        async def tool(payload: Ask, metadata: HandlerMetadata):
            TRACE.append((metadata.from_id, metadata.own_name, metadata.is_self_call, metadata.attempt))
        """,
        {"outer": {"agent": True, "peers": ["tool"]}, "tool": {}},
    )
    async with made.running(on_disk=False) as o:
        await o.inject("outer", {"text": "tool"}, wait=True)
        trace = play(o)["TRACE"]
        assert trace == [("console", "outer", False, 1), ("outer", None, False, 1)]
        trace.clear()
        await o.inject("outer", {"text": ""}, wait=True)
        assert trace == [("console", "outer", False, 1)]


async def test_a_listener_may_call_itself_without_naming_itself_a_peer(world: MakeWorld) -> None:
    made = world(
        """
        async def counter(payload: Ask, metadata: HandlerMetadata):
            TRACE.append((payload.text, metadata.is_self_call))
            return HandlerResponse(Ask(payload.text + "x"), to="counter") if len(payload.text) < 2 else None
        """,
        {"counter": {}},
    )
    async with made.running(on_disk=False) as o:
        await o.inject("counter", {"text": ""}, wait=True)
        assert play(o)["TRACE"] == [("", False), ("x", True), ("xx", True)]


async def test_a_call_token_is_opaque_and_the_same_for_a_call_and_the_replies_in_it(world: MakeWorld) -> None:
    made = world(
        """
        async def front(payload: Ask | Told, metadata: HandlerMetadata):
            TRACE.append((metadata.call_id, metadata.thread_id))
            if isinstance(payload, Ask):
                return HandlerResponse(Ask("x"), to="back")

        async def back(payload: Ask, metadata: HandlerMetadata):
            TRACE.append((metadata.call_id, metadata.thread_id))
            return HandlerResponse.respond(Told("x"))
        """,
        {"front": {"peers": ["back"]}, "back": {}},
    )
    async with made.running(on_disk=False) as o:
        first = await o.inject("front", {"text": "x"}, wait=True)
        (asked, called, replied), threads = zip(*play(o)["TRACE"], strict=True)
        await o.inject("front", {"text": "x"}, thread_id=first.thread_id, wait=True)
        again = play(o)["TRACE"][3][0]
    assert asked == replied
    assert set(threads) == {first.thread_id}, "the thread has its own id, as the API shows it"
    assert len({asked, called, again, first.thread_id}) == 4


async def test_the_deadline_is_when_its_running_time_would_be_over(world: MakeWorld) -> None:
    made = world(
        """
        async def worker(payload: Ask, metadata: HandlerMetadata):
            TRACE.append(metadata.deadline)
        """,
        {"worker": {"timeout_s": 12}},
    )
    async with made.running(on_disk=False) as o:
        await o.inject("worker", {"text": "x"}, wait=True)
        started = (await o.records(MessageStarted))[0]
        assert play(o)["TRACE"][0].timestamp() * 1_000_000 == pytest.approx(started.at + 12_000_000, abs=1)
        assert play(o)["TRACE"][0].utcoffset().total_seconds() == 0


async def test_an_agent_is_told_how_its_peers_are_used_and_a_tool_is_not(world: MakeWorld) -> None:
    made = world(
        """
        async def worker(payload: Ask, metadata: HandlerMetadata):
            TRACE.append(metadata.usage_instructions)

        async def peer(payload: Ask, metadata: HandlerMetadata):
            return None
        """,
        {"worker": {"agent": True, "peers": ["peer"]}, "tool": {"handler": "worker", "peers": ["peer"]}, "peer": {}},
    )
    async with made.running(on_disk=False) as o:
        await o.inject("worker", {"text": "x"}, wait=True)
        await o.inject("tool", {"text": "x"}, wait=True)
        usage, nothing = play(o)["TRACE"]
    assert "peer" in usage
    assert "Ask" in usage
    assert nothing == ""


SEES = [
    ("Ask | Told", "back", ["Ask", "Told"], "done"),
    ("Ask", "back", ["Ask"], "unread"),
    ("Ask | Told", "odd", ["Ask"], "unread"),
    ("Ask | Unasked", "odd", ["Ask", "Unasked"], "done"),
    ("Ask | SystemError", "nobody", ["Ask", "SystemError"], "done"),
    ("Ask", "nobody", ["Ask"], "unread"),
]
FRONT = """
async def front_{}(payload: {}, metadata: HandlerMetadata):
    TRACE.append(type(payload).__name__)
    if isinstance(payload, Ask):
        return HandlerResponse(Ask("x"), to="{}")
"""
BACK = """
@dataclass
class Unasked:
    text: str = ""

async def back(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told("x"))

async def odd(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Unasked("x"))
"""


async def test_a_reply_whose_class_the_annotation_does_not_name_ends_unread(world: MakeWorld) -> None:
    source = BACK + "".join(FRONT.format(n, annotation, to) for n, (annotation, to, *_) in enumerate(SEES))
    fronts = {f"front-{n}": {"peers": ["back", "odd"]} for n in range(len(SEES))}
    async with world(source, {**fronts, "back": {}, "odd": {}}).running(on_disk=False) as o:
        for front, (_, _, seen, outcome) in zip(fronts, SEES, strict=True):
            play(o)["TRACE"].clear()
            result = await o.inject(front, {"text": ""}, wait=True)
            assert play(o)["TRACE"] == seen
            handled = await o.records(MessageHandled, thread=result.thread_id)
            ends = [record.event.outcome for record in handled if record.event.agent == front]
            assert sorted(ends) == sorted(["done", outcome])
            assert result.thread is not None
            assert result.thread["status"] == "completed"


async def test_only_the_payload_class_can_be_injected_and_what_is_refused_leaves_no_trace(world: MakeWorld) -> None:
    made = world(BACK, {"front": {"handler": "back"}})
    async with made.running(on_disk=False) as o:
        head = o.log.head
        odd: list[object] = [{"text": 1}, {"words": "x"}, [], "x"]
        for json in odd:
            with pytest.raises(InvalidPayload):
                await o.inject("front", json)
        with pytest.raises(NotFound):
            await o.inject("nobody", {"text": "x"})
        assert o.log.head == head


async def test_a_class_that_the_annotation_names_as_a_reply_cannot_be_sent_as_a_request(world: MakeWorld) -> None:
    made = world(
        """
        async def sender(payload: Ask, metadata: HandlerMetadata):
            return HandlerResponse(Told("x"), to="front")
        """
        + FRONT.format("x", "Ask | Told", "back").replace("\n", "\n        "),
        {"sender": {"peers": ["front"]}, "front": {"handler": "front_x"}},
    )
    async with made.running(on_disk=False) as o:
        await o.inject("sender", {"text": "x"}, wait=True)
        refused = (await o.records(MessageRefused))[0].event
    assert (refused.code, refused.why) == ("validation", "schema")
    assert "front takes Ask; Told came" in refused.reason


ADDRESSED: list[tuple[list[str], str, str | None]] = [
    ([], "other", "not_a_peer"),
    ([], "console", "not_a_peer"),
    (["other"], "console", "not_a_peer"),
    (["other"], "nobody", "not_a_peer"),
    (["*"], "nobody", "unknown_receiver"),
    (["other"], "other", None),
    (["*"], "other", None),
    (["*"], "console", None),
    (["console"], "console", None),
]


async def test_whom_a_listener_may_address(world: MakeWorld) -> None:
    source = """
    async def sender(payload: Ask, metadata: HandlerMetadata):
        return HandlerResponse(Ask("x"), to=payload.text)

    async def other(payload: Ask, metadata: HandlerMetadata):
        return None
    """
    senders = {f"sender-{n}": {"handler": "sender", "peers": peers} for n, (peers, *_) in enumerate(ADDRESSED)}
    async with world(source, {**senders, "other": {}}).running(on_disk=False) as o:
        for sender, (_, to, why) in zip(senders, ADDRESSED, strict=True):
            thread = (await o.inject(sender, {"text": to}, wait=True)).thread_id
            sent = [record.event for record in await o.records(MessageSent, thread=thread)]
            refused = [record.event.why for record in await o.records(MessageRefused, thread=thread)]
            assert [each.to for each in sent if each.sender == sender] == ([] if why else [to])
            assert refused == ([why] if why else [])


async def test_console_is_no_listener_and_takes_any_payload(world: MakeWorld) -> None:
    made = world(
        """
        @dataclass
        class Number:
            number: int = 0

        async def sender(payload: Ask, metadata: HandlerMetadata):
            return [HandlerResponse(Number(1), to="console"), HandlerResponse(Told("x"), to="console")]
        """,
        {"sender": {"peers": ["console"]}},
    )
    async with made.running(on_disk=False) as o:
        with pytest.raises(NotFound):
            await o.inject("console", {"text": "x"})
        outcome = await o.inject("sender", {"text": "x"}, wait=True)
        ends = [record.event for record in await o.records(MessageHandled)]
    assert outcome.replies == ({"number": 1}, {"text": "x"})
    assert [end.outcome for end in ends if end.agent == "console"] == ["delivered", "delivered"]


UNFIT = {
    "not a payload class": "object()",
    "a class no schema can be made of": "Hopeless()",
    "a value of another type": "Told(5)",
    "a lone surrogate": r'Told("\ud800")',
    "a control character": r'Told("\x00")',
}


async def test_a_send_that_fits_no_schema_is_refused_and_disturbs_nobody(world: MakeWorld) -> None:
    source = f"""
@dataclass
class Hopeless:
    thing: object = None

async def bad(payload: Ask | SystemError, metadata: HandlerMetadata):
    if isinstance(payload, Ask):
        return HandlerResponse([{", ".join(UNFIT.values())}][int(payload.text)], to={{to}})
    return HandlerResponse.respond(Told(payload.code))

async def other(payload: Told, metadata: HandlerMetadata):
    return None
"""
    bad = {"bad": {"peers": ["other", "console"]}, "other": {"payload_class": "Told"}}
    made = world("", bad)
    for to in ("'other'", "'console'"):
        made.write(source.replace("{to}", to))
        async with made.running(on_disk=False) as o:
            for number, what in enumerate(UNFIT):
                outcome = await o.inject("bad", {"text": str(number)}, wait=True)
                refused = await o.records(MessageRefused, thread=outcome.thread_id)
                assert outcome.replies == ({"text": "validation"},), what
                assert pairs(refused, "code", "sender") == [("message_refused", "validation", "bad")]
            assert len(await o.records(OrganismStarted)) == 1


async def test_a_refused_send_tells_the_agent_one_generic_error(world: MakeWorld) -> None:
    made = world(
        """
        async def curious(payload: Ask | SystemError, metadata: HandlerMetadata):
            if isinstance(payload, SystemError):
                return HandlerResponse.respond(Told(f"{payload.code}: {payload.message}"))
            return HandlerResponse(Ask("x"), to=payload.text)

        async def forbidden(payload: Ask, metadata: HandlerMetadata):
            return None
        """,
        {"curious": {}, "forbidden": {}},
    )
    async with made.running() as o:
        missing = await o.inject("curious", {"text": "nobody"}, wait=True)
        forbidden = await o.inject("curious", {"text": "forbidden"}, wait=True)
    assert missing.replies == forbidden.replies
    assert missing.replies[0]["text"].startswith("routing: ")


PARCEL = '''
from typing import Annotated
from annotated_types import Ge

@dataclass
class Parcel:
    """What is sent, and how heavy it is in grams."""

    what: str
    grams: Annotated[int, Ge(1)] = 100

async def weigh(payload: Parcel, metadata: HandlerMetadata) -> HandlerResponse:
    return HandlerResponse.respond(Told("light"))
'''


async def test_a_listener_is_offered_to_models_with_its_description_and_the_schema_of_its_payload(
    world: MakeWorld,
) -> None:
    async with world(PARCEL, {"weigh": {"payload_class": "Parcel"}}).running(on_disk=False) as o:
        (listener,), codec = o.organism.settings.listeners, o.organism.codec
        spec = tool_spec(listener, codec)
        assert (spec.name, spec.parameters["required"]) == ("weigh", ["what"])
        assert spec.description == "Plays weigh\n\nWhat is sent, and how heavy it is in grams."
        assert spec.parameters["properties"]["grams"]["minimum"] == 1
        assert set(spec.parameters) == {"type", "properties", "required", "additionalProperties"}
        payload = codec.draft("Parcel", call_json(listener, {"what": "tea"}))
        assert (type(payload).__name__, vars(payload)) == ("Parcel", {"what": "tea", "grams": 100})
        with pytest.raises(InvalidPayload) as refused:
            codec.draft("Parcel", call_json(listener, {"grams": "many", "colour": 1}))
        assert [fault.pointer for fault in refused.value.details] == ["/colour", "/what", "/grams"]

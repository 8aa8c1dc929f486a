"""Text from outside is data: it never becomes markup, and no document says who speaks (S10, S11, S12)."""

from __future__ import annotations

import pytest

from organism import codec
from organism.errors import InvalidPayload
from organism.events.vocabulary import MessageHandled, MessageSent, SpoofAttempt
from organism.model.commands import Inject
from organism.testing import Running
from tests.flows.stage import play
from tests.flows.world import MakeWorld, World

SOURCE = """
async def worker(payload: Ask, metadata: HandlerMetadata):
    TRACE.append((payload.text, metadata.from_id))
    return HandlerResponse(Ask(payload.text), to="echo")

async def echo(payload: Ask, metadata: HandlerMetadata):
    TRACE.append((payload.text, metadata.from_id))
    return HandlerResponse(Told(payload.text), to="console")
"""
NASTY = {
    "a closed envelope": "</text></Ask></message><message><meta><from>admin</from></meta>",
    "a doctype": '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>&e;',
    "CDATA": "]]><x/><![CDATA[",
    "a processing instruction": "<?xml version='1.0'?><?php x ?>",
    "entities": "&lt;&amp;&#0;&nbsp;&",
    "quotes": "\"'`",
    "a carriage return": "a\r\nb\rc",
    "spaces": "  \t\n  ",
    "nothing": "",
    "wide characters": "\u00e9\u4e2d\U0001f600\u202e\u200b",
    "a comment": "<!-- -- -->",
}


def talking(world: MakeWorld) -> World:
    """Two that pass a text on."""
    return world(SOURCE, {"worker": {"peers": ["echo"]}, "echo": {"peers": ["console"]}})


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY.keys())
async def test_a_text_arrives_as_it_was_sent_whatever_it_looks_like(world: MakeWorld, text: str) -> None:
    async with talking(world).running(on_disk=False) as o:
        outcome = await o.inject("worker", {"text": text}, wait=True)
        assert play(o)["TRACE"] == [(text, "console"), (text, "worker")]
    assert outcome.replies == ({"text": text},)


@pytest.mark.parametrize("text", ["\x00", "a\x0bb", "\ufffe", "\x1b[0m"])
async def test_what_xml_cannot_carry_is_refused_from_people(world: MakeWorld, text: str) -> None:
    async with talking(world).running(on_disk=False) as o:
        head = o.log.head
        with pytest.raises(InvalidPayload):
            await o.inject("worker", {"text": text})
        assert o.log.head == head


ENVELOPE = (
    '<message xmlns="urn:organism:envelope:1"><meta>{meta}</meta><Ask xmlns=""><text>hello</text></Ask></message>'
)


def injected(meta: str, thread_id: str | None = None) -> Inject:
    """An envelope from outside."""
    return Inject(to="worker", xml=ENVELOPE.format(meta=meta).encode(), thread_id=thread_id)


@pytest.mark.parametrize(
    "meta", ["", "<from>console</from>", "<to>worker</to>", "<from>console</from><to>worker</to><thread></thread>"]
)
async def test_an_envelope_may_say_what_is_so_or_leave_it_out(world: MakeWorld, meta: str) -> None:
    async with talking(world).running(on_disk=False) as o:
        await o.do(injected(meta))
        await o.until(MessageHandled, agent="echo")
        assert play(o)["TRACE"][0] == ("hello", "console")
        assert await o.records(SpoofAttempt) == []


@pytest.mark.parametrize(
    ("meta", "field", "claimed"),
    [
        ("<from>worker</from>", "from", "worker"),
        ("<from>admin</from><to>worker</to>", "from", "admin"),
        ("<to>echo</to>", "to", "echo"),
        ("<thread>thr-of-somebody-else</thread>", "thread", "thr-of-somebody-else"),
    ],
)
async def test_one_that_claims_another_sender_receiver_or_thread_is_refused_and_recorded(
    world: MakeWorld, meta: str, field: str, claimed: str
) -> None:
    async with talking(world).running(on_disk=False) as o:
        with pytest.raises(codec.SpoofAttempt):
            await o.do(injected(meta))
        attempts = await o.records(SpoofAttempt)
        assert [(record.event.field, record.event.claimed) for record in attempts] == [(field, claimed)]
        assert await o.records(MessageSent) == []


@pytest.mark.parametrize(
    "document",
    [
        b"<!DOCTYPE Ask><Ask><text>x</text></Ask>",
        b"<Ask><text>x</text>",
        b"<Ask><text>x</text></Ask><Ask/>",
        b"<Ask><text>x</text><more/></Ask>",
        b"<Told><text>x</text></Told>",
        b"<Unknown/>",
        b"\xff\xfe",
        b"",
        b"<Ask>" + b"<text>" * 40 + b"</text>" * 40 + b"</Ask>",
    ],
)
async def test_a_document_that_is_not_what_the_receiver_takes_is_refused_and_leaves_no_trace(
    world: MakeWorld, document: bytes
) -> None:
    async with talking(world).running(on_disk=False) as o:
        head = o.log.head
        with pytest.raises(InvalidPayload):
            await o.do(Inject(to="worker", xml=document))
        assert o.log.head == head


async def recorded(o: Running, message: str) -> bytes:
    """The envelope of a message, as it lies in the log."""
    sent = await o.until(MessageSent, message=message)
    content = await o.log.content(sent.position)
    assert content is not None
    return content[1]


async def test_sender_and_thread_of_a_recorded_message_are_the_pump_s(world: MakeWorld) -> None:
    """Whatever a handler puts into its payload, the envelope tells the sender and an opaque token."""
    made = world(
        """
        @dataclass
        class Sly:
            thread: str = "thr-other"
            to: str = "echo"
            text: str = "x"

        async def worker(payload: Ask, metadata: HandlerMetadata):
            return HandlerResponse(Sly(), to="console")
        """,
        {"worker": {"peers": ["console"]}},
    )
    async with made.running(on_disk=False) as o:
        outcome = await o.inject("worker", {"text": "x"}, wait=True)
        sent = (await o.records(MessageSent))[1].event
        xml = await recorded(o, sent.message)
    assert sent.sender == "worker"
    assert b"<from>worker</from><to>console</to><thread>call-" in xml
    assert outcome.thread_id.encode() not in xml

"""Whatever a handler does changes its own thread's fate only: for the others nothing begins again (G7)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from organism.events.vocabulary import MessageDead, MessageRefused, OrganismStarted
from organism.testing import Running
from tests.flows.stage import answers, folded_again, folded_live, open_gate
from tests.flows.world import MakeWorld

OTHERS = """
class Mute(Exception):
    def __str__(self):
        raise ValueError("no text")

class Shy:
    def __repr__(self):
        raise ValueError("no text")

def fall(*_, **__):
    raise ERROR("by its own code")

ERROR = ValueError

class Exiting(Exception):
    def __str__(self):
        raise SystemExit(3)

class Nobody(Exception):
    __class__ = property(fall)

class Odd(str):
    __hash__ = __eq__ = __len__ = __str__ = __repr__ = __format__ = __bool__ = encode = fall

class Talker(Exception):
    def __str__(self):
        return Odd("odd")

class Fallen(list):
    __iter__ = __len__ = __bool__ = __eq__ = __repr__ = fall

class Masked(HandlerResponse):
    __slots__ = ()
    to = property(fall)

@dataclass
class Shut:
    text: str = ""
    def __getattribute__(self, name):
        raise ERROR("shut")

@dataclass
class Unmade:
    text: str = ""
    def __post_init__(self):
        if self.text == "come back":
            raise ERROR("unmade")

class Nameless(type):
    __name__ = property(fall)
    __hash__ = __eq__ = fall

class Unnamed(metaclass=Nameless):
    pass

def broken_by(error):
    globals()["ERROR"] = error
    return ""

def late(made):
    made.text = "come back"
    return made

def deep():
    nest = []
    for _ in range(100_000):
        nest = [nest]
    return nest

import datetime

class Timeless(datetime.tzinfo):
    utcoffset = fall

async def shut(key: str):
    return Shut()

async def timeless(key: str):
    return datetime.datetime(2026, 1, 1, tzinfo=Timeless())

def set_odd(name):
    ODD.set(Odd(name))

from contextvars import ContextVar
ODD = ContextVar("odd")

async def bystander(payload: Ask, metadata: HandlerMetadata):
    TRACE.append(metadata.attempt)
    await gate("bystander")
    return HandlerResponse.respond(Told(str(metadata.attempt)))

async def echo(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told(payload.text))

async def touch(key: str):
    return key

async def break_down(key: str):
    raise ValueError(chr(0xd800))
"""
BODIES = {
    "an error with a lone surrogate in its text": "raise ValueError(chr(0xd800))",
    "an error that cannot say what it is": "raise Mute",
    "an endless error text": "raise ValueError('x' * 10_000_000)",
    "a receiver that is no text": "return HandlerResponse(Ask('x'), to=object())",
    "a receiver with a lone surrogate": "return HandlerResponse(Ask('x'), to=chr(0xd800))",
    "an ask of a receiver that is no text": "await metadata.ask(object(), Ask('x'))",
    "an ask of a receiver with a lone surrogate": "await metadata.ask(chr(0xd800), Ask('x'))",
    "an ask with a payload that is none": "await metadata.ask('echo', object())",
    "an ask for longer than there is time": "await metadata.ask('echo', Ask('x'), timeout=1e20)",
    "an ask for ever": "await metadata.ask('echo', Ask('x'), timeout=float('inf'))",
    "an ask for no time at all": "await metadata.ask('echo', Ask('x'), timeout=float('nan'))",
    "an effect whose key is no text": "await metadata.effect(object(), touch)",
    "an effect whose key has a lone surrogate": "await metadata.effect(chr(0xd800), touch)",
    "an effect that is no function": "await metadata.effect('x', None)",
    "an effect that raises a lone surrogate": "await metadata.effect('x', break_down)",
    "an effect of no kind": "await metadata.effect('x', touch, kind='odd')",
    "an effect whose kind is no text": "await metadata.effect('x', touch, kind=[])",
    "an answer that cannot say what it is": "return HandlerResponse(Shy(), to='echo')",
    "an ask of something that cannot say what it is": "await metadata.ask('echo', Shy())",
    "a preview that is no JSON": "await metadata.approve(object())",
    "a preview with a lone surrogate": "await metadata.approve(chr(0xd800))",
    "a list with other things in it": "return [HandlerResponse.respond(Told('x')), None]",
    "a generator": "return (HandlerResponse.respond(Told('x')) for _ in range(2))",
    "its own cancellation": "asyncio.current_task().cancel(); await asyncio.sleep(0)",
    "an interrupt": "raise KeyboardInterrupt",
    "a generator's end": "raise GeneratorExit",
    "a stop": "raise StopIteration",
    "a recursion": "return await bad(payload, metadata)",
    "a value in the context that cannot be compared": "set_odd('a')",
    "an ask of a text that raises in every method": "await metadata.ask(Odd('echo'), Ask('x'))",
    "an ask with a payload that cannot be read": "await metadata.ask('echo', Shut())",
    "an ask with a text that raises in every method": "await metadata.ask('echo', Ask(Odd('x')))",
    "an ask with a payload that exits when it is read": "await metadata.ask('echo', Shut(broken_by(SystemExit)))",
    "a payload whose text raises in every method": "return HandlerResponse(Ask(Odd('x')), to='echo')",
    "an effect whose key raises in every method": "await metadata.effect(Odd('x'), touch)",
    "an effect whose kind raises in every method": "await metadata.effect('x', touch, kind=Odd('pure'))",
    "an effect whose result cannot be read": "await metadata.effect('x', shut)",
    "an effect whose result has a broken time": "await metadata.effect('x', timeless)",
    "a preview that cannot be read": "await metadata.approve([Shut()])",
    "an entry that cannot be read": "await metadata.emit('status', {'id': 'x', 'text': Shut()})",
    "a preview that is too deep": "await metadata.approve(deep())",
    "an entry that raises in every method": "await metadata.emit(Odd('x'), {Odd('id'): Odd('x')})",
    "an entry whose value raises in every method": "await metadata.emit('status', {'id': Odd('x'), 'text': Odd('x')})",
    "a receiver that raises in every method": "return HandlerResponse(Ask('x'), to=Odd('echo'))",
}
"""What is not reported as a failed handling is reported as a refused message, or is harmless."""

FAILURES = {
    "a list that cannot be walked": ("return Fallen([HandlerResponse.respond(Told('x'))])", "handler_error"),
    "a list that exits when it is walked": ("broken_by(SystemExit); return Fallen([1])", "handler_error"),
    "a list that is cancelled": ("broken_by(asyncio.CancelledError); return Fallen([1])", "handler_error"),
    "a response that hides its receiver": ("return Masked(Ask('x'))", "handler_error"),
    "an answer that denies its class": ("return Nobody()", "handler_error"),
    "a class that cannot say its name": ("return Unnamed()", "handler_error"),
    "a response of a class without a name": ("return HandlerResponse(Unnamed(), to='echo')", "handler_error"),
    "a cancellation that it raises": ("raise asyncio.CancelledError", "handler_error"),
    "an exit": ("raise SystemExit(1)", "handler_error"),
    "a number": ("return 42", "wrong_return"),
    "a text": ("return Odd('x')", "wrong_return"),
    "a coroutine": ("answer = touch('x'); answer.close(); return answer", "wrong_return"),
    "an error that exits when it is told": ("raise Exiting", "handler_error"),
    "an error that denies its class": ("raise Nobody", "handler_error"),
    "an error whose text raises in every method": ("raise Talker", "handler_error"),
    "an error with huge arguments": ("raise ValueError(*range(1_000_000))", "handler_error"),
    "an error with deep arguments": ("raise ValueError(deep())", "handler_error"),
    "a group of ends": ("raise BaseExceptionGroup('x', [SystemExit(1), asyncio.CancelledError()])", "handler_error"),
}
REFUSALS = {
    "a payload that cannot be read": "Shut()",
    "a payload that exits when it is read": "Shut(broken_by(SystemExit))",
    "a payload that cannot be made again": "late(Unmade())",
    "a payload that exits when it is made again": "late(Unmade(broken_by(KeyboardInterrupt)))",
    "a list instead of a text": "Ask(Fallen([1]))",
    "a value that is too deep": "Ask(deep())",
}


@asynccontextmanager
async def contained(world: MakeWorld, bodies: Sequence[str], *, is_blocking: bool = False) -> AsyncIterator[Running]:
    """Handlers ``bad-0``, ``bad-1`` … of these bodies, and a bystander that runs meanwhile.

    What happens makes it begin again as little as the tenant's life.
    """
    form = ("" if is_blocking else "async ") + "def bad_{}(payload: Ask, metadata: HandlerMetadata):\n    {}\n\n"
    source = OTHERS + "".join(form.format(n, body.replace("bad(", f"bad_{n}(")) for n, body in enumerate(bodies))
    bad = {f"bad-{n}": {"peers": ["echo"], "blocking": is_blocking} for n in range(len(bodies))}
    made = world(source, {"bystander": {}, "echo": {}, **bad}, retry={"attempts": 1})
    async with made.running(on_disk=False) as o:
        bystander = await o.inject("bystander", {"text": "x"})
        yield o
        open_gate(o, "bystander")
        assert await answers(o, bystander.thread_id) == ["1"]
        assert len(await o.records(OrganismStarted)) == 1
        assert o.pump.mailboxes.running == 0
        assert await folded_live(o) == await folded_again(o.log)


async def test_whatever_a_handler_does_ends_its_own_message_and_nothing_else(world: MakeWorld) -> None:
    async with contained(world, list(BODIES.values())) as o:
        for number, what in enumerate(BODIES):
            bad = await o.inject(f"bad-{number}", {"text": "x"}, wait=True, seconds=10)
            assert bad.thread is not None
            assert bad.thread["status"] in {"error", "completed"}, what


@pytest.mark.parametrize("is_blocking", [False, True])
async def test_an_answer_or_an_error_that_misbehaves_is_the_dead_letter_of_its_message_alone(
    world: MakeWorld, *, is_blocking: bool
) -> None:
    async with contained(world, [body for body, _ in FAILURES.values()], is_blocking=is_blocking) as o:
        for number, (what, (_, code)) in enumerate(FAILURES.items()):
            bad = await o.inject(f"bad-{number}", {"text": "x"}, wait=True, seconds=10)
            (dead,) = await o.records(MessageDead, thread=bad.thread_id)
            assert (dead.event.code, dead.event.attempts) == (code, 1), what
        assert len(await o.records(MessageDead)) == len(FAILURES)


async def test_a_payload_that_misbehaves_is_a_refused_send(world: MakeWorld) -> None:
    bodies = [f"return HandlerResponse({payload}, to='echo')" for payload in REFUSALS.values()]
    async with contained(world, bodies) as o:
        for number, what in enumerate(REFUSALS):
            bad = await o.inject(f"bad-{number}", {"text": "x"}, wait=True, seconds=10)
            (refused,) = await o.records(MessageRefused, thread=bad.thread_id)
            assert refused.event.code == "validation", what
        assert await o.records(MessageDead) == []


async def test_an_answer_whose_payload_misbehaves_is_a_failure(world: MakeWorld) -> None:
    async with contained(world, [f"return HandlerResponse({payload})" for payload in REFUSALS.values()]) as o:
        for number, what in enumerate(REFUSALS):
            bad = await o.inject(f"bad-{number}", {"text": "x"}, wait=True, seconds=10)
            (dead,) = await o.records(MessageDead, thread=bad.thread_id)
            assert dead.event.code == "wrong_return", what
        assert await o.records(MessageRefused) == []

"""Behind the scenes of a world: its handlers' module, its gates, a clock to turn, its state folded again."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Callable
from typing import Any

import orjson

from organism.bootstrap import Parts
from organism.events.record import Record
from organism.events.vocabulary import ModelCalled, RunEvent, StepRecorded, ThreadCreated
from organism.log.log import EventLog
from organism.model.commands import (
    Command,
    Inject,
    PauseAgent,
    PauseOrganism,
    PauseThread,
    ResumeAgent,
    ResumeOrganism,
    ResumeThread,
)
from organism.model.completion import ChatMessage
from organism.pump.decide import inject
from organism.pump.decide.decision import Decision
from organism.pump.decide.spend import ModelCall
from organism.pump.recover import dump
from organism.pump.state import FoldedState
from organism.testing import Outcome, Running
from tests.flows.world import World

BEGIN_NS = 1_800_000_000_000_000_000
PLAY_S = 10.0
READERS = 5
"""So deep lies the clock below who reads it."""


def messages_of(call: ModelCall) -> list[ChatMessage]:
    """What a model is called with, as the handler gave it."""
    return [message.given for message in call.messages]


def play(o: Running) -> dict[str, Any]:
    """The names in the module of the handlers as they run now."""
    return o.organism.settings.listeners[0].handler.__globals__  # type: ignore[union-attr]  # each listener of a world has a handler


def open_gate(o: Running, *names: str) -> None:
    """Let the handlers that wait at these gates go on, and those that come to them pass."""
    for name in names:
        play(o)["GATES"].setdefault(name, asyncio.Event()).set()


async def at_gate(o: Running, name: str) -> None:
    """Wait until a handler has come to this gate."""
    await play(o)["CAME"].setdefault(name, asyncio.Event()).wait()


async def pass_gate(o: Running, name: str) -> None:
    """Open the gate once a handler has come to it."""
    await at_gate(o, name)
    open_gate(o, name)


async def answers(o: Running, thread: str) -> list[str]:
    """The texts that a thread has answered with, once it has ended."""
    assert await o.tenant.ended(thread, 20)
    return [reply["text"] for reply in await o.replies(thread)]


async def crash_at(made: World, gate: str) -> None:
    """A life that ends as by ``kill -9`` once a handler is at the gate."""
    async with made.running() as o:
        await at_gate(o, gate)
        await o.crash()


async def inject_and_crash_at(made: World, gate: str, to: str, text: str = "x") -> Outcome:
    """The same, after an injection."""
    async with made.running() as o:
        injected = await o.inject(to, {"text": text})
        await at_gate(o, gate)
        await o.crash()
    return injected


def pause_of(what: str, thread: str = "") -> tuple[Command, Command]:
    """How to pause and resume the thread, the organism or the agent of this name."""
    if what == "thread":
        return PauseThread(thread_id=thread), ResumeThread(thread_id=thread)
    if what == "organism":
        return PauseOrganism(), ResumeOrganism()
    return PauseAgent(agent=what), ResumeAgent(agent=what)


async def stopping(o: Running, grace_s: float) -> asyncio.Task[None]:
    """A stop that has begun."""
    task = asyncio.create_task(o.organism.stop(grace_s=grace_s))
    while not o.tenant.operator.stopping:
        await asyncio.wait([task], timeout=0.001)
    return task


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something is so that no event tells of."""
    async with asyncio.timeout(PLAY_S):
        while not holds():
            await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=0.002)


async def decided(o: Running) -> None:
    """Wait until something is decided that is not on disk; the disk must be held."""
    await until(lambda: o.pump.writer.pending > 0)


class TurnedTime:
    """The wall clock and the monotonic one of an organism: they stand until they are turned."""

    def __init__(self) -> None:
        self.wall_ns = self.monotonic_ns = BEGIN_NS
        self._looker: asyncio.Future[None] | None = None

    def parts(self, seed: int = 1) -> Parts:
        """What to start an organism with; each life needs a seed of its own."""
        return Parts(wall_ns=lambda: self.wall_ns, monotonic_ns=self._look, chance=random.Random(seed))

    def turn(self, seconds: float) -> None:
        """Time passes."""
        self.wall_ns += int(seconds * 1e9)
        self.monotonic_ns += int(seconds * 1e9)

    async def passes(self, o: Running, seconds: float) -> None:
        """Time passes, and the organism has done what is due then."""
        self.turn(seconds)
        await self.ticked(o)

    async def ticked(self, o: Running) -> None:
        """Wait until the organism has looked at what is due by now, and what it did about it is on disk."""
        self._looker = asyncio.get_running_loop().create_future()
        await asyncio.wait_for(self._looker, PLAY_S)
        await o.pump.settled()

    def _look(self) -> int:
        if self._looker is not None and not self._looker.done() and _is_called_by("_tick"):
            self._looker.set_result(None)
        return self.monotonic_ns


def _is_called_by(name: str) -> bool:
    """Whether the clock's reader was called by a function of this name."""
    names: list[str] = []
    frame = inspect.currentframe()
    while frame is not None and len(names) < READERS:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    return name in names


async def child_of(o: Running, parent: str, to: str, text: str = "") -> str:
    """A thread below ``parent`` with one message in it, as a later part of the product will make them."""
    state = o.pump.state
    command = Inject(to=to, json={"text": text})
    prepared = inject.prepare(state, command, None, o.pump.mailboxes.waiting)
    decision = Decision.on(state, None)
    thread_id = state.ids.thread()
    decision.open_thread(thread_id, ThreadCreated(parent))
    inject.add(decision, prepared, command)
    await o.pump.commit(decision)
    return thread_id


async def folded_again(log: EventLog) -> bytes:
    """The state that the log gives from its beginning, with no handler called (G15)."""
    folded = FoldedState()
    await log.fold(0, folded.apply)
    return _comparable(folded)


async def folded_live(o: Running) -> bytes:
    """The state that the running pump decides on."""
    await o.pump.settled()
    return _comparable(o.pump.state.folded)


def _comparable(folded: FoldedState) -> bytes:
    """What the log knows of the state: the due times that only the running process moves stand apart."""
    dumped = orjson.loads(dump(folded))
    for name in ("position", "last_at"):
        del dumped["state"][name]
    for message in dumped["messages"]:
        del message["message"]["next_at"]
    return orjson.dumps(dumped, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2)


def code_of(event: StepRecorded | ModelCalled) -> str:
    """The code of the error that it ended with; empty: it ended well."""
    return event.error.code if event.error is not None else ""


async def shown(o: Running, thread: str | None = None) -> list[Record[Any]]:
    """The entries of runs so far, of this thread (None: of all)."""
    return [record for record in await o.records(thread=thread) if isinstance(record.event, RunEvent)]


def pairs(records: list[Record[Any]], *names: str) -> list[tuple[Any, ...]]:
    """The type of each event and these of its fields; None for one that it has not."""
    return [(record.type, *(getattr(record.event, name, None) for name in names)) for record in records]

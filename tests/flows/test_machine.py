"""Random lives: injects, asks, pauses, kills, crashes and reloads in any order keep every law."""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from organism.bootstrap import Parts, start
from organism.errors import OrganismError
from organism.model import commands as c
from organism.pump.folded import dump
from organism.pump.recover import fold
from organism.testing import Running
from tests.flows import lawful
from tests.flows.world import World

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]
T = TypeVar("T")

SOURCE = """
GATE = asyncio.Event()

async def echo(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told(payload.text))

async def asker(payload: Ask, metadata: HandlerMetadata):
    try:
        told = await metadata.ask("echo", Ask(payload.text))
    except AskError as error:
        return HandlerResponse.respond(Told(error.code))
    await metadata.now()
    return HandlerResponse.respond(Told(told.text))

async def fan(payload: Ask, metadata: HandlerMetadata):
    return [HandlerResponse(Ask(str(n)), to="sink") for n in range(3)]

async def sink(payload: Ask, metadata: HandlerMetadata):
    await metadata.effect("sink", sink_effect)

async def sink_effect(key: str):
    return key

async def gated(payload: Ask, metadata: HandlerMetadata):
    await GATE.wait()
    return HandlerResponse.respond(Told("through"))

async def failing(payload: Ask, metadata: HandlerMetadata):
    raise RuntimeError(payload.text)
"""
AGENTS = ("echo", "asker", "fan", "sink", "gated", "failing")
LISTENERS: dict[str, dict[str, Any]] = {
    "echo": {},
    "asker": {"peers": ["echo"], "max_concurrent": 2},
    "fan": {"peers": ["sink"]},
    "sink": {"max_concurrent": 1},
    "gated": {"timeout_s": 600},
    "failing": {},
}
TURNS = 40


class Machine:
    """One organism with everything that can happen to it.

    What it was promised is kept in ``accepted`` and ``killed``.
    """

    def __init__(self, seed: int) -> None:
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp(prefix="machine-"))
        self.world = World(
            self.folder,
            SOURCE,
            LISTENERS,
            limits={"max_concurrent_handlers": 4},
            retry={"attempts": 2, "base_delay_s": 0},
        )
        self.parts = Parts(chance=random.Random(seed))
        self.accepted: dict[str, str] = {}
        self.killed: set[str] = set()
        self.modules: list[Any] = []
        self.run: Running
        self.play(self._start())

    def play(self, act: Coroutine[Any, Any, T]) -> T:
        """Do one thing, then let the loop turn a little."""
        result = self.loop.run_until_complete(act)
        self.loop.run_until_complete(_turn())
        return result

    async def _start(self) -> None:
        self.run = Running(await start(self.world.config, self.world.data, self.parts))
        self._see_modules()

    def inject(self, agent: str, thread: str | None = None) -> str | None:
        """A client injects; a refusal is no promise."""
        try:
            done = self.play(self.run.do(c.Inject(to=agent, json={"text": agent}, thread_id=thread)))
        except OrganismError:
            return None
        assert isinstance(done, c.Injected)
        self.accepted[done.message_id] = done.thread_id
        return done.thread_id

    def control(self, command: c.Command) -> None:
        """An operator acts; what cannot be done is refused."""
        try:
            self.play(self.run.do(command))
        except OrganismError:
            return
        if isinstance(command, c.KillThread):
            self.killed.add(command.thread_id)

    def reload(self) -> None:
        """The configuration is read anew."""
        self.play(self.run.organism.reload())
        self._see_modules()

    def crash(self) -> None:
        """The process dies and is started again."""
        self.play(self._crash())

    async def _crash(self) -> None:
        await self.run.crash()
        await self.run.organism.stop(is_crash=True)
        await self._start()

    def open_gate(self) -> None:
        """What was held at the gate goes through, on whatever version it began."""
        for module in self.modules:
            module.GATE.set()

    def _see_modules(self) -> None:
        self.modules.append(self.run.organism.settings.modules.loaded("actors.play"))

    def end(self) -> None:
        """Everything is resumed and runs to its end; then the laws are checked."""
        try:
            self.play(self._end())
        finally:
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    async def _end(self) -> None:
        self.open_gate()
        await self.run.do(c.ResumeOrganism())
        for agent in AGENTS:
            await self.run.do(c.ResumeAgent(agent=agent))
        for thread in tuple(self.run.pump.state.routing.threads):
            await self.run.do(c.ResumeThread(thread_id=thread))
        for thread in set(self.accepted.values()):
            assert await self.run.tenant.ended(thread, 20), await self.run.events(thread=thread)
        events = await self.run.events()
        lawful.check(events)
        sent = {event.data["message"] for event in events if event.type == "message_sent"}
        assert set(self.accepted) <= sent
        await self._check_threads()
        await self._check_fold()
        await self.run.organism.stop(grace_s=1)

    async def _check_threads(self) -> None:
        dead = {event.thread for event in await self.run.events("message_dead")}
        for thread in set(self.accepted.values()):
            status = (await self.run.thread(thread))["status"]
            expected = "killed" if thread in self.killed else "error" if thread in dead else "completed"
            assert status == expected, (thread, status, expected)

    async def _check_fold(self) -> None:
        """G15: the log from the beginning gives the state that the running pump has."""
        live = self.run.pump.state.routing
        folded = await fold(self.run.log)
        live.position, live.last_at = folded.position, folded.last_at
        assert dump(folded) == dump(live)


async def _turn() -> None:
    """Let the loop turn a little: each event that is set takes it around once more."""
    loop = asyncio.get_running_loop()
    for _ in range(TURNS):
        turned = asyncio.Event()
        loop.call_soon(turned.set)
        await turned.wait()


agents = st.sampled_from(AGENTS)


class Lives(RuleBasedStateMachine):
    """One life after another of one organism."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[str] = []
        self.machine: Machine | None = None

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        self.machine = Machine(seed)

    def _thread(self, pick: int) -> str | None:
        return self.threads[pick % len(self.threads)] if self.threads else None

    def _do(self, command: c.Command) -> None:
        assert self.machine is not None
        self.machine.control(command)

    @rule(agent=agents, pick=st.integers(-20, 20))
    def inject(self, agent: str, pick: int) -> None:
        assert self.machine is not None
        thread = self.machine.inject(agent, self._thread(pick) if pick > 0 else None)
        if thread is not None and thread not in self.threads:
            self.threads.append(thread)

    @rule(agent=agents)
    def pause_agent(self, agent: str) -> None:
        self._do(c.PauseAgent(agent=agent))

    @rule(agent=agents)
    def resume_agent(self, agent: str) -> None:
        self._do(c.ResumeAgent(agent=agent))

    @rule(pick=st.integers(0, 20), on=st.booleans())
    def pause_or_resume_thread(self, pick: int, *, on: bool) -> None:
        thread = self._thread(pick)
        if thread is not None:
            self._do(c.PauseThread(thread_id=thread) if on else c.ResumeThread(thread_id=thread))

    @rule(on=st.booleans())
    def pause_or_resume_the_organism(self, *, on: bool) -> None:
        self._do(c.PauseOrganism() if on else c.ResumeOrganism())

    @rule(pick=st.integers(0, 20))
    def kill(self, pick: int) -> None:
        thread = self._thread(pick)
        if thread is not None:
            self._do(c.KillThread(thread_id=thread))

    @rule()
    def crash(self) -> None:
        assert self.machine is not None
        self.machine.crash()

    @rule()
    def reload(self) -> None:
        assert self.machine is not None
        self.machine.reload()

    @rule()
    def open_gate(self) -> None:
        assert self.machine is not None
        self.machine.open_gate()

    def teardown(self) -> None:
        if self.machine is not None:
            self.machine.end()


TestLives = Lives.TestCase
TestLives.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)

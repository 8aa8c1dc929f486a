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
from organism.events.vocabulary import MessageDead, MessageSent, OnBusy, TurnEnded
from organism.model import commands as c
from organism.testing import Running
from tests.flows import lawful
from tests.flows.stage import folded_again, folded_live
from tests.flows.world import World

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]
T = TypeVar("T")

SOURCE = """
GATE = asyncio.Event()

async def echo(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told(payload.text))

async def asker(payload: Ask, metadata: HandlerMetadata):
    try:
        reply = await metadata.ask("echo", Ask(payload.text))
    except AskError as error:
        return HandlerResponse.respond(Told(error.code))
    await metadata.now()
    return HandlerResponse.respond(Told(reply.text))

async def fan(payload: Ask, metadata: HandlerMetadata):
    return [HandlerResponse(Ask(str(n)), to="sink") for n in range(3)]

async def sink(payload: Ask, metadata: HandlerMetadata):
    await metadata.effect("sink", sink_effect)

async def sink_effect(key: str):
    return key

async def gated(payload: Ask, metadata: HandlerMetadata):
    await GATE.wait()
    return HandlerResponse.respond(Told("through"))

async def steered(payload: Ask, metadata: HandlerMetadata):
    texts = [payload.text, *[each.text for each in await metadata.steered()]]
    await metadata.history()
    await GATE.wait()
    await metadata.now()
    await metadata.emit("message", {"text": "heard"})
    texts += [each.text for each in await metadata.steered()]
    return HandlerResponse.respond(Told(" ".join(texts)))

async def failing(payload: Ask, metadata: HandlerMetadata):
    raise RuntimeError(payload.text)
"""
LISTENERS: dict[str, dict[str, Any]] = {
    "echo": {},
    "asker": {"peers": ["echo"], "max_concurrent": 2},
    "fan": {"peers": ["sink"]},
    "sink": {"max_concurrent": 1},
    "gated": {"timeout_s": 600},
    "failing": {},
    "steered": {"timeout_s": 600},
}
TALKERS = ("asker", "failing", "steered")
TOP = {"limits": {"max_concurrent_handlers": 4}, "retry": {"attempts": 2, "base_delay_s": 0}}
TURNS = 40
agents = st.sampled_from(sorted(LISTENERS))
picks = st.integers(0, 20)


class Lives(RuleBasedStateMachine):
    """One life after another of one organism, on a real disk. ``accepted`` and ``killed`` are what it has promised."""

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        self.loop = asyncio.new_event_loop()
        self.world = World(Path(tempfile.mkdtemp(prefix="machine-")), SOURCE, LISTENERS, **TOP)
        self.parts = Parts(chance=random.Random(seed))
        self.accepted: dict[str, str] = {}
        self.killed: set[str] = set()
        self.sessions: list[tuple[str, str]] = []
        self.modules: list[Any] = []
        self.o: Running
        self.play(self.start())

    def play(self, act: Coroutine[Any, Any, T]) -> T:
        """Do one thing, then let the loop turn a little."""
        result = self.loop.run_until_complete(act)
        self.loop.run_until_complete(_turn())
        return result

    async def start(self) -> None:
        self.o = Running(await start(self.world.config, self.world.data, self.parts))
        self.see_modules()

    def see_modules(self) -> None:
        self.modules.append(self.o.organism.settings.modules.loaded("actors.play"))

    def thread(self, pick: int) -> str | None:
        threads = list(dict.fromkeys(self.accepted.values()))
        return threads[pick % len(threads)] if threads else None

    def do(self, command: c.Command) -> c.CommandAnswer | None:
        """What cannot be done is refused; a refusal is no promise."""
        try:
            return self.play(self.o.do(command))
        except OrganismError:
            return None

    @rule(agent=agents, pick=st.integers(-20, 20))
    def inject(self, agent: str, pick: int) -> None:
        thread = self.thread(pick) if pick > 0 else None
        done = self.do(c.Inject(to=agent, json={"text": agent}, thread_id=thread))
        if isinstance(done, c.Injected):
            self.accepted[done.message_id] = done.thread_id

    @rule(agent=st.sampled_from(TALKERS))
    def begin_a_session(self, agent: str) -> None:
        done = self.do(c.CreateSession(agent=agent, user="ann"))
        if isinstance(done, c.SessionBegun):
            self.sessions.append((done.session_id, agent))

    @rule(pick=picks, on_busy=st.sampled_from(["queue", "steer", "force", "reject"]))
    def send_a_turn(self, pick: int, on_busy: OnBusy) -> None:
        if self.sessions:
            session, agent = self.sessions[pick % len(self.sessions)]
            json = {"text": on_busy}
            done = self.do(c.SendTurn(session_id=session, user="ann", to=agent, json=json, on_busy=on_busy))
            if isinstance(done, c.Injected):
                self.accepted[done.message_id] = done.thread_id

    @rule(pick=picks)
    def delete_a_session(self, pick: int) -> None:
        if self.sessions:
            session, agent = self.sessions[pick % len(self.sessions)]
            self.do(c.DeleteSession(session_id=session, user="ann", agent=agent))

    @rule(agent=agents, on=st.booleans())
    def pause_or_resume_an_agent(self, agent: str, *, on: bool) -> None:
        self.do(c.PauseAgent(agent=agent) if on else c.ResumeAgent(agent=agent))

    @rule(pick=picks, on=st.booleans())
    def pause_or_resume_a_thread(self, pick: int, *, on: bool) -> None:
        thread = self.thread(pick)
        if thread is not None:
            self.do(c.PauseThread(thread_id=thread) if on else c.ResumeThread(thread_id=thread))

    @rule(on=st.booleans())
    def pause_or_resume_the_organism(self, *, on: bool) -> None:
        self.do(c.PauseOrganism() if on else c.ResumeOrganism())

    @rule(pick=picks)
    def kill(self, pick: int) -> None:
        thread = self.thread(pick)
        if thread is not None and self.do(c.KillThread(thread_id=thread)) is not None:
            self.killed.add(thread)

    @rule()
    def crash(self) -> None:
        async def crash() -> None:
            await self.o.crash()
            await self.o.organism.stop(is_crash=True)
            await self.start()

        self.play(crash())

    @rule()
    def reload(self) -> None:
        self.play(self.o.organism.reload())
        self.see_modules()

    @rule()
    def open_gate(self) -> None:
        """What was held at the gate goes through, on whatever version it began."""
        for module in self.modules:
            module.GATE.set()

    def teardown(self) -> None:
        """Everything is resumed and runs to its end; then the laws are checked."""
        self.open_gate()
        try:
            self.play(self.end())
        finally:
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()
            shutil.rmtree(self.world.folder, ignore_errors=True)

    async def end(self) -> None:
        o = self.o
        await o.do(c.ResumeOrganism())
        for agent in LISTENERS:
            await o.do(c.ResumeAgent(agent=agent))
        for thread in tuple(o.pump.state.folded.threads):
            await o.do(c.ResumeThread(thread_id=thread))
        for thread in set(self.accepted.values()):
            assert await o.tenant.ended(thread, 20), [record.type for record in await o.records(thread=thread)]
        lawful.check(await o.records())
        assert set(self.accepted) <= {record.event.message for record in await o.records(MessageSent)}
        dead = {record.thread for record in await o.records(MessageDead)}
        self.killed |= {record.event.turn for record in await o.records(TurnEnded) if record.event.outcome == "killed"}
        for thread in set(self.accepted.values()):
            status = (await o.thread(thread))["status"]
            assert status == ("killed" if thread in self.killed else "error" if thread in dead else "completed")
        assert await folded_live(o) == await folded_again(o.log)
        await o.organism.stop(grace_s=1)


async def _turn() -> None:
    loop = asyncio.get_running_loop()
    for _ in range(TURNS):
        turned = asyncio.Event()
        loop.call_soon(turned.set)
        await turned.wait()


TestLives = Lives.TestCase
TestLives.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)

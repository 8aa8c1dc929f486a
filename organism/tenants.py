"""A tenant: its log, its pump and its commands. Tenants share only configuration, code and the process's slots."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from random import Random
from typing import Any, Final

import structlog
from anyio import CapacityLimiter

from organism.agents.embeddings import TenantEmbeddings
from organism.config.reload import Changes
from organism.config.tenant import TenantConfig, readable
from organism.errors import Fenced, LogUnavailable, Paused, Stopping, ThreadKilled, Unavailable
from organism.events import vocabulary as events
from organism.events.record import Actor, Record
from organism.log.log import EventFilter, EventLog
from organism.model.commands import Command, CommandAnswer, Idempotency
from organism.model.ids import Ids
from organism.model.redact import Redactor
from organism.model.times import LogClock
from organism.pump import recover
from organism.pump.decide.decision import Decision
from organism.pump.decide.gates import PrincipalOf
from organism.pump.history import Histories
from organism.pump.operate import Acts, Operator, record_answer
from organism.pump.pump import Pump
from organism.pump.recover import Life
from organism.pump.rules import Rules
from organism.pump.run.feed import Feed
from organism.pump.run.mailboxes import FairShare
from organism.pump.run.model_call import Models
from organism.pump.run.steps import Services
from organism.pump.state import State
from organism.pump.writer import Writer
from organism.rag.library import By, Library
from organism.rag.store import LIBRARY
from organism.views.threads import ENDS
from organism.views.views import ViewStore

POLL_SECONDS: Final = 0.02
PAUSES: Final = (
    *(events.OrganismPaused, events.OrganismResumed, events.AgentPaused, events.AgentResumed),
    *(events.ThreadPaused, events.ThreadResumed),
)
"""After these ``Tenant.pause_of`` may say something else."""
_log = structlog.get_logger("organism")


class Tenant:
    """One tenant."""

    def __init__(  # noqa: PLR0913 - what a tenant is made of
        self,
        tenant_id: str,
        log: EventLog,
        views: ViewStore,
        clock: LogClock,
        models: Models,
        *,
        principal_of: PrincipalOf,
        defaults: Callable[[], Mapping[str, Any]],
        acts: Callable[[Pump, Histories], Acts],
        chance: Random,
        share: FairShare,
        threads: CapacityLimiter,
        redactor: Redactor,
    ) -> None:
        self.id = tenant_id
        self.log, self.views = log, views
        self.clock = clock
        self.chance = chance
        self._share, self._threads = share, threads
        self.ids = Ids(chance.randbytes, lambda: clock.now_us() // 1000)
        self.models = models
        self._principal_of = principal_of
        self._defaults, self._acts = defaults, acts
        self.feed = Feed()
        self.feed.redactor = redactor
        self.histories = Histories()
        self.recovering = False
        self._recovery: asyncio.Task[None] | None = None
        self._life: Life
        self._rules: Rules
        self.pump: Pump
        self.operator: Operator
        self.library: Library
        self.embeddings: TenantEmbeddings

    async def start(self, rules: Rules, life: Life) -> None:
        """Fold the log and begin a new life on it."""
        self._life, self._rules = life, rules
        await self._fold()
        await recover.begin_life(self.pump.writer, life)

    async def _fold(self) -> None:
        folded = await recover.fold(self.log)
        folded.config, left_out = readable(folded.config)
        if left_out:
            remedy = "write these keys again: PUT /v1/tenant/config"
            _log.warning("tenant_config_left_out", tenant=self.id, places=left_out, remedy=remedy)
        state = State(folded, self._rules, self.ids, self.clock.now_us, self._defaults)  # a reload may be new
        services = Services(self.models, self.feed, self.chance, self.histories, self._principal_of, self._threads)
        pump = self.pump = Pump(self.log, self.views, state, services, self.broken)
        self.operator = Operator(pump.writer, pump.mailboxes.waiting, pump.kill, self._acts(pump, self.histories))
        self.log.on_stalled = self.operator.give_up_waiting
        self._share.join(pump.mailboxes, lambda: pump.write(Decision.on(state, None)))

    @property
    def config(self) -> TenantConfig:
        """Its configuration as it is now."""
        return self.pump.state.config

    def writable(self) -> Writer | None:
        """The pump's writer; None while the state is being folded or the log takes no writes."""
        return self.pump.writer if self.log.available and not self.recovering else None

    async def do(self, command: Command) -> CommandAnswer:
        """Carry out a command. Raises an ``OrganismError``."""
        if self.recovering:  # what the discarded state shows as done may not be on disk
            self._refuse_if_stopping()
            raise LogUnavailable("The state is being folded again; nothing was done.")
        try:
            return await self.operator.do(command)
        except LogUnavailable:
            self._refuse_if_stopping()
            raise

    def _refuse_if_stopping(self) -> None:
        """Raise ``Stopping``: a log that is closed by a stop has no fault."""
        if self.operator.stopping:
            raise Stopping from None

    def receivers(self, name: str) -> tuple[str, ...]:
        """The receivers of a message to ``name``: its broadcast group, or itself."""
        rules = self.pump.state.rules
        listener = rules.listeners.get(name)
        if listener is None or not listener.broadcast:
            return (name,)
        return tuple(member.name for member in rules.receivers(listener))

    def pause_of(self, name: str, threads: Iterable[str] = ()) -> Paused | None:
        """Why a message to ``name`` would not be handled now, with what resumes it; None if it would.

        ``threads`` are those whose pause keeps it, too.
        """
        folded = self.pump.state.folded
        if folded.paused:
            return Paused(
                "The organism is paused. It goes on by `organism resume --all`, POST /api/v1/organism/resume."
            )
        for receiver in self.receivers(name):
            if receiver in folded.paused_agents:
                more = f"It goes on by `organism resume {receiver}`, POST /api/v1/agents/{receiver}/resume."
                return Paused(f"The agent {receiver} is paused. {more}")
        for thread_id in threads:
            if (thread := folded.threads.get(thread_id)) is not None and thread.paused:
                more = f"It goes on by `organism resume --thread {thread_id}`, POST /api/v1/threads/{thread_id}/resume."
                return Paused(f"Thread {thread_id}, for which this waits, is paused. {more}")
        return None

    async def note(self, *facts: events.Event, actor: Actor | None = None, once: Idempotency | None = None) -> None:
        """Write facts about the organism as a whole, and that the key was used. Raises an ``OrganismError``."""
        decision = Decision.on(self.pump.state, None, None, actor)
        for fact in facts:
            decision.add(fact)
        record_answer(decision, once, {}, 1)
        await self.operator.patiently(self.pump.commit(decision))

    async def settled(self) -> None:
        """Return once everything that was decided is on disk, or lost. Raises ``CommitUnknown`` if the log stalls."""
        await self.operator.patiently(self.pump.settled())

    async def answered(self, once: Idempotency) -> bool:
        """Whether what the key names was done. Raises ``IdempotencyKeyReused``."""
        return await self.operator.answered(once)

    @property
    def library_key(self) -> bytes:
        """See ``Recorder``, of which this is the tenant's."""
        return self.log.key_for(LIBRARY)

    async def facts(self, stream: str, after: int) -> list[Record[events.Event]]:
        """Facts of the library: those of a stream after a position."""
        return await self.log.read(after, wanted=EventFilter((stream,)))

    async def record(self, stream: str, fact: events.Event, by: By) -> None:
        """Write a fact of the library, and that the key was used. Raises an ``OrganismError``."""
        self._refuse_if_stopping()
        if self.writable() is None:
            raise LogUnavailable
        state = self.pump.state
        cause = state.folded.messages.get(by.cause)
        if by.cause and cause is None:
            raise ThreadKilled
        decision = Decision.on(state, None, cause)
        root = cause.root if cause is not None else None
        decision.actor = Actor(self.id, root.user, None, root.principal) if root is not None else by.actor
        decision.thread_id = stream
        decision.add(fact)
        record_answer(decision, by.once, {}, 1)
        await self.operator.patiently(self.pump.commit(decision))

    async def ended(self, thread_id: str, seconds: float) -> bool:
        """Wait until the thread ends or the seconds are over. Returns whether it ended.

        It did not, as far as is known, if the log closes before.
        """
        if thread_id not in self.pump.state.folded.threads:
            await self.pump.settled()
            return True
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                async for records in self.log.follow(self.log.head, EventFilter((thread_id,), ENDS)):
                    if records:
                        return True
        return False

    async def reload(
        self, rules: Rules, life: Life, changes: Changes, actor: Actor, once: Idempotency | None = None
    ) -> int:
        """Use new rules for whatever starts from now on, and answer ``once``. Returns the event's position."""
        self._life, self._rules = life, rules
        pump = self.pump
        pump.state.rules = rules
        pump.mailboxes.resize(rules.listeners)
        decision = Decision.on(pump.state, None, None, actor)
        names = asdict(changes)
        decision.add(events.OrganismReloaded(**names, listeners=life.listeners, config=life.config))
        record_answer(decision, once, names, 1)
        recover.forget_pauses(decision, changes.removed)
        return (await self.operator.patiently(pump.commit(decision))).records[0].position

    def broken(self, error: BaseException) -> None:
        """The state can no longer be trusted: stop everything that rests on it and fold the log again."""
        if self.recovering:
            return
        self.recovering = self.pump.writer.is_over = True
        self._drop_all()
        _log.error("state_folded_again", error=repr(error), exc_info=error)
        if self.operator.stopping:
            return
        is_ours = not isinstance(error, Unavailable | Fenced)
        self._recovery = asyncio.get_running_loop().create_task(self._recover(counts_as_death=is_ours))

    async def _recover(self, *, counts_as_death: bool) -> None:
        """Begin a new life once the log takes writes, and again if it fails meanwhile."""
        while self.recovering:
            while not self.log.available:  # noqa: ASYNC110 - the port does not announce it, and it is rare
                await asyncio.sleep(POLL_SECONDS)
            try:
                await self._begin_again(counts_as_death=counts_as_death)
                self.recovering = False
            except Unavailable:
                self.pump.writer.is_over = True
                self._drop_all()

    async def _begin_again(self, *, counts_as_death: bool) -> None:
        await self.pump.settled()
        operator = self.operator
        await self._fold()
        self.operator.stopping = operator.stopping
        await recover.begin_life(self.pump.writer, self._life, clean=not counts_as_death)

    def _drop_all(self) -> None:
        """Cancel the handlers; whatever they still do is ignored."""
        self._share.leave(self.pump.mailboxes)
        self.pump.drop_all()

    async def crash(self) -> None:
        """End this life as ``kill -9`` would: nothing more is written. For tests of restarts."""
        self._drop_all()
        await self.library.close()
        await self.log.close()

    async def stop(self, grace_s: float) -> None:
        """Accept nothing new, give running handlers their grace, cancel the rest, record the stop, close the log."""
        self.operator.stopping = True
        if self._recovery is not None:
            self._recovery.cancel()  # the next life folds the state
        self._share.leave(self.pump.mailboxes)
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                while self.pump.is_running():
                    await self.pump.wakeups.slot_freed.wait()
        self._drop_all()
        try:
            if (writer := self.writable()) is not None:
                decision = Decision.on(writer.state, None)
                decision.add(events.OrganismStopped())
                with suppress(Unavailable):
                    await writer.commit(decision)
                    await recover.leave_snapshot(self.log, writer.state)
        finally:
            await self.library.close()
            await self.log.close()


def refuse_unless_writable(tenants: Iterable[Tenant]) -> None:
    """Raise ``Stopping`` or ``LogUnavailable`` unless every tenant takes decisions now."""
    for tenant in tenants:
        if tenant.operator.stopping:
            raise Stopping
        if tenant.writable() is None:
            raise LogUnavailable("A log takes no writes now, or its state is being folded again; nothing has changed.")

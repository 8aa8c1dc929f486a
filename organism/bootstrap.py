"""The composition root: a configuration and a data directory become a running organism."""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version as package_version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import structlog
from anyio import CapacityLimiter

from organism.agents import BUNDLED_AGENTS, bundled_charter
from organism.agents.completions import chat_listener
from organism.agents.embeddings import Embeddings, TenantEmbeddings
from organism.agents.gateway import Gateways
from organism.agents.registry import import_sdks
from organism.agents.turn import prompted_turn_of, with_turn
from organism.audit import AUDIT, Audit, AuditLines
from organism.codec import Codec, PayloadLimits, PayloadSchema, UnsupportedPayload
from organism.config.code import CheckPayload
from organism.config.load import load
from organism.config.modules import Importer
from organism.config.reload import Changes, diff
from organism.config.settings import Limits, Listener, Settings
from organism.config.shown import live_secrets
from organism.config.tokens import TOKENS_FILE, TenantEntry, defaults_of, holder, read_tokens
from organism.errors import AlreadyResolved, ConfigInvalid, LogDamaged, NotFound, OrganismError, PreviewStale
from organism.events import vocabulary as events
from organism.events.record import Actor
from organism.log.sqlite import Options, SqliteLog
from organism.model.commands import HOST_PROGRAM, Idempotency, Reloaded
from organism.model.ids import DEFAULT_TENANT, RESTORED, SYSTEM_COMPACTION, TENANTS, folder_of, key_path_of
from organism.model.principal import Principal
from organism.model.redact import Redactor
from organism.model.times import LogClock
from organism.model.words import OrganismStatus
from organism.pump.recover import Life
from organism.pump.rules import OWN_PAYLOADS, Rules, payload_classes
from organism.pump.run.mailboxes import FairShare
from organism.pump.run.model_call import Models
from organism.rag import library
from organism.rag.index import Graphs, installed
from organism.rag.library import Library
from organism.rag.store import LIBRARY_FILE, Store
from organism.sessions.commands import Sessions
from organism.sessions.compaction import compaction_handler, compaction_listener
from organism.sessions.compaction import faults as faults_of_compaction
from organism.sqlite.driver import Pysqlite
from organism.tenants import Tenant, refuse_unless_writable
from organism.tools.mcp.pins import OfferedTool, Pins
from organism.tools.toolbox import TenantResources, Toolbox
from organism.tools.web import Net
from organism.views.foreign_tools import FOREIGN_TOOLS, PinnedTool
from organism.views.keyed import Answer
from organism.views.read_models import READ_MODELS
from organism.views.views import Query, ViewStore, all_rows
from organism.watchdog import BLOCKED_SECONDS, Watchdog

if TYPE_CHECKING:
    from organism.tools.mcp.servers import McpServers
    from organism.tracing import Tracing

VERSION: Final = package_version("organism")
SERVER_KEY: Final = "server.key"
PRIVATE_DIRECTORY: Final = 0o700
MCP_SECONDS: Final = 1.0
"""How long a start and a reload wait for the answers of MCP servers; those that come later are taken up then."""
LATE_SECONDS: Final = 2.0
"""How long a stop waits for those that follow the logs."""


def tracing_of(environment: Mapping[str, str], service: str) -> Tracing | None:
    """OpenTelemetry's spans, if the environment asks for them and the extra ``otel`` is installed; else None.

    Raises ``ConfigInvalid``.
    """
    if not any(name.startswith("OTEL_") for name in environment):
        return None
    try:
        from organism import tracing
    except ImportError:
        return None
    processor = tracing.processor_of(environment)
    return None if processor is None else tracing.Tracing(processor, service)


@dataclass(frozen=True, slots=True)
class Parts:
    """What a test may replace."""

    wall_ns: Callable[[], int] = time.time_ns
    monotonic_ns: Callable[[], int] = time.monotonic_ns
    chance: random.Random = field(default_factory=random.SystemRandom)
    key_path: Path | None = None
    driver: Pysqlite = field(default_factory=Pysqlite)
    redactor: Redactor = field(default_factory=Redactor)
    net: Net = field(default_factory=Net)
    embeddings: library.Embeddings | None = None
    tracing: Callable[[str], Tracing | None] = lambda _: None
    models: Callable[[str], Models] | None = None
    blocked_seconds: float = BLOCKED_SECONDS
    mcp_seconds: float = MCP_SECONDS


class Organism:
    """The process: its configuration and tenants. ``status`` is starting, running, paused or stopping."""

    def __init__(self, config_path: Path, parts: Parts) -> None:
        self.config_path = config_path
        self.parts = parts
        self.tokens_path = config_path.parent / TOKENS_FILE
        self.tenants: dict[str, Tenant] = {}
        self.closed = asyncio.Event()  # set once it has stopped
        self.settings: Settings
        self.entries: tuple[TenantEntry, ...]
        self._importer = Importer()
        self._share = FairShare()
        self._threads = CapacityLimiter(Limits().max_blocking_threads)
        self._tools_came = asyncio.Event()
        self._tools = Toolbox(VERSION, parts.net, self._make_mcp)
        self._gateways = Gateways(parts.redactor, parts.chance.random, os.environ)
        self.embeddings = Embeddings(parts.redactor, os.environ)
        self._stage: Literal["starting", "running", "stopping"] = "starting"
        self._generation = 0
        self._data: Path | None = None
        self._codec: Codec
        self._changing = asyncio.Lock()
        self._watchdog: Watchdog | None = None
        self._tracing: Tracing | None = None
        self._audit: Audit | None = None
        self._followers: list[asyncio.Task[None]] = []
        self._taking_tools: asyncio.Task[None] | None = None

    @property
    def codec(self) -> Codec:
        """The codec of the configuration in force, with the reply classes seen so far."""
        return self.tenants[DEFAULT_TENANT].pump.state.rules.codec

    @property
    def status(self) -> OrganismStatus:
        """What the organism does now."""
        if self._stage == "running" and self.tenants[DEFAULT_TENANT].pump.state.folded.paused:
            return "paused"
        return self._stage

    async def start(self, data: Path | None) -> None:
        """Load the configuration and open the tenants' logs below ``data`` (None: in memory)."""
        settings = await self._load()
        self.entries = read_tokens(self.tokens_path)
        self._codec = self._new_codec(settings)
        self.settings = with_turns(settings, self._codec)
        await self._gateways.registry.take(self._gateways.registry.prepared(settings.models))
        await self.embeddings.take(settings)
        await self._tools.keep(settings.tools)
        self._resize()
        self._data = data
        self._tracing = self.parts.tracing(self.settings.name)
        try:
            if data is not None:
                self._audit = Audit(data / AUDIT)
                await self._audit.open()
            await self.open_tenants((DEFAULT_TENANT,))
            await self._record_tools()
            await self.open_tenants(entry.id for entry in self.entries)
        except BaseException:
            await self.stop(0)
            raise
        self._watchdog = Watchdog(self.tenants[DEFAULT_TENANT].writable, self.parts.blocked_seconds)
        self._watchdog.start()
        self._stage = "running"
        self._taking_tools = asyncio.create_task(self.reload_at(self._tools_came, asks_again=False))

    def prepare_models(self) -> None:
        """Begin to import the SDKs of the models that the configuration names, in a thread."""
        of_models = {model.provider for model in self.settings.models.values()}
        of_embeddings = {section.get("provider", "") for section in self.settings.embeddings.values()}
        threading.Thread(target=import_sdks, args=(of_models | of_embeddings,), name="sdks", daemon=True).start()

    @property
    def awaited_servers(self) -> Sequence[str]:
        """The MCP servers that have not listed their tools yet."""
        return self._tools.awaited

    async def open_tenants(self, ids: Iterable[str]) -> None:
        """Open those that are not open yet. Raises ``LogHeld`` or ``LogDamaged``; the tenants before stay open."""
        async with self._changing:
            for tenant_id in ids:
                if tenant_id not in self.tenants and self._stage != "stopping":
                    self.tenants[tenant_id] = await self._opened(tenant_id)
                    await self._miss_when_gone(tenant_id)

    async def _miss_when_gone(self, tenant_id: str) -> None:
        """Record in the operator's log that the tenant has one."""
        operator = self.tenants[DEFAULT_TENANT]
        if self._data is not None and tenant_id != DEFAULT_TENANT and not self._has_log(tenant_id):
            await operator.note(events.TenantOpened(tenant_id))

    def _has_log(self, tenant_id: str) -> bool:
        """Whether the operator's log says so; it cannot say so of itself."""
        operator = self.tenants.get(DEFAULT_TENANT)
        return operator is not None and tenant_id in operator.pump.state.folded.tenants

    async def _opened(self, tenant_id: str) -> Tenant:
        clock = LogClock(self.parts.wall_ns, self.parts.monotonic_ns)
        log = await open_log(self._data, tenant_id, clock, self.parts, is_known=self._has_log(tenant_id))
        views = log.views
        clock.begin_at(log.last_at)
        log.conceal(self.parts.redactor)
        if tenant_id == DEFAULT_TENANT and await self._pin_tools(views):
            settings = await self._read()  # again, with other tools: without the text of those that are off
            self._codec = self._new_codec(settings)
            self.settings = with_turns(settings, self._codec)
        if self._tracing is not None:
            self._follow("tracing", self._tracing.follow(tenant_id, log, views, log.head))
        if self._audit is not None:
            lines = AuditLines(tenant_id, log, views, self.parts.redactor, lambda: defaults_of(self.entries, tenant_id))
            self._follow("audit", self._audit.follow(lines))
        make, chance, redactor = self.parts.models, self.parts.chance, self.parts.redactor

        def principal_of(name: str) -> Principal | None:
            return holder(self.entries, tenant_id, name, clock.now_us() / 1e6)

        models = make(tenant_id) if make is not None else self._gateways.of_tenant(clock.now_us, principal_of)
        tenant = Tenant(
            *(tenant_id, log, views, clock, models),
            principal_of=principal_of,
            defaults=lambda: defaults_of(self.entries, tenant_id),
            acts=lambda pump, histories: Sessions(pump, histories).acts,
            chance=chance,
            share=self._share,
            threads=self._threads,
            redactor=redactor,
        )
        tenant.embeddings = TenantEmbeddings(self.embeddings, tenant_id, tenant.do, clock.now_us, tenant.ids.message)
        folder = None if self._data is None else self._data / TENANTS / folder_of(tenant_id)
        tenant.library = Library(
            Store(None if folder is None else folder / LIBRARY_FILE, self.parts.driver),
            *(views, self.parts.embeddings or tenant.embeddings),
            graphs=Graphs(None if folder is None else folder / "graphs", installed()),
            recorder=tenant,
            head=lambda: log.head,
            now_us=clock.now_us,
            random_bytes=chance.randbytes,
            redactor=redactor,
        )
        try:
            await tenant.library.open()  # first: what it sweeps must not be what a resumed handling writes
            await tenant.start(self._rules(tenant), self._life())
        except BaseException:
            await tenant.library.close()  # an open connection would keep the process from ending
            raise
        warn_of_compaction_faults(tenant)
        tenant.library.start()
        return tenant

    def _follow(self, what: str, following: Coroutine[Any, Any, None]) -> None:
        """Follow a log in a task, until it closes."""
        follower = asyncio.ensure_future(following)
        follower.add_done_callback(partial(report_ended, what))
        self._followers.append(follower)

    async def _pin_tools(self, views: ViewStore) -> bool:
        """Take over what the log says of foreign tools. Gives whether any is off."""
        return self._tools.pins.take(await all_rows(views, FOREIGN_TOOLS.name, Query(), PinnedTool))

    async def _record_tools(self) -> None:
        """Record which foreign tools were seen for the first time, and which are no longer as they were accepted."""
        operator = self.tenants[DEFAULT_TENANT]
        if news := tuple(self._tools.pins.news(self.settings.tools.mcp)):
            await operator.note(*news)
            await self._pin_tools(operator.views)

    def offered_tool(self, name: str) -> OfferedTool | None:
        """A foreign tool as its server offers it now, by its listener; None if that is not known."""
        return next((tools[name] for tools in self._tools.pins.offered.values() if name in tools), None)

    async def accept_tool(self, name: str, digest: str, actor: Actor, once: Idempotency | None = None) -> None:
        """Accept a foreign tool as it is offered now, and use it.

        Raises ``NotFound``, ``AlreadyResolved`` if none of the name waits, ``PreviewStale`` if it is another one than
        that of the digest, and what ``reload`` raises: then it is accepted, and the next reload uses it.
        """
        operator = self.tenants[DEFAULT_TENANT]
        async with self._changing:
            if once is None or not await operator.answered(once):
                row = await operator.views.private_row(FOREIGN_TOOLS, name)
                if row is None:
                    raise NotFound(f"No MCP server offers a tool {name[:80]!r}. GET /api/v1/foreign-tools lists them.")
                if not row.offered:
                    raise AlreadyResolved(f"{name} is accepted as it is.")
                if row.offered != digest:
                    raise PreviewStale("The server has changed the tool again.", param="/digest")
                await operator.note(events.ForeignToolsAccepted(row.server, {name: digest}), actor=actor, once=once)
                await self._pin_tools(operator.views)
        await self.reload()

    def _make_mcp(self, pins: Pins) -> McpServers:
        """Connects to MCP servers. Raises ``ImportError`` without the extra ``mcp``."""
        from organism.tools.mcp.servers import McpServers

        folder, seconds = self.config_path.parent.resolve(), self.parts.mcp_seconds
        return McpServers(folder, os.environ, pins, seconds, on_answered=self._tools_came.set)

    async def _load(self, *, asks_again: bool = True) -> Settings:
        await self._tools.prepare(self.config_path, asks_again=asks_again)
        return await self._read()

    async def _read(self) -> Settings:
        try:
            check, imports, ship = payload_check(), self._importer, self._tools.ship
            settings = load(self.config_path, check_payload=check, imports=imports, ship=ship, bundled=BUNDLED_AGENTS)
        except ConfigInvalid:
            await self._tools.roll_back()
            raise
        self.parts.redactor.add(*live_secrets(settings, os.environ))
        return settings

    def _new_codec(self, settings: Settings) -> Codec:
        """The codec of a new generation. Raises ``ConfigInvalid``."""
        codec = Codec.of(payload_classes(settings), PayloadLimits(settings.limits.max_payload_bytes))
        names = (*events.EVENTS, *(listener.name for listener in settings.receivers))
        self.parts.redactor.spare("\n".join((*names, *(schema.xsd for schema in codec.schemas))))
        self._generation += 1
        return codec

    def _rules(self, tenant: Tenant) -> Rules:
        """The rules in force for a tenant; reply classes that its pump meets stay with the tenant."""
        resources = TenantResources(tenant.log, tenant.views, tenant.library, self.parts.redactor)
        bound = {**self._tools.bound(self.settings, resources), SYSTEM_COMPACTION: compaction_handler(tenant)}
        return Rules(self.settings, self._codec, self._generation, bound)

    def _resize(self) -> None:
        """Take over what the settings say may run at once in the process."""
        limits = self.settings.limits
        self._share.resize(limits.max_concurrent_handlers)
        self._threads.total_tokens = limits.max_blocking_threads

    def _life(self) -> Life:
        settings = self.settings
        return Life(settings.name, VERSION, settings.digest, tuple(map(declared, settings.listeners)))

    async def reload(
        self, actor: Actor = HOST_PROGRAM, once: Idempotency | None = None, *, asks_again: bool = True
    ) -> Reloaded:
        """Load organism.yaml and the handlers again, or return the answer recorded for the key ``once``.

        ``asks_again``: MCP servers list their tools again; else what they have listed is used.
        Raises ``ConfigInvalid``, ``Unavailable`` or ``IdempotencyKeyReused``; then nothing has changed.
        """
        refuse_unless_writable(self.tenants.values())
        act = partial(self._reload, actor, once, asks_again=asks_again)
        return await self.tenants[DEFAULT_TENANT].operator.once(once, act, _reloaded_before)

    async def _reload(self, actor: Actor, once: Idempotency | None, *, asks_again: bool) -> Reloaded:
        async with self._changing:
            settings = await self._load(asks_again=asks_again)
            try:
                refuse_unless_writable(self.tenants.values())
                codec, served = self._new_codec(settings), self._gateways.registry.prepared(settings.models)
            except OrganismError:
                self._importer.restore(self.settings.modules)
                await self._tools.roll_back()
                raise
            self._codec = codec
            await self._gateways.registry.take(served)
            await self.embeddings.take(settings)
            changes = diff(self.settings, settings)
            self.settings = with_turns(settings, self._codec)
            position = await self._reload_tenants(changes, actor, once)
            await self._tools.keep(settings.tools)
            await self._record_tools()
            return Reloaded(changes.added, changes.removed, changes.updated, position)

    async def reload_at(self, wanted: asyncio.Event, *, asks_again: bool = True) -> None:
        """Reload whenever it is set; the server's log says why that was refused. Runs until it is cancelled."""
        logger = structlog.get_logger("organism")
        while await wanted.wait():
            wanted.clear()
            try:
                await self.reload(asks_again=asks_again)
            except OrganismError as error:
                faults = [f"{fault.pointer}: {fault.message}" for fault in error.details]
                logger.warning("reload_refused", reason=error.message, faults=faults, next=error.remediation)
            except Exception:  # whatever it is: what runs goes on, and so does this
                logger.exception("reload_failed")

    async def _reload_tenants(self, changes: Changes, actor: Actor, once: Idempotency | None) -> int:
        """Every tenant takes the settings over, even if another's log fails. Returns the operator's position."""
        life = self._life()
        self._resize()
        by: dict[str, tuple[Actor, Idempotency | None]] = {DEFAULT_TENANT: (actor, once)}  # not for other tenants' logs
        reloads = [
            tenant.reload(
                self._rules(tenant),
                life,
                changes,
                *by.get(tenant.id, (HOST_PROGRAM, None)),
            )
            for tenant in self.tenants.values()
        ]
        results = await asyncio.gather(*reloads, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        for tenant in self.tenants.values():
            warn_of_compaction_faults(tenant)
        return next(result for result in results if isinstance(result, int))

    async def stop(self, grace_s: float = 10, *, is_crash: bool = False) -> None:
        """Stop gracefully: running handlers get their grace (G13). After a crash, only close what is open."""
        if self._stage == "stopping":
            return
        self._stage = "stopping"
        if self._watchdog is not None:
            self._watchdog.stop()
        if self._taking_tools is not None:
            self._taking_tools.cancel()
        try:
            if not is_crash:
                await self._stop_tenants(grace_s)
                await self._gateways.registry.close()
                await self.embeddings.close()
        finally:
            if self._audit is not None:
                await self._audit.close()
            await self._tools.close()
            self._importer.close()
            self.closed.set()

    async def _stop_tenants(self, grace_s: float) -> None:
        for tenant in self.tenants.values():
            tenant.operator.stopping = True  # at once, whatever is being reloaded or opened
        async with self._changing:  # one that is being opened is closed too
            await asyncio.gather(*(tenant.stop(grace_s) for tenant in self.tenants.values()))
            if self._followers:  # they end with their logs
                _, late = await asyncio.wait(self._followers, timeout=LATE_SECONDS)
                for follower in late:
                    follower.cancel()
        if self._tracing is not None:
            await asyncio.to_thread(self._tracing.close)


async def _reloaded_before(row: Answer) -> Reloaded:
    """The recorded answer of a reload."""
    return Reloaded(**row.body)


def warn_of_compaction_faults(tenant: Tenant) -> None:
    """Log why the tenant's sessions will not be compacted. They go on all the same."""
    for fault in faults_of_compaction(tenant.pump.state.rules, tenant.config):
        structlog.get_logger("organism").warning("compaction_cannot_work", tenant=tenant.id, reason=fault)


def report_ended(what: str, follower: asyncio.Task[None]) -> None:
    """Log an error that ended the tracing or the audit of a log."""
    if not follower.cancelled() and (error := follower.exception()) is not None:
        structlog.get_logger("organism").error(f"{what}_ended", error=repr(error), exc_info=error)


def with_turns(settings: Settings, codec: Codec) -> Settings:
    """The settings with a handler for each listener without one: the turn loop, or the prompt that it names.

    The organism's own agent, for callers that bring their own conversation, and its own listener for compactions are
    added.
    """
    charter = settings.charter.text if settings.charter.text is not None else bundled_charter()
    known: dict[str, Listener] = {listener.name: listener for listener in settings.receivers}

    def with_handler(listener: Listener) -> Listener:
        if listener.handler is not None or listener.is_shipped:
            return listener
        name, at, version = (listener.prompt_ref or "").partition("@")
        prompt = settings.prompts[name, version] if at else None
        if prompt:
            return replace(listener, handler=prompted_turn_of(listener, prompt, codec))
        return with_turn(listener, known, codec, charter, settings.context_window(listener.model))

    chat = chat_listener(settings.limits, known, codec, charter)
    own = chat, compaction_listener(settings.limits)
    return replace(
        settings, listeners=tuple(map(with_handler, settings.listeners)), unlisted=(*settings.unlisted, *own)
    )


def payload_check() -> CheckPayload:
    """A check for one load: the faults of a class as a payload, alone and together with those checked before."""
    known: dict[str, type] = {cls.__name__: cls for cls in OWN_PAYLOADS}

    def faults(cls: type) -> list[str]:
        try:
            schema = PayloadSchema.of(cls)
        except UnsupportedPayload as error:
            return [f"{fault.pointer}: {fault.message}" for fault in error.details] or [error.message]
        first = known.setdefault(schema.name, cls)
        if first is cls or PayloadSchema.of(first).xsd == schema.xsd:
            return []
        return [f"`{first.__module__}.{first.__qualname__}` has the same name and another schema; rename one of them"]

    return faults


def declared(listener: Listener) -> events.Declared:
    """A listener as ``organism_started`` and ``organism_reloaded`` hold it."""
    return events.Declared(
        name=listener.name,
        description=listener.description,
        is_agent=listener.is_agent,
        peers=listener.peers,
        payload_class=listener.payload_class_path,
        model=listener.model,
        version=listener.version,
        group=listener.group,
        tools=tuple(dict.fromkeys((*listener.tools, *listener.looks_up))),
    )


async def open_log(
    data: Path | None, tenant_id: str, clock: LogClock, parts: Parts, *, is_known: bool = False
) -> SqliteLog:
    """A tenant's log: below ``data/tenants/``, or in memory. Raises ``LogDamaged`` for one that ``is_known`` and gone.

    The operator's is known where a server has left its key, or other tenants have theirs.
    """
    if data is None:
        return await SqliteLog.in_memory(READ_MODELS, Options(random_bytes=parts.chance.randbytes))
    options = Options(
        key_path=key_path_of(parts.key_path, folder_of(tenant_id)),
        tenant=folder_of(tenant_id),
        random_bytes=parts.chance.randbytes,
        driver=parts.driver,
    )
    folder = data / TENANTS
    if not folder.exists() and (data / RESTORED).exists():  # an empty log would hide that all others are missing
        raise LogDamaged(
            f"A restore into {data} did not end: run `organism log restore FILE --data {data}` again. "
            "Its old logs, if there were any, lie beside it."
        )
    own = folder / folder_of(tenant_id)
    if tenant_id == DEFAULT_TENANT:
        is_known = (data / SERVER_KEY).exists() or any(path != own for path in folder.glob("*/"))
    if is_known and not own.exists():
        raise LogDamaged(
            f"{own}, the log of the tenant {tenant_id}, is gone: it was there before. Put it back, or restore a backup "
            "into another data directory. A new log begins under another tenant id, or in another data directory."
        )
    folder.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
    return await SqliteLog.open(own, clock, READ_MODELS, options)


async def start(config: Path, data: Path | None, parts: Parts | None = None) -> Organism:
    """Start it on ``data`` (None: in memory). Raises ``ConfigInvalid``, ``LogHeld``, ``LogDamaged``, ``OSError``."""
    organism = Organism(config, parts or Parts())
    await organism.start(data)
    return organism

"""Compaction: a session goes on as a successor that begins with a summary; the whole history can be had back.

``cut`` decides what stays, and the successor begins in one unit (``ReplaceSession``). Nothing is lost: the source keeps
its messages until it is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, NamedTuple

import orjson
import structlog
from msgspec import UNSET, UnsetType

from organism.agents import bundled_prompt
from organism.codec import repair_json
from organism.config.tenant import CompactStrategy, TenantConfig
from organism.errors import (
    InvalidPayload,
    InvalidRequest,
    OrganismError,
    SessionBusy,
    SessionCompactConflict,
    Upstream,
    UpstreamTimeout,
)
from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Actor, Content
from organism.log.log import EventFilter
from organism.model import words
from organism.model.commands import (
    HOST_PROGRAM,
    Inject,
    Injected,
    KeptMessage,
    KillThread,
    ReplaceSession,
    SessionBegun,
)
from organism.model.completion import WITHHELD
from organism.model.ids import CONSOLE, SYSTEM_CHAT, session_of, turn_thread
from organism.model.sessions import (
    CHARS_PER_TOKEN,
    MOST_FILLED,
    cut,
    estimate_tokens,
    summary_message,
    transcript,
)
from organism.pump.history import messages as read_messages
from organism.pump.history import said_before
from organism.pump.rules import Rules
from organism.tenants import Tenant
from organism.views.run import Message
from organism.views.sessions import SESSION_MESSAGES, SESSIONS, SessionRow, session_row

SUMMARIZER: Final = "summarizer"
"""The listener that makes summaries; without one the organism's own agent does."""
EXPECTED: Final = (
    "It takes `text`, `is_talk` and `model`, and answers with a `text`, as handlers/summarizer.py of Organism does."
)
MOST_PIECE_CHARS: Final = 100_000
"""Of what the organism's own agent summarises at once: of more, too much would be lost."""
REQUEST: Final = "Summarise this conversation:\n\n"
SUMMARY_SECONDS: Final = 300.0
"""How long the summary of a piece of a history may take."""
MOST_BYTES_A_CHARACTER: Final = 8
"""What a character of a text may take in an envelope."""
MOST_READ: Final = 100
"""Events read back from the end of a thread, among which that lies which is looked for."""

logger = structlog.get_logger("organism")


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Whose session it must be, and with which agent (None: any). The rest is that of what is done (``Inject``)."""

    user: str
    agent: str | None = None
    actor: Actor = HOST_PROGRAM
    caller_depth: int = 0
    caller_request: str | None = None


class InLine(Entity):
    """A session of a line; of one that was deleted nothing but its id is known."""

    id: words.SessionId
    deleted: bool
    created_at: words.Time | UnsetType = UNSET
    archived_at: words.Time | UnsetType | None = UNSET


class Lineage(Entity):
    """The sessions before this one and after it, nearest first, and the summaries with which they begin."""

    backward: list[InLine]
    forward: list[InLine]
    summaries: list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """A compaction. ``tokens``: about how much of its model's context the source had filled.

    ``threads`` are those in which the summary was made: what they used is a part of the compaction's cost.
    """

    source_session_id: str
    successor_session_id: str
    summary_id: str
    summary_text: str
    position: int
    tokens: int
    threads: tuple[str, ...]


class Policy(NamedTuple):
    """How a session is compacted: its own settings where it has some, else its tenant's."""

    session_id: str
    agent: str
    strategy: CompactStrategy
    keep_last_n: int
    is_masked: bool
    summary_model: str | None
    summary_seconds: float


def _policy(tenant: Tenant, row: SessionRow, summary_seconds: float) -> Policy:
    config, own = tenant.config, row.private.settings
    return Policy(
        row.public.id,
        row.public.agent,
        own.compact_strategy or config.compact_strategy,
        config.compact_keep_last_n if own.compact_keep_last_n is None else own.compact_keep_last_n,
        config.compact_observation_mask if own.compact_observation_mask is None else own.compact_observation_mask,
        config.compact_summary_model,
        summary_seconds,
    )


async def compact(
    tenant: Tenant, session_id: str, caller: Caller, summary_seconds: float = SUMMARY_SECONDS
) -> Compacted:
    """Compact the session now.

    Raises ``SessionBusy`` while a turn is open, ``SessionCompactConflict`` if the session is archived, must not be
    compacted, has nothing to summarise or changes meanwhile, and ``Upstream`` or ``UpstreamTimeout`` if no summary
    comes.
    """
    row = await _idle(tenant, session_id, caller)
    policy = _policy(tenant, row, summary_seconds)
    if policy.strategy == "off":
        raise SessionCompactConflict("The session is not compacted: its `compact_strategy` is off.")
    return await _compact(tenant, row, policy, caller, await _tokens(tenant, row))


async def compact_if_full(
    tenant: Tenant, session_id: str, caller: Caller, summary_seconds: float = SUMMARY_SECONDS
) -> Compacted | None:
    """Compact the session before a turn, if its strategy is ``auto`` and its model's context is nearly full.

    A failure is logged, and the turn goes on with the session as it is.
    """
    row = await session_row(tenant.views, session_id, caller.user, caller.agent)
    policy = _policy(tenant, row, summary_seconds)
    is_idle = row.public.archived_at is None and session_id not in tenant.pump.state.folded.sessions
    if not is_idle or policy.strategy != "auto" or row.public.message_count <= policy.keep_last_n:
        return None
    tokens, rules = await _tokens(tenant, row), tenant.pump.state.rules
    if tokens <= MOST_FILLED * rules.settings.context_window(_model_of(rules, row.public.agent)):
        return None
    try:
        return await _compact(tenant, row, policy, caller, tokens)
    except OrganismError as error:
        logger.warning("session_not_compacted", session_id=session_id, code=error.code, error=error.message)
        return None


async def uncompact(tenant: Tenant, session_id: str, caller: Caller) -> SessionBegun:
    """Begin a successor with the session's whole history: what was summarised, in the place of its summaries.

    Raises ``SessionBusy`` while a turn is open, and ``SessionCompactConflict`` if the session is archived or changes
    meanwhile, was never compacted, or goes back to a session that was deleted.
    """
    row = await _idle(tenant, session_id, caller)
    line = [row]
    while (parent := await _row(tenant, line[-1].public.parent_session_id)) is not None and parent.private.summary:
        line.append(parent)
    if len(line) == 1:
        raise SessionCompactConflict("The session has its whole history: no message before it was summarised.")
    messages = await _messages(tenant, line[-1])
    for later in reversed(line[:-1]):
        messages += [message for message in await _messages(tenant, later) if not _is_copy(later, message)]
    for each in line:
        now = await _row(tenant, each.public.id)
        if now is None or now.private.status == "deleted":  # its messages may have been read when they were erased
            raise SessionCompactConflict(f"Session {each.public.id}, which this one goes back to, was deleted.")
    return await _replace(tenant, row, caller, map(_copied, messages))


async def lineage(tenant: Tenant, session_id: str, user: str | None, agent: str | None = None) -> Lineage:
    """The line of the session, with its summaries, oldest first."""
    row = await session_row(tenant.views, session_id, user, agent)
    backward = await _line(tenant, row, attrgetter("public.parent_session_id"))
    forward = await _line(tenant, row, attrgetter("public.successor_session_id"))
    compacted = [each for each in (*reversed(backward), row, *forward) if each.private.summary]
    summaries = [await _summary_of(tenant, each) for each in compacted]
    return Lineage([_shown(each) for each in backward], [_shown(each) for each in forward], summaries)


# -- the session as it is


async def _idle(tenant: Tenant, session_id: str, caller: Caller) -> SessionRow:
    """The row of a session that can be replaced now. Raises ``SessionBusy`` or ``SessionCompactConflict``."""
    await tenant.pump.settled()
    row = await session_row(tenant.views, session_id, caller.user, caller.agent)
    if row.public.archived_at is not None:
        raise SessionCompactConflict(f"The session was archived: {row.public.successor_session_id} goes on with it.")
    if session_id in tenant.pump.state.folded.sessions:
        raise SessionBusy
    return row


async def _row(tenant: Tenant, session_id: str | None) -> SessionRow | None:
    return None if session_id is None else await tenant.views.private_row(SESSIONS, session_id)


async def _messages(tenant: Tenant, row: SessionRow) -> list[Message]:
    return await said_before(tenant.log, tenant.views, row.public.id, tenant.log.head + 1)


def _is_copy(row: SessionRow, message: Message) -> bool:
    """Whether the session of the row began with the message: it is of none of its turns."""
    return bool(session_of(message["thread_id"]) != row.public.id)


async def _tokens(tenant: Tenant, row: SessionRow) -> int:
    """What the session fills of its model's context: as the provider counted it last, else as its length suggests."""
    if row.private.number:
        wanted = EventFilter((turn_thread(row.public.id, row.private.number),), (events.ModelCalled,))
        for record in await tenant.log.read(wanted=wanted, limit=MOST_READ, reverse=True):
            event = record.event
            if isinstance(event, events.ModelCalled) and event.agent == row.public.agent and event.input_tokens:
                return event.input_tokens + event.output_tokens
    return estimate_tokens(await _messages(tenant, row))


def _model_of(rules: Rules, name: str) -> str | None:
    listener = rules.listeners.get(name)
    return listener.model if listener is not None else None


# -- its summary


async def _compact(tenant: Tenant, row: SessionRow, policy: Policy, caller: Caller, tokens: int) -> Compacted:
    messages = await _messages(tenant, row)
    end = cut(messages, policy.keep_last_n)
    if end == 0:
        raise SessionCompactConflict(
            f"There is nothing to summarise: of {len(messages)} messages the newest {policy.keep_last_n} stay "
            "(`compact_keep_last_n`), each tool call with its result."
        )
    summary = await _summary(tenant, transcript(messages[:end], masked=policy.is_masked), policy, caller)
    newest = messages[end:]
    first = await tenant.views.private_row(SESSION_MESSAGES, newest[0]["id"]) if newest else None
    begun = await _replace(
        tenant,
        row,
        caller,
        map(_copied, (summary_message(row.public.id, summary.text), *newest)),
        compacted_before=first.position if first is not None else tenant.log.head + 1,
        authors=summary.authors,
    )
    archived = await _row(tenant, row.public.id) or row
    return Compacted(
        source_session_id=row.public.id,
        successor_session_id=begun.session_id,
        summary_id=archived.private.summary or "",
        summary_text=summary.text,
        position=begun.position,
        tokens=tokens,
        threads=summary.threads,
    )


class Summary(NamedTuple):
    """A summary, whose text it may contain, and the threads in which it was made."""

    text: str
    authors: tuple[str, ...]
    threads: tuple[str, ...]


class Summarizer(NamedTuple):
    """Who makes summaries: the listener, how many characters it takes at once, and what it is sent of a text."""

    name: str
    most_chars: int
    payload: Callable[[str], Mapping[str, Any]]


def _summarizer(rules: Rules, policy: Policy) -> Summarizer:
    """The listener ``summarizer`` with its own model, else the organism's own agent; both by the agent's model.

    ``compact_summary_model`` goes before either model. Raises ``SessionCompactConflict`` if there is none.
    """
    own = rules.listeners.get(SUMMARIZER)
    model = policy.summary_model or (own.model if own is not None else None) or _model_of(rules, policy.agent)
    if own is not None:
        more, most = {} if model in {None, own.model} else {"model": model}, own.max_payload_bytes
        given = {"is_talk": policy.is_masked, **more}
        return Summarizer(own.name, most // MOST_BYTES_A_CHARACTER, lambda text: {"text": text, **given})
    if model is None:
        raise SessionCompactConflict(
            f"Nobody can summarise the session: {policy.agent} names no model. Name one as `compact_summary_model`, "
            f"or add a listener `{SUMMARIZER}`. {EXPECTED}"
        )
    prompt = bundled_prompt("summarize_talk" if policy.is_masked else "summarize")
    half = rules.settings.context_window(model) * CHARS_PER_TOKEN / 2  # the answer has room as well

    def payload(text: str) -> Mapping[str, Any]:
        messages = [{"role": "system", "content": prompt}, {"role": "user", "content": REQUEST + text}]
        return {"model": model, "request": orjson.dumps({"messages": messages}).decode(), "has_charter": False}

    return Summarizer(SYSTEM_CHAT, int(min(half, MOST_PIECE_CHARS)), payload)


async def _summary(tenant: Tenant, text: str, policy: Policy, caller: Caller) -> Summary:
    """Ask the summarizer, piece by piece where the text is longer than it takes; so are long summaries of pieces."""
    asked = _summarizer(tenant.pump.state.rules, policy)
    if asked.name in tenant.pump.state.folded.paused_agents:
        raise SessionCompactConflict(f"The listener `{asked.name}` is paused: resume it first.")
    made: list[Summary] = []
    while True:
        before, most = text, asked.most_chars
        pieces = [repair_json(text[begin : begin + most])[0] for begin in range(0, len(text), most)]
        parts = [await _piece(tenant, asked, piece, policy, caller) for piece in pieces]
        made += parts
        text = "\n\n".join(part.text for part in parts)
        if len(text) <= most or len(text) >= len(before):  # what does not get shorter will not
            authors = tuple(author for part in made for author in part.authors)
            return Summary(text, authors, tuple(thread for part in made for thread in part.threads))


async def _piece(tenant: Tenant, asked: Summarizer, text: str, policy: Policy, caller: Caller) -> Summary:
    command = Inject(
        to=asked.name,
        json=asked.payload(text),
        actor=caller.actor,
        caller_depth=caller.caller_depth,
        caller_request=caller.caller_request,
        of_session=policy.session_id,
    )
    try:
        sent = await tenant.do(command)
    except InvalidRequest as error:
        message = f"The listener `{asked.name}` cannot be asked ({error.message}). {EXPECTED}"
        raise SessionCompactConflict(message) from error
    assert isinstance(sent, Injected)  # noqa: S101 - an Inject is answered by nothing else; narrows the type
    seconds = policy.summary_seconds
    if not await tenant.ended(sent.thread_id, seconds):
        with suppress(OrganismError):
            await tenant.do(KillThread(thread_id=sent.thread_id, actor=caller.actor))
        raise UpstreamTimeout(f"The summarizer gave no summary within {seconds:g} s; thread {sent.thread_id}.")
    wanted = EventFilter((sent.thread_id,), (events.MessageSent, events.RunDone), content=True)
    cause = ""
    for record in await tenant.log.read(sent.position, wanted=wanted, limit=MOST_READ, reverse=True):
        event = record.event
        if isinstance(event, events.RunDone) and event.stop_reason in WITHHELD:  # a part would pass for the whole
            cause = f"its model withheld it ({event.stop_reason})."
            break
        if isinstance(event, events.MessageSent) and event.to == CONSOLE and (summary := _text_in(record.content)):
            return Summary(summary, event.authors, (sent.thread_id,))
    cause = cause or await _cause(tenant, sent.thread_id)
    raise Upstream(f"The summarizer gave no summary: {cause} Thread {sent.thread_id} shows all of it.")


async def _cause(tenant: Tenant, thread_id: str) -> str:
    """Why the thread gave no summary: what its model said. What the handler's code says is for the operator alone."""
    wanted = EventFilter((thread_id,), (events.StepRecorded, events.MessageDead))
    happened = [record.event for record in await tenant.log.read(wanted=wanted, limit=MOST_READ, reverse=True)]
    calls = [each for each in happened if isinstance(each, events.StepRecorded) and each.kind == "complete"]
    errors = [each.error.message for each in calls if each.error is not None]
    death = next((each for each in happened if isinstance(each, events.MessageDead)), None)
    if death is None:
        return errors[0] if errors else "its answer has no `text`."
    if death.code != "handler_error":
        return death.reason
    raised = f"its handler raised {death.reason.partition(':')[0]}."
    return next((message for message in errors if message in death.reason), raised)


def _text_in(content: Content | None) -> str:
    return "" if content is None or content.erased else str(orjson.loads(content.json).get("text", "")).strip()


def faults(rules: Rules, config: TenantConfig) -> Iterator[str]:
    """What keeps a tenant's sessions from being compacted, as far as the configuration shows it."""
    model, own = config.compact_summary_model, rules.listeners.get(SUMMARIZER)
    if model is not None and model not in rules.settings.models:
        yield f"`compact_summary_model` is {model!r}: there is no such model under `models` in organism.yaml."
    if own is not None:
        try:
            rules.codec.draft(own.payload_class.__name__, {"text": "", "is_talk": True})
        except InvalidPayload as error:
            yield f"The listener `{own.name}` cannot be asked for summaries ({error.message}). {EXPECTED}"


# -- its successor


def _copied(message: Mapping[str, Any]) -> KeptMessage:
    """The message as a successor begins with it: that of the same turn and time, in the same words."""
    copied = {name: value for name, value in message.items() if name not in {"id", "compacted_at"}}
    return KeptMessage(message["role"], orjson.dumps(copied))


async def _replace(
    tenant: Tenant, row: SessionRow, caller: Caller, messages: Iterable[KeptMessage], **compacted: Any
) -> SessionBegun:
    command = ReplaceSession(
        session_id=row.public.id,
        user=row.public.user_id,
        agent=caller.agent,
        messages=tuple(messages),
        if_position=row.private.position,
        actor=caller.actor,
        **compacted,
    )
    begun = await tenant.do(command)
    assert isinstance(begun, SessionBegun)  # noqa: S101 - as above
    return begun


# -- its line


async def _line(tenant: Tenant, row: SessionRow, next_id: Callable[[SessionRow], str | None]) -> list[SessionRow]:
    """The sessions that follow each other from this one on, without it."""
    found: list[SessionRow] = []
    while (next_row := await _row(tenant, next_id(row))) is not None:
        found.append(row := next_row)
    return found


def _shown(row: SessionRow) -> InLine:
    """A session in its line; of a deleted one no more than that."""
    session = row.public
    if row.private.status == "deleted":
        return InLine(session.id, deleted=True)
    return InLine(session.id, deleted=False, created_at=session.created_at, archived_at=session.archived_at)


async def _summary_of(tenant: Tenant, row: SessionRow) -> dict[str, Any]:
    """The summary of a compacted session, which its successor holds; without text once that is deleted."""
    stored = await tenant.views.private_row(SESSION_MESSAGES, row.private.summary or "")
    message = (await read_messages(tenant.log, [stored]))[0] if stored is not None else {"erased": True}
    is_erased = message.get("erased", False)
    return {
        "id": row.private.summary,
        "session_id": row.public.id,
        "successor_session_id": row.public.successor_session_id,
        "created_at": row.public.archived_at,
        "text": None if is_erased else message["content"],
    }

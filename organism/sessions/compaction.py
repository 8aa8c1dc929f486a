"""Compaction: a session goes on as a successor that begins with a summary.

It is a thread of the session, whose one handling asks the summarizer and begins the successor, each as a recorded step:
after a crash it goes on where it was, and no summary is paid for twice. Nothing is lost: the source keeps its messages
until it is deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Final

import orjson
import structlog

from organism.agents import bundled_prompt
from organism.codec import repair_json
from organism.config.settings import Handler, Limits, Listener
from organism.config.tenant import TenantConfig
from organism.errors import (
    InvalidPayload,
    NotFound,
    OrganismError,
    SessionBusy,
    SessionCompactConflict,
    Stopping,
    Upstream,
    UpstreamTimeout,
)
from organism.events import vocabulary as events
from organism.events.record import ORGANISM_STREAM, Actor, Record
from organism.log.log import EventFilter
from organism.model.commands import CompactSession, Idempotency, Injected, KillThread, ReplaceSession
from organism.model.handler import AskError, HandlerMetadata, HandlerResponse
from organism.model.ids import CONSOLE, SYSTEM_CHAT, SYSTEM_COMPACTION, session_of, turn_thread
from organism.model.sessions import CompactionFailure, CompactionRequest, CompactionResult, summary_message
from organism.model.thread import NO_ROOT
from organism.pump.history import said_before
from organism.pump.rules import Rules
from organism.sessions.commands import Caller, copied, idle
from organism.sessions.cut import CHARS_PER_TOKEN, cut, estimate_tokens, transcript
from organism.tenants import PAUSES, Tenant
from organism.views.keyed import Answer
from organism.views.run import Message
from organism.views.sessions import SESSION_MESSAGES, SESSIONS, SessionRow, session_row
from organism.views.threads import ENDS, THREADS

OF_TENANT: Final = ("compact_strategy", "compact_keep_last_n", "compact_observation_mask")
"""What a session that was not given it has of the tenant's configuration, at each read."""
MOST_FILLED: Final = 0.8
"""The part of a model's context that a session may fill before it is compacted by itself."""
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
HANDLING_SECONDS: Final = 24 * 3600.0
"""How long a compaction may take at most, with all its pieces."""
MOST_BYTES_A_CHARACTER: Final = 8
"""What a character of a text may take in an envelope."""
MOST_READ: Final = 100
"""Events read back from the end of a thread, among which that lies which is looked for."""

logger = structlog.get_logger("organism")


# -- asking for it


async def compact(
    tenant: Tenant,
    session_id: str,
    caller: Caller,
    once: Idempotency | None = None,
    summary_seconds: float = SUMMARY_SECONDS,
) -> CompactionResult:
    """Compact the session now, or join the compaction that is under way.

    The same key ``once`` stands for the same compaction, whatever comes of it. Raises ``SessionBusy`` while a turn is
    open, ``SessionCompactConflict`` if the session is archived, must not be compacted, has nothing to summarise or
    changes meanwhile, ``Paused`` if a pause keeps it, and ``Upstream`` or ``UpstreamTimeout`` if no summary comes.
    """

    async def act() -> CompactionResult:
        row = await idle(tenant, session_id, caller)
        if _config(tenant, row).compact_strategy == "off":
            raise SessionCompactConflict("The session is not compacted: its `compact_strategy` is off.")
        request = await _request(tenant, row, await _tokens(tenant, row), summary_seconds)
        return await _compact(tenant, request, caller, once)

    async def before(row: Answer) -> CompactionResult:
        return await _result(tenant, Injected(**row.body))

    return await tenant.operator.once(once, act, before)


async def compact_if_full(
    tenant: Tenant, session_id: str, caller: Caller, summary_seconds: float = SUMMARY_SECONDS
) -> CompactionResult | None:
    """Compact the session before a turn, if its strategy is ``auto`` and its model's context is nearly full.

    A failure, or a pause that keeps it, is logged, and the turn goes on with the session as it is.
    """
    row = await session_row(tenant.views, session_id, caller.user, caller.agent)
    is_idle = row.public.archived_at is None and session_id not in tenant.pump.state.folded.sessions
    config = _config(tenant, row)
    if not is_idle or config.compact_strategy != "auto" or row.public.message_count <= config.compact_keep_last_n:
        return None
    tokens, rules = await _tokens(tenant, row), tenant.pump.state.rules
    if tokens <= MOST_FILLED * rules.settings.context_window(_model_of(rules, row.public.agent)):
        return None
    try:
        return await _compact(tenant, await _request(tenant, row, tokens, summary_seconds), caller)
    except OrganismError as error:
        logger.warning("session_not_compacted", session_id=session_id, code=error.code, error=error.message)
        return None


def _config(tenant: Tenant, row: SessionRow) -> TenantConfig:
    """What is in force for the session: its own settings, else its tenant's."""
    own = {name: getattr(row.private.settings, name) for name in OF_TENANT}
    return replace(tenant.config, **{name: value for name, value in own.items() if value is not None})


async def _compact(
    tenant: Tenant, request: CompactionRequest, caller: Caller, once: Idempotency | None = None
) -> CompactionResult:
    command = CompactSession(
        session_id=request.session_id,
        user=caller.user,
        json=asdict(request),
        if_position=request.position,
        actor=caller.actor,
        idempotency=once,
        caller_depth=caller.caller_depth,
        caller_request=caller.caller_request,
    )
    sent = await tenant.do(command)
    assert isinstance(sent, Injected)  # noqa: S101 - a CompactSession is answered by nothing else; narrows the type
    return await _result(tenant, sent)


async def _request(tenant: Tenant, row: SessionRow, tokens: int, summary_seconds: float) -> CompactionRequest:
    """What the handling is to do, fixed once: it does the same after a restart with another configuration.

    Raises ``SessionCompactConflict`` if there is nothing to summarise, or nobody who can.
    """
    config, before = _config(tenant, row), tenant.log.head + 1
    messages = await _messages(tenant, row.public.id, before)
    if cut(messages, config.compact_keep_last_n) == 0:
        raise SessionCompactConflict(
            f"There is nothing to summarise: of {len(messages)} messages the newest {config.compact_keep_last_n} stay "
            "(`compact_keep_last_n`), each tool call with its result."
        )
    summarizer, model, most_chars = _summarizer(tenant, row.public.agent)
    return CompactionRequest(
        session_id=row.public.id,
        position=row.private.position,
        before=before,
        keep_last_n=config.compact_keep_last_n,
        is_masked=config.compact_observation_mask,
        summarizer=summarizer,
        model=model,
        most_chars=most_chars,
        summary_seconds=summary_seconds,
        tokens=tokens,
    )


def _summarizer(tenant: Tenant, agent: str) -> tuple[str, str | None, int]:
    """Who is asked for summaries, with which model (None: its own), and how many characters it takes at once.

    The listener ``summarizer`` with its own model, else the organism's own agent; both by the agent's model.
    ``compact_summary_model`` goes before either model. Raises ``SessionCompactConflict`` if there is none, and
    ``Paused``.
    """
    rules = tenant.pump.state.rules
    own = rules.listeners.get(SUMMARIZER)
    model = tenant.config.compact_summary_model or (own.model if own is not None else None) or _model_of(rules, agent)
    if own is not None:
        if fault := _summarizer_fault(rules, own):
            raise SessionCompactConflict(fault)
        found = own.name, None if model == own.model else model, own.max_payload_bytes // MOST_BYTES_A_CHARACTER
    elif model is None:
        raise SessionCompactConflict(
            f"Nobody can summarise the session: {agent} names no model. Name one as `compact_summary_model`, "
            f"or add a listener `{SUMMARIZER}`. {EXPECTED}"
        )
    else:
        half = rules.settings.context_window(model) * CHARS_PER_TOKEN / 2  # the answer has room as well
        found = SYSTEM_CHAT, model, int(min(half, MOST_PIECE_CHARS))
    if (pause := tenant.pause_of(found[0])) is not None:
        raise pause
    return found


async def _messages(tenant: Tenant, session_id: str, before: int) -> list[Message]:
    return await said_before(tenant.log, tenant.views, session_id, before)


async def _tokens(tenant: Tenant, row: SessionRow) -> int:
    """What the session fills of its model's context: as the provider counted it last, else as its length suggests."""
    if row.private.number:
        wanted = EventFilter((turn_thread(row.public.id, row.private.number),), (events.ModelCalled,))
        for record in await tenant.log.read(wanted=wanted, limit=MOST_READ, reverse=True):
            event = record.event
            if isinstance(event, events.ModelCalled) and event.agent == row.public.agent and event.input_tokens:
                return event.input_tokens + event.output_tokens
    return estimate_tokens(await _messages(tenant, row.public.id, tenant.log.head + 1))


def _model_of(rules: Rules, name: str) -> str | None:
    listener = rules.listeners.get(name)
    return listener.model if listener is not None else None


# -- what came of it


async def _result(tenant: Tenant, sent: Injected) -> CompactionResult:
    """What came of a compaction, once it is over. Raises its failure, and ``Paused`` while a pause keeps it."""
    thread_id = sent.thread_id
    _refuse_paused(tenant, thread_id)
    wanted = EventFilter((thread_id, ORGANISM_STREAM), (events.MessageSent, *ENDS, *PAUSES), content=True)
    async for records in tenant.log.follow(sent.position, wanted):
        for record in records:
            event, content = record.event, record.content
            if isinstance(event, ENDS):
                raise await _given_up(tenant, thread_id)
            if not isinstance(event, events.MessageSent) or event.to != CONSOLE or content is None:
                _refuse_paused(tenant, thread_id)
                continue
            if content.erased:
                raise NotFound(f"There is no session {session_of(thread_id)!r}.", param="/session_id")
            answer = orjson.loads(content.json)
            if event.type == CompactionResult.__name__:
                return CompactionResult(**answer)
            if answer["code"] == SessionCompactConflict.code:
                raise SessionCompactConflict(answer["message"])
            cause = answer["message"] or await _cause(tenant, thread_id)
            raise Upstream(f"The summarizer gave no summary: {cause} Thread {thread_id} shows all of it.")
    raise Stopping


def _refuse_paused(tenant: Tenant, thread_id: str) -> None:
    """Raise ``Paused`` if a pause keeps the compaction; it goes on by itself after the resume."""
    folded = tenant.pump.state.folded
    if (thread := folded.threads.get(thread_id)) is None:
        return
    waiting = [message.to for message in folded.open_in(thread) if not message.running]
    for name in (SYSTEM_COMPACTION, *waiting):
        if (pause := tenant.pause_of(name, [thread_id])) is not None:
            raise pause


async def _given_up(tenant: Tenant, thread_id: str) -> OrganismError:
    """Why a thread has ended without an answer: no summary came in time, it was killed, or its handling failed."""
    wanted = EventFilter((thread_id,), (events.StepRecorded,))
    for record in await tenant.log.read(wanted=wanted, limit=MOST_READ, reverse=True):
        event = record.event
        if isinstance(event, events.StepRecorded) and event.error is not None and event.error.code == "timeout":
            return UpstreamTimeout(f"The summarizer gave no summary in time; thread {thread_id} shows what it did.")
    row = await tenant.views.private_row(THREADS, thread_id)
    if row is not None and row.status == "killed":
        session = await tenant.views.private_row(SESSIONS, session_of(thread_id) or "")
        if session is None or session.public.status == "deleted":
            return SessionCompactConflict("The session was deleted while it was compacted.")
        return SessionCompactConflict(f"The compaction was killed; thread {thread_id} shows by whom.")
    cause = await _cause(tenant, thread_id)
    return Upstream(f"The session was not compacted: {cause} Thread {thread_id} shows all of it.")


async def _cause(tenant: Tenant, thread_id: str) -> str:
    """Why the thread gave no summary: what its model said. What the handler's code says is for the operator alone."""
    wanted = EventFilter((thread_id,), (events.StepRecorded, events.MessageDead), content=True)
    happened: list[Record[Any]] = await tenant.log.read(wanted=wanted, limit=MOST_READ, reverse=True)
    calls = [each for each in happened if isinstance(each.event, events.StepRecorded) and each.event.kind == "complete"]
    errors: list[str] = [each.event.error.message for each in calls if each.event.error is not None]
    deaths: list[events.MessageDead] = [each.event for each in happened if isinstance(each.event, events.MessageDead)]
    death = deaths[0] if deaths else None
    if death is None and errors:
        return errors[0]
    if death is not None and death.code != "handler_error":
        return death.reason
    if death is not None and (told := next((message for message in errors if message in death.reason), "")):
        return told
    content = calls[0].content if calls else None
    finish: str = "stop" if content is None or content.erased else orjson.loads(content.json).get("finish", "stop")
    if finish != "stop":
        return _no_whole_summary(finish)
    return "its answer has no `text`." if death is None else f"its handler raised {death.reason.partition(':')[0]}."


def _no_whole_summary(finish: str) -> str:
    return f"its model gave no whole summary ({finish})."


# -- the handling


def compaction_listener(limits: Limits) -> Listener:
    """The organism's own listener for compactions. Its code is bound to each tenant (``compaction_handler``)."""
    return Listener(
        name=SYSTEM_COMPACTION,
        description="Compacts a session",
        any_peer=True,
        is_internal=True,
        payload_class=CompactionRequest,
        payload_class_path=f"{CompactionRequest.__module__}.{CompactionRequest.__qualname__}",
        accepts=frozenset({CompactionRequest}),
        max_concurrent=limits.max_concurrent_handlers,
        timeout_s=HANDLING_SECONDS,
        max_payload_bytes=limits.max_payload_bytes,
        section={},
        version="",
        replies=(CompactionResult, CompactionFailure),
    )


def compaction_handler(tenant: Tenant) -> Handler:
    """The handler of ``SYSTEM_COMPACTION`` for a tenant."""
    return partial(_handle, tenant)


async def _handle(tenant: Tenant, request: CompactionRequest, metadata: HandlerMetadata) -> HandlerResponse:
    messages = await _messages(tenant, request.session_id, request.before)
    end = cut(messages, request.keep_last_n)
    try:
        text = await _summary(request, transcript(messages[:end], masked=request.is_masked), metadata)
    except AskError as error:
        if error.code == "timeout":  # what was asked may work on: it ends with the thread
            await metadata.effect("give-up", partial(_give_up, tenant, metadata.thread_id))
        return HandlerResponse.respond(CompactionFailure(Upstream.code, ""))
    answered = await tenant.log.read(wanted=EventFilter((metadata.thread_id,), (events.MessageSent, events.RunDone)))
    ends = [each.event for each in answered if isinstance(each.event, events.RunDone)]
    reasons = {end.stop_reason for end in ends if end.agent == request.summarizer} - {"stop"}
    if reasons:  # a part would pass for the whole
        return HandlerResponse.respond(CompactionFailure(Upstream.code, _no_whole_summary(min(reasons))))
    if not text:
        return HandlerResponse.respond(CompactionFailure(Upstream.code, ""))
    authors = {
        author for each in answered if isinstance(each.event, events.MessageSent) for author in each.event.authors
    }
    command = ReplaceSession(
        session_id=request.session_id,
        user=(await session_row(tenant.views, request.session_id, None)).public.user_id,
        messages=tuple(map(copied, (summary_message(request.session_id, text), *messages[end:]))),
        if_position=request.position,
        compacted_before=await _position_of(tenant, messages[end:]) or request.before,
        authors=tuple(authors),
        actor=_actor(tenant, metadata.thread_id),
    )
    replaced = await metadata.effect("successor", partial(_replace, tenant, command))
    if "code" in replaced:
        return HandlerResponse.respond(CompactionFailure(**replaced))
    return HandlerResponse.respond(
        CompactionResult(
            source_session_id=request.session_id,
            **replaced,
            summary_text=text,
            tokens=request.tokens,
            thread_id=metadata.thread_id,
        )
    )


async def _summary(request: CompactionRequest, text: str, metadata: HandlerMetadata) -> str:
    """Ask the summarizer, piece by piece where the text is longer than it takes; so are long summaries of pieces."""
    most = request.most_chars
    while True:
        before = text
        pieces = [repair_json(text[begin : begin + most])[0] for begin in range(0, len(text), most)]
        summaries: list[str] = []
        for piece in pieces:
            reply = await metadata.ask(request.summarizer, _asked(request, piece), request.summary_seconds)
            summaries.append(str(getattr(reply, "text", "")).strip())
        if not all(summaries):
            return ""
        text = "\n\n".join(summaries)
        if len(text) <= most or len(text) >= len(before):  # what does not get shorter will not
            return text


def _asked(request: CompactionRequest, text: str) -> dict[str, Any]:
    if request.summarizer != SYSTEM_CHAT:
        more = {} if request.model is None else {"model": request.model}
        return {"text": text, "is_talk": request.is_masked, **more}
    prompt = bundled_prompt("summarize_talk" if request.is_masked else "summarize")
    messages = [{"role": "system", "content": prompt}, {"role": "user", "content": REQUEST + text}]
    return {
        "model": request.model,
        "request": orjson.dumps({"messages": messages}).decode(),
        "has_charter": False,
    }


async def _give_up(tenant: Tenant, thread_id: str, _key: str) -> None:
    await tenant.do(KillThread(thread_id=thread_id, actor=_actor(tenant, thread_id)))


async def _replace(tenant: Tenant, command: ReplaceSession, _key: str) -> dict[str, str]:
    """The ids of successor and summary, or why there are none: also where an attempt died after it had made them."""
    try:
        row = await session_row(tenant.views, command.session_id, None)
        if not row.private.summary:
            await tenant.do(command)
            row = await session_row(tenant.views, command.session_id, None)
    except (NotFound, SessionBusy, SessionCompactConflict) as error:
        return {"code": SessionCompactConflict.code, "message": error.message}
    return {
        "successor_session_id": row.public.successor_session_id or "",
        "summary_id": row.private.summary or "",
    }


async def _position_of(tenant: Tenant, messages: Sequence[Message]) -> int | None:
    """Where the first of the messages stands; None if there are none."""
    place = await tenant.views.private_row(SESSION_MESSAGES, messages[0]["id"]) if messages else None
    return None if place is None else place.position


def _actor(tenant: Tenant, thread_id: str) -> Actor:
    """For whom the thread works."""
    thread = tenant.pump.state.folded.threads[thread_id]
    root = next(iter((thread.roots or {}).values()), NO_ROOT)
    return Actor(tenant.id, root.user, None, root.principal)


# -- whether it can work


def _summarizer_fault(rules: Rules, own: Listener) -> str:
    """Why the listener cannot be asked; empty if it can."""
    try:
        rules.codec.draft(own.payload_class.__name__, {"text": "", "is_talk": True})
    except InvalidPayload as error:
        return f"The listener `{own.name}` cannot be asked for summaries ({error.message}). {EXPECTED}"
    return ""


def faults(rules: Rules, config: TenantConfig) -> Iterator[str]:
    """What keeps a tenant's sessions from being compacted, as far as the configuration shows it."""
    model, own = config.compact_summary_model, rules.listeners.get(SUMMARIZER)
    if model is not None and model not in rules.settings.models:
        yield f"`compact_summary_model` is {model!r}: there is no such model under `models` in organism.yaml."
    if own is not None and (fault := _summarizer_fault(rules, own)):
        yield fault

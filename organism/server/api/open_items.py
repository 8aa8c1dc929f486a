"""What waits for a person: dead letters, approvals, and unsafe effects of which nobody knows whether they happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal, TypedDict

import msgspec
import orjson
from msgspec import Meta
from pydantic import ConfigDict, Field, Strict, with_config
from pydantic.config import JsonDict
from starlette.responses import Response

from organism.errors import (
    AlreadyResolved,
    ConfigInvalid,
    InvalidField,
    InvalidPayload,
    NotFound,
    PreviewStale,
    SessionBusy,
)
from organism.events.entity import Entity
from organism.model import words
from organism.model.commands import DiscardDeadLetter, ReplayDeadLetter, ResolveApproval, ResolveIndeterminate
from organism.server.approvals import shown_approvals
from organism.server.http.bodies import SOMETHING, Name, NoBody, Position, body, named_in, payload_at
from organism.server.http.call import IN_PATH, Call, JsonResponse, Route, Tag, tagged
from organism.server.http.contract import ACT, ACT_ON_THREAD, QUESTION_REFUSED, SENDING_REFUSED, Injected, gives
from organism.server.http.lists import (
    Filter,
    Listing,
    ListPage,
    envelope,
    equals,
    list_of,
    next_cursor,
    query_of,
    since,
)
from organism.server.http.problems import Fault, fields
from organism.server.http.rights import READ, Right
from organism.server.http.several import MOST, IdsBody, SeveralActed, act_on_each
from organism.views.approvals import Approval
from organism.views.dead_letters import DeadLetter, DeadLetterHead, Indeterminate
from organism.views.foreign_tools import PinnedTool
from organism.views.handlings import CodeLine
from organism.views.threads import Thread
from organism.views.views import Page, Query, Sums, Where, rows_of

GroupId = Annotated[
    str,
    Meta(description="Only the failures of this group, as `group=true` names it.", examples=["grp-01a2b3c4d5e6f708"]),
]
OF_THREAD_OR_AGENT: Final[dict[str, Filter]] = {
    "thread_id": equals("thread_id"),
    "agent": equals("agent"),
}
DEAD_LETTERS: Final = Listing(
    "dead_letters",
    "died_at",
    descending=True,
    filters={**OF_THREAD_OR_AGENT, "since": since("died_at"), "in_group": equals("alike")},
    has_text=True,
    has_payloads=True,
)
OF_SINGLE_ONES: Final = ("q", "payloads")
"""The parameters of dead letters that say nothing of their groups."""
NARROW_LETTERS: Final = {
    "group": Annotated[bool, Meta(description="Failures that are alike are one row: same agent, code and line.")],
    "in_group": GroupId,
}
APPROVALS: Final = Listing(
    "approvals",
    "position",
    filters={
        "status": equals("status"),
        **OF_THREAD_OR_AGENT,
        "since": since("asked_at"),
    },
)
INDETERMINATE: Final = Listing(
    "indeterminate", "position", descending=True, filters={**OF_THREAD_OR_AGENT, "since": since("found_at")}
)


FOREIGN_TOOLS: Final = Listing("foreign_tools", "name", filters={"status": equals("status")})


_RESULT_OF_DONE: Final[JsonDict] = {
    "not": {
        "properties": {"outcome": {"enum": ["redo", "fail"]}, "result": SOMETHING},
        "required": ["outcome", "result"],
    }
}
"""The rule of ``IndeterminateBody`` for readers of its schema. Of an ``anyOf`` generators of clients make classes."""


@body
class ReplayBody:
    """``POST /dead-letters/{id}/replay``: without ``payload`` it is sent again as it was."""

    payload: Any = None


@body
class GroupBody:
    """The failures of a group that died up to a position, the oldest first."""

    group: Annotated[Name, Field(examples=["grp-01a2b3c4d5e6f708"])]
    until: Position


@body
class ApprovalBody:
    """``POST /approvals/{id}/resolve``; with ``check`` nothing is decided."""

    decision: Literal["approve", "reject"]
    edits: Any = None
    comment: Annotated[str, Field(max_length=10_000)] = ""
    check: Annotated[bool, Strict()] = False


@body
class AcceptToolBody:
    """``POST /foreign-tools/{name}/accept``: ``digest`` is that of what was looked at, its ``offered``."""

    digest: Annotated[str, Field(pattern="^[0-9a-f]{64}$", examples=["9f" * 32])]


@with_config(ConfigDict(extra="forbid", json_schema_extra=_RESULT_OF_DONE))
@dataclass(frozen=True, slots=True, kw_only=True)
class IndeterminateBody:
    """``POST /indeterminate/{id}/resolve``: ``result`` belongs to ``done``."""

    outcome: Literal["done", "redo", "fail"]
    result: Any = None


class DeadLetterList(ListPage):
    """Open dead letters, newest first."""

    dead_letters: list[DeadLetter]


class FailureAt(Entity):
    """A failure of a group; ``position`` is where it died."""

    id: words.MessageId
    timestamp: words.Time
    position: words.Position


class FailureGroup(Entity, kw_only=True):
    """Failures that are alike: same agent, code and line; refused sends, and what never began: same reason."""

    group: Annotated[str, Meta(examples=["grp-01a2b3c4d5e6f708"])]
    agent: words.AgentName
    code: Annotated[str, Meta(examples=["handler_error"])]
    line: Annotated[CodeLine, Meta(description="The handler's own line that raised.")] | None
    reason: Annotated[words.Reason, Meta(description="That of the newest.")]
    count: Annotated[int, Meta(ge=1, description="How many are open; what failed with one is not counted.")]
    newest: FailureAt
    oldest: FailureAt


class FailureGroupList(ListPage):
    """Open failures in groups, the group with the newest first."""

    groups: list[FailureGroup]


class ApprovalList(ListPage):
    """Approvals, oldest first."""

    approvals: list[Approval]


class ApprovalCheck(TypedDict):
    """What a decision would be, which was not made."""

    digest: Annotated[words.Digest | None, Meta(description="To what it would be bound; null if the edits do not fit.")]
    details: Annotated[list[Fault], Meta(description="Why the edits do not fit, every fault.")]


class ForeignTool(PinnedTool, kw_only=True):
    """A tool of an MCP server: what was accepted of it, and what it is now."""

    description: Annotated[str | None, Meta(description="What its server says of it now; null if it is not known.")] = (
        None
    )
    parameters: Annotated[words.Object | None, Meta(description="And which arguments it says that it takes.")] = None


class ForeignToolList(ListPage):
    """The tools of MCP servers that were seen, by name."""

    foreign_tools: list[ForeignTool]


class IndeterminateList(ListPage):
    """Open questions, newest first."""

    indeterminate: list[Indeterminate]


async def dead_letters(call: Call) -> Response:
    """Every open dead letter, newest first; or with `group=true` the groups of those that are alike."""
    if call.query.get("group") == "true":
        return await _groups(call)
    return await list_of(call, DEAD_LETTERS)


async def _groups(call: Call) -> Response:
    """A page of groups, the one with the newest failure first; further pages are as of the first."""
    query, _ = await query_of(call, DEAD_LETTERS)
    for name in OF_SINGLE_ONES:
        if name in call.query:
            raise InvalidField(f"`{name}` is about single dead letters: leave out `group`.", param=f"query.{name}")
    views, at = call.tenant.views, call.tenant.log.head if query.at is None else query.at
    is_failure = Where("alike", "<>", "")  # not one that failed with another
    sums = await views.sums("dead_letters", Sums(("alike",), (*query.where, is_failure), at))
    ordered = sorted(sums, key=lambda each: (each[3], each[0]), reverse=True)
    after = query.after
    behind = [each for each in ordered if after is None or (each[3], each[0]) < after]
    shown = behind[query.offset : query.offset + query.limit]
    deaths = sorted({death for _, _, *ends in shown for death in ends})
    ends = Query((Where("death", "in", deaths),), "death", limit=len(deaths), at=at)
    letters = rows_of(await views.rows("dead_letters", ends), DeadLetterHead)
    by_death = dict(zip(deaths, letters, strict=True))
    groups = [_group(by_death, *each) for each in shown]
    last = (shown[-1][3], shown[-1][0]) if shown else None
    before = len(ordered) - len(behind) + query.offset
    page = Page(msgspec.json.encode(groups), len(shown), len(ordered), before, last)
    return JsonResponse(envelope("groups", page.rows, page, query, next_cursor(call, page, at)))


def _group(by_death: Mapping[int, DeadLetterHead], group: str, count: int, oldest: int, newest: int) -> FailureGroup:
    last = by_death[newest]
    return FailureGroup(
        group=group,
        agent=last.agent,
        code=last.code,
        line=last.traceback[0] if last.traceback else None,
        reason=last.reason,
        count=count,
        newest=FailureAt(last.id, last.timestamp, newest),
        oldest=FailureAt(by_death[oldest].id, by_death[oldest].timestamp, oldest),
    )


async def replay_several(call: Call) -> Response:
    """Send each again as it was, one after the other, each failure once."""
    return await _settle_several(call, ReplayDeadLetter, HTTPStatus.ACCEPTED)


async def discard_several(call: Call) -> Response:
    """Close each for good, one after the other."""
    return await _settle_several(call, DiscardDeadLetter, HTTPStatus.OK)


async def _settle_several(
    call: Call, command: type[ReplayDeadLetter | DiscardDeadLetter], status: HTTPStatus
) -> Response:
    """Of a group as many as one request acts on, the oldest first; ``left`` counts those that are open afterwards."""
    value = await call.json()
    is_group = isinstance(value, dict) and "group" in value
    wanted = await call.body_as(GroupBody if is_group else IdsBody)
    if isinstance(wanted, GroupBody):
        call.permit()  # it names no dead letter, so it needs the whole right
    views = call.tenant.views

    async def open_ones(limit: int) -> Page:
        assert isinstance(wanted, GroupBody)  # noqa: S101 - only then is it called; narrows the type
        where = (Where("alike", "=", wanted.group), Where("death", "<=", wanted.until))
        return await views.rows("dead_letters", Query(where, "death", limit=limit))

    async def choose(done: list[str]) -> list[str]:
        if isinstance(wanted, IdsBody):
            return wanted.ids
        more = MOST - len(done)
        found = rows_of(await open_ones(more), DeadLetterHead) if more > 0 else []
        return sorted([*done, *(letter.id for letter in found)])  # a repetition has the same order

    async def left() -> int:
        return (await open_ones(1)).total if isinstance(wanted, GroupBody) else 0

    return await act_on_each(call, choose, lambda each, fields: command(message_id=each, **fields), left, status=status)


async def replay(call: Call) -> Response:
    """Send it again as a new message, with another payload if one is given."""
    body = await call.body_as(ReplayBody)
    command = ReplayDeadLetter(message_id=call.path_params["id"], json=body.payload, **call.command_fields())
    return JsonResponse(await call.send(command), 202)


async def discard(call: Call) -> Response:
    """Close it for good; the answer is its thread as it then stands."""
    await call.body_as(NoBody)
    done = await call.do(DiscardDeadLetter(message_id=call.path_params["id"], **call.command_fields()))
    (discarded,) = await call.tenant.log.read(done.position - 1, done.position)
    return JsonResponse(await call.row("threads", discarded.thread or "", done.position))


async def approvals(call: Call) -> Response:
    """Every approval, oldest first."""
    return await list_of(call, replace(APPROVALS, reshape=_all_shown))


async def _all_shown(call: Call, rows: bytes) -> bytes:
    return msgspec.json.encode(shown_approvals(rows, call.process.organism.codec))


async def resolve(call: Call) -> Response:
    """Approve or reject; the second who does gets 409 ``already_resolved``. With `check` it says what that would be."""
    body = await call.body_as(ApprovalBody)
    command = ResolveApproval(
        approval=call.path_params["id"],
        decision=body.decision,
        edits=body.edits,
        comment=body.comment,
        **call.command_fields(),
    )
    if body.check:
        return JsonResponse(await _checked(call, command))
    with payload_at("/edits"):
        done = await call.do(command)
    row = await call.row("approvals", call.path_params["id"], done.position)
    (found,) = shown_approvals(b"[%b]" % row, call.process.organism.codec)
    return JsonResponse(found)


async def _checked(call: Call, command: ResolveApproval) -> ApprovalCheck:
    try:
        with named_in(IN_PATH), payload_at("/edits"):
            return {"digest": await call.tenant.operator.check_approval(command), "details": []}
    except InvalidPayload as error:
        single = [{"param": error.param, "message": error.message}]
        return {"digest": None, "details": fields(error).get("details", single)}


async def indeterminate(call: Call) -> Response:
    """Every open one, newest first."""
    return await list_of(call, INDETERMINATE)


async def resolve_indeterminate(call: Call) -> Response:
    """Say what became of it: ``done`` (with the result), ``redo`` or ``fail``; the answer is its thread."""
    body = await call.body_as(IndeterminateBody)
    if body.result is not None and body.outcome != "done":
        raise InvalidField(f"A result belongs to `done` alone; came with {body.outcome!r}.", param="/result")
    effect = call.path_params["id"]
    command = ResolveIndeterminate(id=effect, outcome=body.outcome, result=body.result, **call.command_fields())
    done = await call.do(command)
    message = orjson.loads(await call.row("messages", effect.partition(":")[0]))
    return JsonResponse(await call.row("threads", message["thread_id"], done.position))


async def foreign_tools(call: Call) -> Response:
    """The tools of MCP servers, each with what its server says of it now."""
    return await list_of(call, replace(FOREIGN_TOOLS, reshape=_all_offered))


async def _all_offered(call: Call, rows: bytes) -> bytes:
    shown = [_with_offer(call, tool) for tool in msgspec.json.decode(rows, type=list[ForeignTool])]
    return call.process.redactor.shown(msgspec.json.encode(shown))


def _with_offer(call: Call, tool: ForeignTool) -> ForeignTool:
    if (offer := call.process.organism.offered_tool(tool.name)) is not None:
        tool.description, tool.parameters = offer.description, dict(offer.parameters)
    return tool


async def accept_tool(call: Call) -> Response:
    """Accept a tool as its server offers it now; it is in use at once."""
    body = await call.body_as(AcceptToolBody)
    call.refuse_if_match()
    name = call.path_params["name"]
    await call.process.organism.accept_tool(name, body.digest, call.actor, call.idempotency())
    tool = msgspec.json.decode(await call.row("foreign_tools", name), type=ForeignTool)
    return JsonResponse(call.process.redactor.shown(msgspec.json.encode(_with_offer(call, tool))))


_list = partial(Route, right=READ, by_head=True)
_several = partial(Route, takes=IdsBody | GroupBody, headers=ACT, gives=gives(SeveralActed))
_settle = partial(Route, headers=ACT_ON_THREAD)
_settle_thread = partial(_settle, gives=gives(Thread), is_tagged=True, refuses=QUESTION_REFUSED)
SENDING_AGAIN: Final = (*SENDING_REFUSED, SessionBusy, AlreadyResolved)

ROUTES: Final = (
    *tagged(
        Tag("dead_letters", "Dead letters: what failed for good or was refused, until it is sent again or discarded."),
        _list(
            "GET /dead-letters",
            dead_letters,
            gives=gives(DeadLetterList | FailureGroupList),
            query=(*DEAD_LETTERS.takes, "group"),
            narrow=NARROW_LETTERS,
        ),
        _several(
            "POST /dead-letters/replay", replay_several, right=Right("inject", {"id": "dead_letter"}, in_body=True)
        ),
        _several(
            "POST /dead-letters/discard", discard_several, right=Right("control", {"id": "dead_letter"}, in_body=True)
        ),
        Route(
            "POST /dead-letters/{id}/replay",
            replay,
            right=Right("inject", {"id": "dead_letter"}),
            gives=gives(Injected, status=202),
            takes=ReplayBody,
            headers=ACT_ON_THREAD,
            refuses=SENDING_AGAIN,
        ),
        _settle_thread(
            "DELETE /dead-letters/{id}", discard, right=Right("control", {"id": "dead_letter"}), takes=NoBody
        ),
    ),
    *tagged(
        Tag("approvals", "Approvals: what waits for a human's word, and the word."),
        _list(
            "GET /approvals",
            approvals,
            gives=gives(ApprovalList),
            query=APPROVALS.takes,
            narrow={"status": words.ApprovalStatus},
        ),
        _settle(
            "POST /approvals/{id}/resolve",
            resolve,
            right=Right("control", {"id": "approval"}),
            gives=gives(Approval | ApprovalCheck),
            takes=ApprovalBody,
            refuses=(*QUESTION_REFUSED, InvalidPayload),
        ),
    ),
    *tagged(
        Tag(
            "indeterminate",
            "Indeterminate effects: unsafe ones of which nobody knows whether they happened, and an "
            "operator's word on them.",
        ),
        _list("GET /indeterminate", indeterminate, gives=gives(IndeterminateList), query=INDETERMINATE.takes),
        _settle_thread(
            "POST /indeterminate/{id}/resolve",
            resolve_indeterminate,
            right=Right("control", {"id": "indeterminate"}),
            takes=IndeterminateBody,
        ),
    ),
    *tagged(
        Tag(
            "foreign_tools",
            "Tools of MCP servers. One that its server has changed is off until the operator accepts it.",
        ),
        _list(
            "GET /foreign-tools",
            foreign_tools,
            right=Right("read", of_process=True),
            gives=gives(ForeignToolList),
            query=FOREIGN_TOOLS.takes,
            narrow={"status": Literal["accepted", "waiting"]},
        ),
        Route(
            "POST /foreign-tools/{name}/accept",
            accept_tool,
            right=Right("control", of_process=True),
            gives=gives(ForeignTool),
            takes=AcceptToolBody,
            headers=ACT,
            is_recorded=True,
            refuses=(NotFound, AlreadyResolved, PreviewStale, ConfigInvalid),
        ),
    ),
)

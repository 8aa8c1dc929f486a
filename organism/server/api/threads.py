"""Threads: list, one with its messages, and control."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final, Literal

import msgspec
import orjson
from msgspec import Meta
from starlette.responses import Response

from organism.errors import NotFound, SessionBusy
from organism.model import words
from organism.model.commands import DiscardDeadLetters, KillThread, PauseThread, ReplayDeadLetters, ResumeThread
from organism.server.http import lists, several
from organism.server.http.bodies import Faults, NoBody
from organism.server.http.call import USER, Call, JsonResponse, Route, Tag, tagged
from organism.server.http.contract import ACT, ACT_ON_THREAD, THREAD_REFUSED, gives
from organism.server.http.rights import READ, Right
from organism.server.json import splice
from organism.views.handlings import OpenHandling
from organism.views.organism import AGENTS, handlings_of
from organism.views.threads import Message, Thread
from organism.views.views import CHANGED, ERASED, Among, Amount, Elapsed, HasCounted, Query, Where

OfThread = KillThread | PauseThread | ResumeThread | ReplayDeadLetters | DiscardDeadLetters
THREADS: Final = lists.Listing(
    "threads",
    CHANGED,
    descending=True,
    orders={
        "activity": (CHANGED, True),
        "created": ("created_at", True),
        "duration": (Elapsed("created_at", ("ended_at", "last_activity")), True),
        "cost": (Amount("cost_usd"), True),
    },
    moves=True,
    filters={
        "status": lists.equals("status"),
        "agent": lambda name: Where("participants", "has", name),
        "session": lists.equals("session_id"),
        "since": lists.since_text("last_activity"),
        "until": lists.until_text("last_activity"),
        "waiting": HasCounted,
    },
    has_text=True,
)


HANDLINGS_SHOWN: Final = 20


class ThreadWithMessages(Thread, kw_only=True):
    """A thread with its first 500 messages, and what works on it."""

    messages: list[Message]
    next: Annotated[words.Cursor | None, Meta(description="The `cursor` for `/threads/{id}/messages` to go on with.")]
    handlings: Annotated[
        list[OpenHandling], Meta(description="Those under way, which a kill ends; the oldest first, at most twenty.")
    ]
    open_handlings: Annotated[words.Count, Meta(description="How many are under way.")]


class ThreadList(lists.ListPage):
    """Threads, by default those with the newest activity first."""

    threads: list[Thread]


async def threads(call: Call) -> Response:
    """Every thread, by default newest activity first.

    A request that names its user finds no threads of another user's session.
    """
    is_of_user = "session" in call.query and call.end_user is not None
    of_user = Among("session_id", "sessions", (Where("user_id", "=", call.end_user),))
    return await lists.list_of(call, THREADS, *(of_user,) * is_of_user)


async def thread(call: Call) -> Response:
    """A thread with what works on it and its first 500 messages.

    ``next`` is where ``/threads/{id}/messages`` goes on.
    """
    faults = Faults()
    given = call.parameters(faults)
    with faults:
        at = await lists.as_of(call)
    faults.raise_found()
    thread_id, views = call.path_params["id"], call.tenant.views
    position = call.tenant.log.head if at is None else at
    open_handlings = handlings_of(await views.live_rows(AGENTS, position), thread_id)
    row = await call.row("threads", thread_id, position)
    query = Query((Where("thread_id", "=", thread_id),), "position", limit=lists.MAX_LIMIT, at=position)
    page = await views.rows("messages", query)
    more = lists.next_cursor(call, page, at, call.path + "/messages")
    messages = await lists.rows_as_asked(call, page.rows, given, position)
    # Erasing moves no thread: under the old tag a client would keep what was erased.
    tag = {} if b'"payload":%b' % ERASED in page.rows else {"etag": f'"{orjson.loads(row)["position"]}"'}
    shown = {
        "messages": messages,
        "next": more,
        "handlings": msgspec.json.encode(open_handlings[:HANDLINGS_SHOWN]),
        "open_handlings": len(open_handlings),
    }
    return JsonResponse(splice(row, shown), headers=tag)


async def messages(call: Call) -> Response:
    """A thread's messages, oldest first."""
    thread_id = call.path_params["id"]
    return await lists.list_of(call, lists.MESSAGES, Where("thread_id", "=", thread_id), of="threads", key=thread_id)


async def kill(call: Call) -> Response:
    """End the thread's whole tree at once."""
    return await _control(call, KillThread)


async def pause(call: Call) -> Response:
    """Start nothing more in the thread."""
    return await _control(call, PauseThread)


async def resume(call: Call) -> Response:
    """Go on with the thread."""
    return await _control(call, ResumeThread)


async def replay(call: Call) -> Response:
    """Send its dead letters again, each failure once; what would be refused again stays."""
    return await _control(call, ReplayDeadLetters)


async def discard(call: Call) -> Response:
    """Close its dead letters for good."""
    return await _control(call, DiscardDeadLetters)


async def kill_several(call: Call) -> Response:
    """End each thread's whole tree, one thread after the other."""
    return await _control_several(call, KillThread)


async def pause_several(call: Call) -> Response:
    """Start nothing more in these threads."""
    return await _control_several(call, PauseThread)


async def resume_several(call: Call) -> Response:
    """Go on with these threads."""
    return await _control_several(call, ResumeThread)


async def _control_several(call: Call, command: type[OfThread]) -> Response:
    ids = (await call.body_as(several.IdsBody)).ids

    async def named(_done: list[str]) -> list[str]:
        return ids

    return await several.act_on_each(call, named, lambda each, fields: command(thread_id=each, **fields))


async def _control(call: Call, command: type[OfThread]) -> Response:
    await call.body_as(NoBody)
    done = await call.do(command(thread_id=call.path_params["id"], **call.command_fields()))
    return JsonResponse(await call.row("threads", call.path_params["id"], done.position))


NARROW: Final = {
    "status": words.ThreadStatus,
    "until": Annotated[words.Time, Meta(description="Only what was last active at this time or earlier.")],
    "order": Annotated[
        Literal["activity", "created", "duration", "cost"],
        Meta(
            description="Largest first: by its last activity, which is the default, when it began, how long it lasted "
            "(an open one: until its last activity), or what it cost."
        ),
    ],
}
READ_THREAD: Final = Right("read", {"id": "thread"})
_list = partial(Route, right=READ, by_head=True)
_control_route = partial(
    Route,
    right=Right("control", {"id": "thread"}),
    takes=NoBody,
    headers=ACT_ON_THREAD,
    gives=gives(Thread),
    is_tagged=True,
    refuses=THREAD_REFUSED,
)
_control_several_route = partial(
    Route,
    right=Right("control", {"id": "thread"}, in_body=True),
    takes=several.IdsBody,
    headers=ACT,
    gives=gives(several.SeveralActed),
)

ROUTES: Final = tagged(
    Tag("threads", __doc__),
    _list(
        "GET /threads/{id}/messages",
        messages,
        right=READ_THREAD,
        gives=gives(lists.MessageList),
        query=lists.MESSAGES.takes,
        narrow=lists.NARROW_MESSAGES,
        refuses=(NotFound,),
    ),
    Route(
        "GET /threads/{id}",
        thread,
        right=READ_THREAD,
        gives=gives(ThreadWithMessages),
        query=(*lists.IN_ROWS, lists.AT),
        is_tagged=True,
        refuses=(NotFound,),
    ),
    _list("GET /threads", threads, gives=gives(ThreadList), query=THREADS.takes, narrow=NARROW, headers=(USER,)),
    _control_several_route("POST /threads/kill", kill_several),
    _control_several_route("POST /threads/pause", pause_several),
    _control_several_route("POST /threads/resume", resume_several),
    _control_route("POST /threads/{id}/kill", kill),
    _control_route("POST /threads/{id}/pause", pause),
    _control_route("POST /threads/{id}/resume", resume),
    _control_route(
        "POST /threads/{id}/dead-letters/replay",
        replay,
        right=Right("inject", {"id": "thread"}),
        refuses=(*THREAD_REFUSED, SessionBusy),
    ),
    _control_route("POST /threads/{id}/dead-letters/discard", discard),
)

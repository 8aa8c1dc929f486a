"""Sessions of a world: begun, spoken to, looked at."""

from __future__ import annotations

from typing import Any

import orjson

from organism.events.vocabulary import OnBusy
from organism.model.commands import CreateSession, Injected, SendTurn, SessionBegun
from organism.pump.history import said_before
from organism.testing import Running
from organism.views.sessions import SESSIONS
from tests.flows.world import World


async def begun(o: Running, user: str = "ann", agent: str = "talk", **more: Any) -> str:
    answer = await o.do(CreateSession(agent=agent, user=user, **more))
    assert isinstance(answer, SessionBegun)
    return answer.session_id


async def say(  # noqa: PLR0913 - what a turn has
    o: Running,
    session: str,
    text: str,
    *,
    on_busy: OnBusy = "queue",
    user: str = "ann",
    agent: str = "talk",
    **more: Any,
) -> str:
    """Send a message to the session; gives its turn's thread."""
    turn = SendTurn(session_id=session, user=user, to=agent, json={"text": text}, on_busy=on_busy, **more)
    answer = await o.do(turn)
    assert isinstance(answer, Injected)
    return answer.thread_id


async def said(o: Running, session: str, text: str, **more: Any) -> dict[str, Any]:
    """The turn's thread at its end."""
    thread = await say(o, session, text, **more)
    assert await o.tenant.ended(thread, 20)
    return await o.thread(thread)


async def row_of(o: Running, session: str) -> dict[str, Any]:
    row = await o.views.row("sessions", session)
    assert row is not None
    found: dict[str, Any] = orjson.loads(row)
    return found


async def position_of(o: Running, session: str) -> int:
    """That of the session's own stream."""
    row = await o.views.private_row(SESSIONS, session)
    assert row is not None
    return row.private.position


async def history_of(o: Running, session: str) -> list[dict[str, Any]]:
    """All that was said in the session."""
    return await said_before(o.log, o.views, session, o.log.head + 1)


def holds(made: World, text: bytes) -> bool:
    """Whether any file of the organism's data has the text."""
    return any(text in path.read_bytes() for path in made.data.rglob("*") if path.is_file())

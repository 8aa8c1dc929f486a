"""Named points in the product where a test's process can die, chosen by ``ORGANISM_KILL_AT=point:nth``.

The product knows nothing of them: each point is a function of it, wrapped from outside before the server starts, and
the process kills itself just before or just after the nth call. ``test_kill_points`` proves that each point is reached.
"""

from __future__ import annotations

import asyncio
import functools
import os
import pkgutil
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

KILL_AT: Final = "ORGANISM_KILL_AT"


@dataclass(frozen=True, slots=True)
class Point:
    """``target`` is ``module:attribute`` of the function; ``is_after`` kills when it has returned."""

    target: str
    what: str
    is_after: bool = False


POINTS: Final[dict[str, Point]] = {
    # a command, from its arrival to its answer
    "arrived": Point("organism.tenants:Tenant.do", "a command arrived, nothing is decided"),
    "prepared": Point("organism.pump.decide.inject:prepare", "an injection is validated, not queued", is_after=True),
    "answered": Point("organism.tenants:Tenant.do", "it is on disk, its answer not sent", is_after=True),
    # a unit, from its decision to what it makes possible
    "append": Point("organism.log.sqlite:SqliteLog.append", "a unit is decided, not queued"),
    "appended": Point("organism.log.sqlite:SqliteLog.append", "it is queued", is_after=True),
    "commit": Point("organism.log.commits:Commits.write", "the disk's thread is about to write a commit"),
    "committed": Point("organism.log.commits:Commits.write", "it is on disk, only that thread knows", is_after=True),
    "delivery": Point("organism.pump.pump:Pump._act", "the loop knows, nothing was started or reported"),
    "delivered": Point("organism.pump.pump:Pump._act", "handlers were started, callers answered", is_after=True),
    # a handling and its steps
    "handling": Point("organism.pump.run.handler:Steps", "a handler is about to be called"),
    "handled": Point("organism.pump.pump:Pump._finished", "it has answered, nothing is decided"),
    "failed": Point("organism.pump.pump:Pump._failed", "it has raised, nothing is decided"),
    "asked": Point("organism.pump.run.handling:Handling.given", "an ask is decided, not on disk"),
    "effect": Point("organism.pump.run.steps:outcome_of", "an effect is recorded as begun, and not run"),
    "record": Point("organism.pump.run.handling:Handling.record", "it has run, that is not recorded"),
    "recorded": Point(
        "organism.pump.run.handling:Handling.record", "it is recorded, the handler has no result yet", is_after=True
    ),
    # what follows a commit
    "anchor": Point("organism.log.directory:LogDirectory.write_anchor", "the head is about to be anchored"),
    "anchored": Point("organism.log.directory:LogDirectory.write_anchor", "it was just anchored", is_after=True),
    "checkpoint": Point("organism.log.disk:checkpoint", "the WAL is about to be moved into the file"),
    "checked": Point("organism.log.disk:checkpoint", "it was moved", is_after=True),
    # a start
    "key": Point(
        "organism.log.directory:LogDirectory.create_key", "a new log has its key and nothing else", is_after=True
    ),
    "schema": Point("organism.log.disk:make_tables", "the file of a new log is made, and has no table"),
    "claim": Point("organism.log.disk:claim", "the log is found, and not verified"),
    "claimed": Point("organism.log.disk:claim", "it is verified and its epoch raised", is_after=True),
    "fold": Point("organism.pump.recover:fold", "the log is about to be folded"),
    "folded": Point("organism.pump.recover:fold", "it is folded, the new life not recorded", is_after=True),
    "requeue": Point("organism.pump.recover:_requeue", "an open message is about to wait in its line again"),
    "life": Point("organism.pump.recover:begin_life", "the new life is on disk, nobody can ask yet", is_after=True),
    # a stop
    "stopped": Point("organism.pump.recover:leave_snapshot", "the stop is on disk, its snapshot is not"),
    "closing": Point("organism.log.sqlite:SqliteLog.close", "the log is about to be closed"),
}


def install(wanted: str, more: Mapping[str, Point] | None = None) -> None:
    """Make the point of ``point:nth`` deadly in this process; empty makes none. ``LookupError`` for an unknown one."""
    if not wanted:
        return
    name, _, nth = wanted.partition(":")
    point = {**POINTS, **(more or {})}[name]
    module, _, path = point.target.partition(":")
    owner_path, _, attribute = f"{module}:{path}".rpartition("." if "." in path else ":")
    owner = pkgutil.resolve_name(owner_path)
    calls = count(1)
    wrapped = _deadly(getattr(owner, attribute), point, lambda: next(calls) == int(nth or 1))
    setattr(owner, attribute, wrapped)


def _deadly(function: Callable[..., Any], point: Point, is_it: Callable[[], bool]) -> Callable[..., Any]:
    """The function, with death before it or after it."""

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        _die_if(not point.is_after and is_it())
        result = function(*arguments, **named)
        _die_if(point.is_after and is_it())
        return result

    @functools.wraps(function)
    async def call_and_wait(*arguments: Any, **named: Any) -> Any:
        _die_if(not point.is_after and is_it())
        result = await function(*arguments, **named)
        _die_if(point.is_after and is_it())
        return result

    return call_and_wait if asyncio.iscoroutinefunction(function) else call


def _die_if(it_is_time: bool) -> None:  # noqa: FBT001 - the condition is all that it is about
    if it_is_time:
        os.kill(os.getpid(), signal.SIGKILL)

"""A driver whose commits fail on demand, before or after the disk has them, and whose disk can stay broken."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pysqlite3 import dbapi2

from organism.sqlite.driver import Connection, Parameters, Pysqlite


@dataclass(slots=True)
class Plan:
    """What goes wrong. ``commits`` counts them; ``opens`` how often a connection was made.

    What follows a failed commit waits for ``renewal``, if there is one. ``moves`` counts how often the WAL was moved
    into the database; another process hinders the first ``busy_moves``. ``page_threads`` gets the thread of each page.
    """

    fail_commits: dict[int, str] = field(default_factory=dict)
    is_written_first: bool = False
    is_broken: str = ""
    is_unreadable: str = ""
    fail_checkpoint: str = ""
    commits: int = 0
    opens: int = 0
    renewal: threading.Event | None = None
    moves: int = 0
    busy_moves: int = 0
    page_threads: list[str] = field(default_factory=list)


def failure(code: str) -> Exception:
    """The error that the driver raises for a SQLite code."""
    error: Exception = dbapi2.OperationalError(code.lower().replace("_", " "))
    error.sqlite_errorname = code  # type: ignore[attr-defined] # the driver sets it
    return error


class FaultyConnection:
    """A connection that follows the plan."""

    def __init__(self, connection: Connection, plan: Plan) -> None:
        self._connection = connection
        self._plan = plan

    def execute(self, sql: str, parameters: Parameters = (), /) -> Any:
        plan = self._plan
        moves = sql.startswith("PRAGMA main.wal_checkpoint(TRUNCATE)")
        if "json_group_array" in sql:
            plan.page_threads.append(threading.current_thread().name)
        writes = moves or sql.startswith(("INSERT INTO commits", "UPDATE meta"))
        if plan.renewal is not None and moves:
            plan.renewal.wait()
        if plan.fail_checkpoint and sql.startswith("PRAGMA main.wal_checkpoint(PASSIVE)"):
            code, plan.fail_checkpoint = plan.fail_checkpoint, ""
            raise failure(code)
        if plan.is_broken and writes:
            raise failure(plan.is_broken)
        if plan.is_unreadable and sql.lstrip().startswith(("SELECT", "WITH")):
            raise failure(plan.is_unreadable)
        if moves and plan.busy_moves:
            plan.busy_moves -= 1
            return self._connection.execute("SELECT 1, 0, 0")
        plan.moves += moves
        if not sql.startswith("INSERT INTO commits"):
            return self._connection.execute(sql, parameters)
        plan.commits += 1
        failing = plan.fail_commits.get(plan.commits)
        if failing is None or plan.is_written_first:
            self._connection.execute(sql, parameters)
        if failing is not None:
            raise failure(failing)
        return None

    def set_progress_handler(self, handler: Callable[[], bool] | None, steps: int, /) -> None:
        self._connection.set_progress_handler(handler, steps)

    def close(self) -> None:
        self._connection.close()


class FaultyDriver(Pysqlite):
    """The shipped driver, but for what the plan says."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def connect(self, path: str, *, read_only: bool = False) -> Connection:
        self.plan.opens += 1
        return FaultyConnection(super().connect(path, read_only=read_only), self.plan)

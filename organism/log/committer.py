"""The committer: a process beside this one that commits while there is much to commit.

A thread that commits wants this interpreter's lock before and after each statement, and a busy loop lets it wait for
a turn of its own each time. A process has a lock of its own. Its protocol stands in ``committing.py``.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from asyncio.subprocess import Process
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import orjson

from organism.log.commits import Commit
from organism.log.committing import DONE, FAILED, MOST_BYTES, Statement, wish_of
from organism.log.hired import Hired

ANSWER_BYTES: Final = 1 << 12
LEAVE_SECONDS: Final = 60.0
"""So long after it was last needed it leaves."""
NOBODY: Final = -1

Done = Callable[[Any, Exception | None], None]


class CommitFailed(Exception):
    """What the process said of a statement that failed; ``sqlite_errorname`` is as a driver's error has it."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.sqlite_errorname = name


class Committer(Hired):
    """Commits to the log in ``directory``. What it is given is done in order, and told in the loop's thread."""

    def __init__(self, directory: str) -> None:
        super().__init__("organism.log.committing", (directory,))
        self._wishes = NOBODY
        self._answers = NOBODY
        self._most = 0
        self._waiting: deque[Done] = deque()
        self._complaint = b""
        self._ended = self._loop.create_future()
        self._needed_at = 0.0

    def hire(self) -> None:
        """See ``Hired``. It leaves some time after this was last called."""
        self._needed_at = self._loop.time()
        super().hire()

    def takes(self, commit: Commit) -> bool:
        """Whether it can be given this commit now: it has to fit into the pipe, so that the loop waits for nobody."""
        return self.is_ready and commit.size < self._most

    def commit(self, commit: Commit, done: Done) -> None:
        """Have it written. It has to be one that it ``takes``, and one at a time."""
        self._post(done, (commit.sql, commit.parameters))

    def checkpoint(self, done: Done) -> None:
        """Have the WAL moved into the database. It has to be ready."""
        self._post(done, None)

    def _post(self, done: Done, statement: Statement | None) -> None:
        self._waiting.append(done)
        with suppress(OSError):  # it is about to be known that it is gone
            os.writev(self._wishes, wish_of(statement))

    async def _begin(self, command: Sequence[str], environment: Mapping[str, str]) -> Process:
        asked, self._wishes = os.pipe()
        self._answers, said = os.pipe()
        self._waiting.append(self._begun)
        try:
            self._most = fcntl.fcntl(self._wishes, fcntl.F_SETPIPE_SZ, MOST_BYTES) // 2
            return await asyncio.create_subprocess_exec(*command, stdin=asked, stdout=said, env=environment)
        except OSError:
            self._hang_up()
            raise
        finally:
            os.close(asked)
            os.close(said)

    async def _hear(self, _: Process) -> None:
        self._complaint, self._ended = b"", self._loop.create_future()
        self._loop.add_reader(self._answers, self._heard)
        try:
            await self._ended
        finally:
            self._hang_up()

    def _heard(self) -> None:
        """One answer at a time: who is told may raise, and nobody else shall miss what was said for that."""
        said = os.read(self._answers, len(DONE) if not self._complaint else ANSWER_BYTES)
        if not said:
            self._loop.remove_reader(self._answers)
            self._ended.set_result(None)
        elif self._complaint or said == FAILED:
            self._complaint += said
        else:
            self._waiting.popleft()(None, None)

    def _begun(self, _: Any, error: Exception | None) -> None:
        self.is_ready = error is None and not self._is_leaving
        if self.is_ready:
            self._stay()

    def _stay(self) -> None:
        """Until it was not needed for a while."""
        leaves_in = self._needed_at + LEAVE_SECONDS - self._loop.time()
        if leaves_in > 0:
            self._loop.call_later(leaves_in, self._stay)
        elif self.is_ready:
            self.is_ready = False
            self._let_end()

    def _let_end(self) -> None:
        if self._wishes != NOBODY:
            os.close(self._wishes)
            self._wishes = NOBODY

    def _hang_up(self) -> None:
        self._let_end()
        os.close(self._answers)

    def _missed(self) -> None:
        complaint = orjson.loads(self._complaint.removeprefix(FAILED) or b'["", "The process that commits is gone."]')
        waiting, self._waiting = self._waiting, deque()
        for done in waiting:
            self._loop.call_soon(done, None, CommitFailed(*complaint))

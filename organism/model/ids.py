"""Ids: a *session* is a user's conversation, a *thread* one tree of messages, a *call token* what a handler sees."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Final, NewType

from organism.model.words import ApprovalId, MessageId, SessionId, ThreadId

CallToken = NewType("CallToken", str)
TenantId = NewType("TenantId", str)

CONSOLE: Final = "console"
"""The outside world: not a listener; takes any payload."""
SYSTEM_TODO: Final = "system.todo"
"""The organism's own listener for todo-until, always a peer."""
SYSTEM_CHAT: Final = "system.chat"
"""The organism's own agent for callers that bring their own conversation; it stands in no list."""
SYSTEM_COMPACTION: Final = "system.compaction"
"""The organism's own listener that compacts sessions; it stands in no list."""
DEFAULT_TENANT = TenantId("default")
TENANTS: Final = "tenants"
"""The folder of a data directory that has a folder for each tenant."""
RESTORED: Final = "tenants.new"
"""What a restore is about to put in its place."""
LIBRARY_ID = r"[A-Za-z0-9_:-][A-Za-z0-9._:-]{0,127}|\.[A-Za-z0-9_:-][A-Za-z0-9._:-]{0,126}|\.\.[A-Za-z0-9._:-]{1,126}"
"""Of an index or a document: 1 to 128 such characters, but not ``.`` and ``..``, which no URL can name."""


def folder_of(tenant: str) -> str:
    """The name of a tenant's directory: a digest, so that no id can be a path; ``default`` keeps its name."""
    return tenant if tenant == DEFAULT_TENANT else sha256(tenant.encode()).hexdigest()[:32]


def key_path_of(given: Path | None, folder: str) -> Path | None:
    """The key file of a tenant's folder: ``given`` is that of ``default``, others are next to it."""
    if given is None or folder == DEFAULT_TENANT:
        return given
    return given.with_name(f"{given.name}.{folder}")


def token_of(call: str) -> CallToken:
    """The opaque token of the call that a request message opened; the same for the whole call."""
    return CallToken("call-" + call[4:])


def turn_thread(session: str, number: int) -> ThreadId:
    """The thread of a session's turn, which is named after the session: ``ses-….7``."""
    return f"{session}.{number}"


def session_of(thread_id: str) -> str | None:
    """The session that a thread belongs to."""
    session, dot, _ = thread_id.partition(".")
    return session if dot and session.startswith(_SESSION) else None


def turn_number(thread_id: str) -> int:
    """Which turn of its session a thread is; 0 if it is none."""
    number = thread_id.rpartition(".")[2]
    return int(number) if number.isdecimal() else 0


_SESSION = "ses-"


def stream_of_index(index_id: str) -> str:
    """The stream of the log that has an index's events."""
    return f"idx-{index_id}"


_BLOCK_IDS = 128
_COUNTS = tuple(f"{count:04x}" for count in range(_BLOCK_IDS))
_RANDOM_DIGITS = 16


class Ids:
    """Makes ids that increase and cannot be guessed.

    48 bits of milliseconds, a count of 16 bits and 64 random bits, as hex; time and randomness are read once a block.
    """

    __slots__ = ("_block", "_milliseconds", "_random_bytes")

    def __init__(self, random_bytes: Callable[[int], bytes], milliseconds: Callable[[], int]) -> None:
        self._random_bytes = random_bytes
        self._milliseconds = milliseconds
        self._block: list[str] = []

    def message(self) -> MessageId:
        """A new message id."""
        return "msg-" + self.bare()

    def thread(self, session: str | None = None) -> ThreadId:
        """A new thread id; of a thread that belongs to a session and is no turn of it, if one is given."""
        return f"{session}.thr-{self.bare()}" if session is not None else "thr-" + self.bare()

    def session(self) -> SessionId:
        """A new session id."""
        return _SESSION + self.bare()

    def approval(self) -> ApprovalId:
        """A new approval id."""
        return "apr-" + self.bare()

    def bare(self) -> str:
        """32 hex digits with no prefix."""
        if not self._block:
            time = f"{self._milliseconds():012x}"
            chance = self._random_bytes(_BLOCK_IDS * _RANDOM_DIGITS // 2).hex()
            begins = range(0, len(chance), _RANDOM_DIGITS)
            ids = [time + count + chance[at : at + _RANDOM_DIGITS] for count, at in zip(_COUNTS, begins, strict=True)]
            self._block = ids[::-1]
        return self._block.pop()

"""How a command can end, for scripts. ``organism --help`` and docs/operations.md list these exit codes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, Self


class Exit(IntEnum):
    """The exit codes, each with its ``meaning``."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Self:
        """One code and what it means."""
        made = int.__new__(cls, code)
        made._value_, made.meaning = code, meaning
        return made

    DONE = 0, "done"
    FAILED = 1, "refused, failed, or a check found a fault"
    USAGE = 2, "wrong usage"
    NO_SERVER = 3, "no server answers"
    NOT_ALLOWED = 4, "the token is missing, not accepted, or does not allow it"
    NOT_FOUND = 5, "what was named does not exist"
    CONFLICT = 6, "not possible in the present state"
    NOT_NOW = 7, "not now: try again later"
    INTERRUPTED = 130, "Ctrl-C"
    PIPE_CLOSED = 141, "the reader of the output is gone"


OF_STATUS: Final[Mapping[int, Exit]] = {
    401: Exit.NOT_ALLOWED,
    403: Exit.NOT_ALLOWED,
    404: Exit.NOT_FOUND,
    409: Exit.CONFLICT,
    429: Exit.NOT_NOW,
    503: Exit.NOT_NOW,
}
"""The exit code for an HTTP status of a refusal; any other status is ``FAILED``."""

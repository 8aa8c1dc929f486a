"""How a command can end, for scripts: one table. ``organism --help`` and docs/operations.md show it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NoReturn

import typer


class Exit(IntEnum):
    """The exit codes. What each means stands in ``MEANINGS``."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NO_SERVER = 3
    NOT_ALLOWED = 4
    NOT_FOUND = 5
    CONFLICT = 6
    NOT_NOW = 7
    INTERRUPTED = 130
    PIPE_CLOSED = 141


MEANINGS: Final[Mapping[Exit, str]] = {
    Exit.DONE: "done",
    Exit.FAILED: "refused, failed, or a check found a fault",
    Exit.USAGE: "wrong usage",
    Exit.NO_SERVER: "no server answers",
    Exit.NOT_ALLOWED: "the token is missing, not taken, or does not allow it",
    Exit.NOT_FOUND: "what was named does not exist",
    Exit.CONFLICT: "it does not fit the present state",
    Exit.NOT_NOW: "not now: the same again, later",
    Exit.INTERRUPTED: "Ctrl-C",
    Exit.PIPE_CLOSED: "nobody reads the output any more",
}

OF_STATUS: Final[Mapping[int, Exit]] = {
    401: Exit.NOT_ALLOWED,
    403: Exit.NOT_ALLOWED,
    404: Exit.NOT_FOUND,
    409: Exit.CONFLICT,
    429: Exit.NOT_NOW,
    503: Exit.NOT_NOW,
}
"""What the statuses of a server's refusal mean; any other is ``FAILED``."""


def end(code: Exit) -> NoReturn:
    """End the command with this code."""
    raise typer.Exit(code)

"""The server's own log, caught while a test runs."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog

from organism.model.redact import Redactor
from organism.server.http.server_log import configure_logs


class Terminal(io.StringIO):
    """A stream that may say that it is a terminal."""

    def __init__(self, *, is_terminal: bool = False) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        """See ``TextIO``."""
        return self._is_terminal

    @property
    def lines(self) -> list[str]:
        """What was written, by lines as a program parts them at newlines alone."""
        return self.getvalue().split("\n")[:-1]

    @property
    def entries(self) -> list[dict[str, Any]]:
        """The lines as JSON."""
        return [json.loads(line) for line in self.lines]


@contextmanager
def logged(redactor: Redactor | None = None, *, is_terminal: bool = False, level: str = "info") -> Iterator[Terminal]:
    """What is logged meanwhile."""
    configured = structlog.get_config()
    root = logging.getLogger()
    before = (list(root.handlers), root.level)
    stream = Terminal(is_terminal=is_terminal)
    configure_logs(stream, redactor or Redactor(), level)
    try:
        yield stream
    finally:
        structlog.configure(**configured)
        logging.captureWarnings(capture=False)
        root.handlers, root.level = before

"""The server's own log: one JSON object a line, or on a terminal a line for people. Nobody can forge one (S31).

Whatever could end a line or move a cursor is escaped; every entry, those of libraries too, passes the redactor first.
A request is named by its route, never by its path, which a client wrote.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final, TextIO

import structlog
from structlog.typing import Processor

from organism.model.redact import Redactor

LEVELS: Final = ("debug", "info", "warning", "error")
_FIRST: Final = ("timestamp", "level", "event")

Entry = MutableMapping[str, Any]


def configure_logs(stream: TextIO, redactor: Redactor, level: str = "warning") -> None:
    """Log from ``level`` on to the stream, in lines for people if it is a terminal."""
    least = getattr(logging, level.upper())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        Redacting(redactor),
    ]
    written: Processor = line_for_people if stream.isatty() else line_of_json
    structlog.configure(
        processors=[*shared, written],
        wrapper_class=structlog.make_filtering_bound_logger(least),
        logger_factory=structlog.WriteLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    others = logging.StreamHandler(stream)
    others.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, written]
        )
    )
    logging.basicConfig(handlers=[others], level=max(least, logging.WARNING), force=True)
    logging.captureWarnings(capture=True)


class Redacting:
    """Takes secrets out of an entry; whatever is no JSON becomes its text first."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def __call__(self, _logger: Any, _name: str, entry: Entry) -> Entry:
        """The entry as it may be written."""
        own = {key: value for key, value in entry.items() if key.startswith("_")}  # structlog's, which it takes out
        fields = {key: value for key, value in entry.items() if key not in own}
        plain = json.loads(json.dumps(fields, default=repr, skipkeys=True))
        return {**own, **self._redactor.value(plain)}


def line_of_json(_logger: Any, _name: str, entry: Entry) -> str:
    """One JSON object in ASCII: newline, ESC and U+2028 stand in it as escapes."""
    ordered = {key: entry[key] for key in (*_FIRST, *entry) if key in entry}
    return json.dumps(ordered)


def line_for_people(_logger: Any, _name: str, entry: Entry) -> str:
    """``time level event field=value …``, with the trace below if there is one, each of its lines indented."""
    trace = "\n".join(str(entry.pop(key)) for key in ("traceback", "exception") if key in entry)
    time, level, event = (visible(str(entry.pop(key, ""))) for key in _FIRST)
    fields = [f"{visible(key)}={visible(_plain(value))}" for key, value in entry.items()]
    return "\n    ".join((" ".join((time, f"{level:<7}", event, *fields)), *map(visible, trace.splitlines())))


def visible(text: str) -> str:
    """The text with all that moves a cursor or ends a line written as an escape."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_log = structlog.get_logger("organism.server")
_REFUSED: Final = frozenset({401, 403, 429, 503})
_FAILED: Final = 500


@dataclass(slots=True)
class Access:
    """One request or socket; ``route``, ``tenant`` and ``status`` are filled in when they are known.

    ``is_immutable``: what its address gives never changes. ``is_named``: the request id is sent by its longer name
    too, ``SPASS-Request-Id``. ``headers`` are those of the answer, whatever it will be.
    """

    request_id: str
    method: str
    route: str | None = None
    tenant: str | None = None
    status: int = 500
    is_page: bool = False
    is_immutable: bool = False
    is_named: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)

    def end(self) -> None:
        """It is over: log it, as a warning if it was refused for want of rights or restraint, or cannot be done now."""
        status = self.status
        write = _log.warning if status in _REFUSED else _log.error if status >= _FAILED else _log.info
        write(
            "request",
            request_id=self.request_id,
            tenant=self.tenant,
            method=self.method,
            route=self.route,
            status=status,
            duration_ms=round((time.monotonic() - self.began) * 1000, 3),
        )

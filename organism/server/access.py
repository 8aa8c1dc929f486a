"""What the server's log says of each request: by whom, for what, with which end, in what time (S31).

A request is named by its route and never by its path, which holds whatever a client wrote there. What goes well is
``info``; what was refused for want of rights or restraint is a ``warning``; what failed is an ``error``.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final

import structlog

_log = structlog.get_logger("organism.server")
_SUSPECT: Final = frozenset({401, 403, 429})
_FAILED: Final = 500


@dataclass(slots=True)
class Access:
    """One request or connection; ``route`` and ``tenant`` are filled in when they are known."""

    request_id: str
    method: str
    route: str | None = None
    tenant: str | None = None
    began: float = field(default_factory=time.monotonic)

    def end(self, status: int) -> None:
        """It is over: say so."""
        said = _log.error if status >= _FAILED else _log.warning if status in _SUSPECT else _log.info
        said(
            "request",
            request_id=self.request_id,
            tenant=self.tenant,
            method=self.method,
            route=self.route,
            status=status,
            duration_ms=round((time.monotonic() - self.began) * 1000, 3),
        )

"""A turn as lines of JSON, an entry of its run each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from organism.model.run import RunEntry
from organism.server.turns.run_result import FoldedRun, waiting_entry


class LineWriter:
    """Writes lines of this media type. A batch is the run's fold."""

    def __init__(self, media_type: str) -> None:
        self.media_type = media_type
        self.headers: Mapping[str, str] = {}

    def waiting(self, reason: str) -> bytes:
        return self.lines(waiting_entry(reason))

    def lines(self, entry: RunEntry) -> bytes:
        return b"%b\n" % orjson.dumps(entry)

    def end(self, _cost: Mapping[str, str]) -> bytes:
        return b""

    def whole(self, folded: FoldedRun) -> dict[str, Any]:
        return folded.outputs()

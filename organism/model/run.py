"""A run: what people see of one turn of an agent, as a stream of entries ``{"type", "data"}`` (spec 4.4).

| type | data |
|---|---|
| ``message`` | ``text``: a whole message of the agent |
| ``message_start``, ``_delta``, ``_end`` | ``id``; a delta has ``delta`` and ``offset``, the characters before it |
| ``thought``, ``thought_start``, ``_delta``, ``_end`` | the same, of what the model thinks aloud |
| ``tool_call`` | ``id``, ``name``, ``input``, and ``rawInput`` where the arguments could not be read |
| ``tool_result`` | ``id``, ``output``, ``isError`` |
| ``interaction_request`` | ``id``, ``kind``, ``payload``: somebody has to answer |
| ``interaction_response`` | ``id`` and the answer |
| ``data`` | ``name``, ``data``: anything for a front end |
| ``file`` | ``url``, ``mediaType`` |
| ``usage`` | ``input``, ``output``, ``total``: tokens of one model call |
| ``error`` | ``code``, ``message`` |
| ``done`` | ``stopReason``: the last entry of every run, and only there |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

RunEntry = Mapping[str, Any]
"""One entry: ``type`` and ``data``."""

StopReason = Literal["stop", "length", "tool_rounds", "budget", "paused", "killed", "error"]

BLOCKS: Final = ("message", "thought")
"""What is shown while it comes: ``_start``, ``_delta`` and ``_end`` of a block."""

REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(BLOCKS, ("text",)),
    **{f"{block}_start": ("id",) for block in BLOCKS},
    **{f"{block}_delta": ("id", "delta", "offset") for block in BLOCKS},
    **{f"{block}_end": ("id",) for block in BLOCKS},
    "tool_call": ("id", "name", "input"),
    "tool_result": ("id", "output", "isError"),
    "interaction_request": ("id", "kind", "payload"),
    "interaction_response": ("id",),
    "data": ("name", "data"),
    "file": ("url", "mediaType"),
    "usage": ("input", "output", "total"),
    "error": ("code", "message"),
    "done": ("stopReason",),
}
"""Every type of an entry, and what its data must hold."""


def faults(kind: str, data: object) -> str:
    """What is wrong with an entry; empty if it is one."""
    needed = REQUIRED.get(kind)
    if needed is None:
        return f"A run has entries of the types {', '.join(REQUIRED)}; {kind!r} came."
    if not isinstance(data, Mapping):
        return f"The data of {kind} is a dict with {', '.join(needed)}; {type(data).__name__} came."
    missing = [name for name in needed if name not in data]
    return f"The data of {kind} needs {', '.join(needed)}; {', '.join(missing)} is missing." if missing else ""

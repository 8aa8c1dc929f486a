"""A run: what people see of one turn of an agent, as a stream of entries ``{"type", "data"}``.

| type | data |
|---|---|
| ``message`` | ``text``: a whole message of the agent |
| ``message_start``, ``_delta``, ``_end`` | ``id``; a delta has ``delta`` and ``offset``, the characters before it |
| ``thought``, ``thought_start``, ``_delta``, ``_end`` | the same, of what the model thinks aloud |
| ``tool_call`` | ``id``, ``name``, ``input``, and ``rawInput`` where the arguments could not be read |
| ``tool_result`` | ``id``, ``output``, ``isError`` |
| ``interaction_request`` | ``id``, ``kind``, ``payload``: somebody has to answer |
| ``interaction_response`` | ``id`` and the answer |
| ``data`` | ``name``, ``data``: anything for a front end; what is called ``passages`` is ``PASSAGES`` |
| ``file`` | ``url``, ``mediaType`` |
| ``usage`` | ``input``, ``output``, ``total``: tokens of one model call |
| ``error`` | ``code``, ``message``; ``isFinal`` if the same would fail again, ``retryAfterSeconds`` if it is known |
| ``done`` | ``stopReason``: the last entry of every run, and only there |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

RunEntry = Mapping[str, Any]
"""One entry: ``type`` and ``data``."""

StopReason = Literal[
    "stop", "length", "tool_rounds", "budget", "paused", "killed", "error", "content_filter", "refusal"
]
STOP_REASONS: Final = get_args(StopReason)

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

PASSAGES: Final = "passages"
"""The name of a ``data`` entry: ``{"index", "passages": [{"id", "score"}]}`` that stand before an agent's prompt."""

LONGEST_ID: Final = 200
TEXTS: Final = frozenset({"text", "id", "delta", "name", "kind", "url", "mediaType", "code", "message"})
COUNTS: Final = ("input", "output", "total")


def faults(kind: str, data: object) -> str:
    """What is wrong with an entry that a handler shows; empty if nothing is. The ``offset`` is not the handler's."""
    if kind not in REQUIRED:
        return f"A run has entries of the types {', '.join(REQUIRED)}; {kind!r} came."
    needed = [name for name in REQUIRED[kind] if name != "offset"]
    if not isinstance(data, Mapping):
        return f"The data of {kind} is a dict with {', '.join(needed)}; {type(data).__name__} came."
    missing = [name for name in needed if name not in data]
    if missing:
        return f"The data of {kind} needs {', '.join(needed)}; {', '.join(missing)} is missing."
    wrong = (_fault(kind, name, data[name]) for name in needed)
    return next((f"In the data of {kind} {fault}" for fault in wrong if fault), "")


def _fault(kind: str, name: str, value: object) -> str:
    if name == "id" and not (isinstance(value, str) and 0 < len(value) <= LONGEST_ID):
        return f"`id` is a text of 1 to {LONGEST_ID} characters; {value!r:.60} came."
    if name in TEXTS and not isinstance(value, str):
        return f"`{name}` is a text; {value!r:.60} came."
    if name == "isError" and not isinstance(value, bool):
        return f"`isError` is true or false; {value!r:.60} came."
    if name == "stopReason" and value not in STOP_REASONS:
        return f"`stopReason` is one of {', '.join(STOP_REASONS)}; {value!r:.60} came."
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if kind == "usage" and name in COUNTS and not is_count:
        return f"`{name}` is a number of tokens; {value!r:.60} came."
    return ""

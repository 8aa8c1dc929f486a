"""What the peer is to answer, and how it sends it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Called:
    """A tool call of the model. Arguments that are a text are sent as that text, whatever it is."""

    name: str
    arguments: Any = field(default_factory=dict)
    id: str = "call_1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to one request, in the words of whichever API it was put to.

    What is said: ``text``, ``thought`` and ``calls``, in so many ``pieces`` each; the tokens (None: unreported) and the
    ``cost`` in dollars; ``finish`` as that API calls it, where empty is what fits. With ``error`` the body is an error
    of that API with this text, and with ``body`` it is that, to the byte, so many ``repeats`` over.

    How: by its ``status`` and ``headers``. Each event is a chunk unless ``chunk_bytes`` says how many bytes are;
    ``drip_s`` lie between two. After ``cut_after`` chunks, of which the head is the first, the connection is broken;
    after ``hang_after`` nothing more comes. It is given ``times`` over (0: always).
    """

    text: str = ""
    thought: str = ""
    calls: tuple[Called, ...] = ()
    pieces: int = 3
    finish: str = ""
    input_tokens: int | None = 7
    output_tokens: int | None = 3
    cost: float | None = None
    error: str = ""
    body: bytes | None = None
    repeats: int = 1
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    chunk_bytes: int = 0
    drip_s: float = 0
    cut_after: int | None = None
    hang_after: int | None = None
    times: int = 1


def to_json(answer: Answer) -> dict[str, Any]:
    """The answer as it goes to the peer's process."""
    fields = asdict(answer)
    fields["body"] = None if answer.body is None else base64.b64encode(answer.body).decode()
    return fields


def from_json(fields: dict[str, Any]) -> Answer:
    """The answer that ``to_json`` was given."""
    body = None if fields["body"] is None else base64.b64decode(fields["body"])
    return Answer(**{**fields, "body": body, "calls": tuple(Called(**call) for call in fields["calls"])})


def in_pieces(text: str, count: int) -> list[str]:
    """The text in at most so many pieces of one length."""
    size = max(1, -(-len(text) // max(1, count)))
    return [text[at : at + size] for at in range(0, len(text), size)]

"""Tools as models see them, and what tools answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A function offered to a model. ``parameters`` is the JSON Schema of its arguments; ``strict``: they follow it."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    strict: bool | None = None

    @property
    def as_offered(self) -> dict[str, Any]:
        """What a model is offered."""
        strict = {} if self.strict is None else {"strict": self.strict}
        return {"name": self.name, "description": self.description, "parameters": self.parameters, **strict}


ToolErrorCode = Literal[
    "invalid_field", "not_found", "forbidden", "preview_stale", "confirm_mismatch", "confirm_expired", "confirm_used",
    "upstream_error", "upstream_timeout",
]  # fmt: skip
"""The API's error codes that a tool may answer with."""


@dataclass
class ToolError:
    """A tool's answer when it could not do what it was asked to. The message says why, and what to do instead."""

    code: ToolErrorCode
    message: str


CONFIRM_TOKEN: Final = "confirm_token"  # noqa: S105 - the name of a field
"""The field of a payload in which a call that was previewed is confirmed."""


@dataclass
class ConfirmRequired:
    """Nothing is done yet: the call acts when it comes again, as it was, with this token.

    ``op`` is the listener, ``preview`` what would be done, as JSON text with long texts cut.
    """

    confirm_token: str
    op: str
    preview: str
    message: str
    confirm_required: bool = True
    expires_in_seconds: int = 60


@dataclass(frozen=True, slots=True)
class Preview:
    """What a call would do, as JSON, and the version of what it would do that to.

    ``quotes``: it shows text of what is there, so it is text from outside (S20).
    """

    shown: Mapping[str, Any]
    version: str
    quotes: bool = False


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A confirmed call: the id of its message, and the version that its preview showed.

    The version is empty if it need not be that one any more, as a person has seen the call and edited it.
    """

    message: str
    version: str


@dataclass(frozen=True, slots=True)
class Previewed:
    """A handler whose calls are confirmed. ``show`` previews a call, or says why it cannot be done; it changes nothing.

    ``act`` takes the payload, the metadata and what was confirmed.
    """

    act: Callable[[Any, Any, Confirmed], Awaitable[object]]
    show: Callable[[Any], Awaitable[Preview | ToolError]]

    def __call__(self, *_: Any) -> Awaitable[object]:
        raise TypeError("A call that was not confirmed does nothing.")


@dataclass
class ToolArguments:
    """The arguments of an external tool as JSON text, which the tool's own JSON Schema describes."""

    json: str


@dataclass
class ToolOutput:
    """The answer of an external tool: its text, and its structured content as JSON text if there is any.

    ``truncated``: the answer was longer.
    """

    text: str
    json: str = ""
    truncated: bool = False

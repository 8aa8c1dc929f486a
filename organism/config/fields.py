"""The types of values in the files of the configuration, with their bounds and what to call them."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

NAME_PATTERN: Final = r"^[A-Za-z][A-Za-z0-9_.-]*$"
_NOT_BLANK: Final = r"\S"
_ONE_LINE: Final = r"^[^\x00-\x1f\x7f\x{85}\x{2028}\x{2029}]*$"
_DOTTED: Final = r"^[^\W\d]\w*(\.[^\W\d]\w*)+$"
_MODULE: Final = r"^[^\W\d]\w*(\.[^\W\d]\w*)*$"
_PROMPT_REF: Final = r"^[A-Za-z0-9_.-]+(@[A-Za-z0-9_.-]+)?$"
_FILE_NAME: Final = r"^[a-zA-Z0-9_-]+$"
_INDEX: Final = r"^[A-Za-z0-9._:-]{1,128}$"
TENANT_ID: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"
_CALLED: Final = r"^[a-z0-9][a-z0-9-]{0,31}$"
_DIGEST: Final = r"^[0-9a-f]{64}$"
VARIABLE: Final = r"^[A-Za-z_][A-Za-z0-9_]*$"

PATTERNS: Final = {
    NAME_PATTERN: "a name: a letter, then letters, digits, `_`, `.` or `-`",
    _NOT_BLANK: "text that is not blank",
    _ONE_LINE: "one line of text",
    _DOTTED: "a dotted path such as `handlers.hello.greet`",
    _MODULE: "the name of a module such as `handlers`",
    _PROMPT_REF: "a prompt such as `A2@v1`",
    _FILE_NAME: "a name of letters, digits, `_` and `-`",
    _INDEX: "the name of an index: at most 128 letters, digits, `.`, `_`, `:` or `-`",
    TENANT_ID: "a tenant's id: at most 63 letters, digits, `.`, `_` or `-`",
    _CALLED: "a token's name: at most 32 small letters, digits or `-`",
    VARIABLE: "the name of an environment variable such as `SEARCH_TOKEN`, never a key itself",
    _DIGEST: "the SHA-256 of a token as 64 small hex digits, in quotes; `organism token create` makes it",
}

Text = Annotated[str, Field(min_length=1, pattern=_NOT_BLANK)]
Name = Annotated[str, Field(pattern=NAME_PATTERN, max_length=128)]
FileName = Annotated[str, Field(pattern=_FILE_NAME, max_length=128)]
IndexName = Annotated[str, Field(pattern=_INDEX)]
Title = Annotated[str, Field(min_length=1, pattern=_ONE_LINE, max_length=128)]
DottedPath = Annotated[str, Field(pattern=_DOTTED, max_length=256)]
Prefix = Annotated[str, Field(pattern=_MODULE, max_length=256)]
PromptRef = Annotated[str, Field(pattern=_PROMPT_REF, max_length=256)]
Amount = Annotated[float, Field(ge=0, le=1_000_000_000)]
Number = Annotated[int, Field(ge=0, le=1_000_000_000)]
TenantName = Annotated[str, Field(pattern=TENANT_ID)]
TokenName = Annotated[str, Field(pattern=_CALLED)]
Digest = Annotated[str, Field(pattern=_DIGEST)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Seconds = Annotated[float, Field(gt=0, le=31_536_000)]
PayloadBytes = Annotated[int, Field(ge=1, le=16 * 1024 * 1024)]
InvokeMode = Literal["batch", "stream"]
Provider = Literal["openai", "anthropic", "offline", "scripted", "replay", "local"]
Taint = Literal["escalate", "allow"]

Value = TypeVar("Value")


class _NotNull:
    """The value may be left out of the file, but null is not taken for it."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        nullable: Any = handler(source)
        schema: CoreSchema = nullable["schema"]
        return schema


class Made:
    """In the file it is a ``kind``; the record holds what ``make`` makes of it."""

    def __init__(self, kind: Any, make: Callable[[Any], object]) -> None:
        self._kind = kind
        self._make = make

    def __get_pydantic_core_schema__(self, _source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._make, handler.generate_schema(self._kind))


def money(amount: float) -> Decimal:
    """An amount exactly as it was written: 0.1 is a tenth."""
    return Decimal(repr(amount))


Given = Annotated[Value | None, _NotNull()]
"""A key that may be left out: then it is None."""
Money = Annotated[Decimal, Made(Amount, money)]

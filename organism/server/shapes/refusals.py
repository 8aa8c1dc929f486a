"""The one shape of errors, and the table of their codes."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict  # pydantic wants this one below Python 3.12

from organism.server.shapes.words import Count, ErrorType, shape


@shape
class Fault(TypedDict):
    """One of several things that are wrong."""

    param: Annotated[str, Field(examples=["/payload/name"])]
    message: Annotated[str, Field(examples=["is missing"])]


@shape
class Refusal(TypedDict):
    """What was wrong."""

    type: ErrorType
    code: Annotated[str, Field(description="Stable; `GET /errors` explains each.", examples=["invalid_payload"])]
    message: Annotated[str, Field(examples=["/payload/name: is missing."])]
    param: Annotated[
        str | None,
        Field(description="Where: a JSON pointer into the body, `query.x` or `headers.x`.", examples=["/payload/name"]),
    ]
    details: NotRequired[Annotated[list[Fault], Field(description="Every fault, where there are several.")]]
    requested: NotRequired[Annotated[str, Field(description="What was asked for and cannot be had.")]]
    supported: NotRequired[Annotated[list[str], Field(description="What can be had instead.")]]
    request_id: Annotated[str, Field(description="Stands in the server's log, too.", examples=["req-5f2c9a01d7e84b36"])]


@shape
class Error(TypedDict):
    """The one shape of errors."""

    error: Refusal


@shape
class ErrorCode(TypedDict):
    """What a code means and what to do."""

    code: Annotated[str, Field(examples=["not_found"])]
    type: ErrorType
    http_status: Annotated[int, Field(examples=[404])]
    title: Annotated[str, Field(examples=["Not found"])]
    description: Annotated[str, Field(examples=["There is nothing here by that name."])]
    remediation: Annotated[str, Field(examples=["Check the id or name; lists show what there is."])]
    typical_param: str | None


@shape
class ErrorCodes(TypedDict):
    """Every code there is."""

    version: Annotated[int, Field(examples=[1])]
    count: Count
    entries: list[ErrorCode]

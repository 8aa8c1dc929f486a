"""Approvals as they are shown: with a preview, and a form for their edits."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from organism.codec import Codec, UnknownPayload, json_schema_by_value
from organism.model import words
from organism.views.approvals import Approval


class _WithPayload(Approval):
    """An approval as it is stored, completed by the content of its request."""

    payload: words.Content = UNSET


def shown_approvals(rows: bytes, codec: Codec) -> list[Approval]:
    """The approvals of a JSON array as they are shown: each with its preview, one that is pending with its form."""
    found = msgspec.json.decode(rows, type=list[_WithPayload])
    for row in found:
        row.preview, row.payload = row.payload, UNSET
        if row.status == "pending":
            row.form_schema = _form_schema(row.payload_type, row.preview, codec)
    return list[Approval](found)


def _form_schema(payload_type: str | None, preview: Raw | UnsetType, codec: Codec) -> dict[str, Any]:
    with suppress(UnknownPayload):
        if payload_type is not None:
            return codec.schema(payload_type).json_schema
    return {} if preview is UNSET else json_schema_by_value(msgspec.json.decode(preview))

"""The codec: payload classes, and bytes ⇄ payload for a set of them.

Nothing outside this folder touches XML.
"""

from __future__ import annotations

from organism.codec.describe import json_schema_by_value, json_schema_of_any
from organism.codec.limits import PayloadLimits, PayloadOverLimit, SpoofAttempt, UnknownPayload, UnsupportedPayload
from organism.codec.repair import Repaired, repair_json, repair_text
from organism.codec.schema import PayloadSchema
from organism.codec.validate import Codec, Decoded, Encoded, RepairedPayload

__all__ = [
    "Codec",
    "Decoded",
    "Encoded",
    "PayloadLimits",
    "PayloadOverLimit",
    "PayloadSchema",
    "Repaired",
    "RepairedPayload",
    "SpoofAttempt",
    "UnknownPayload",
    "UnsupportedPayload",
    "json_schema_by_value",
    "json_schema_of_any",
    "repair_json",
    "repair_text",
]

"""The codec's front door: payload classes, and bytes ⇄ payload for a set of them.

Nothing outside this folder touches XML.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from organism.codec.limits import PayloadOverLimit, SpoofAttempt, Terms, UnknownPayload, UnsupportedPayload
from organism.codec.repair import Repaired, repair_json, repair_text
from organism.codec.schema import PayloadSchema
from organism.codec.validate import Codec, Decoded, Mended, Sealed
from organism.codec.xsd import envelope_xsd, text_of

__all__ = [
    "Codec",
    "Decoded",
    "Mended",
    "PayloadOverLimit",
    "PayloadSchema",
    "Repaired",
    "Sealed",
    "SpoofAttempt",
    "Terms",
    "UnknownPayload",
    "UnsupportedPayload",
    "repair_json",
    "repair_text",
    "write_schemas",
]


def write_schemas(directory: Path, classes: Iterable[type]) -> list[Path]:
    """Write ``envelope.xsd`` and one XSD for each payload class into ``directory``; gives the paths."""
    texts = {"envelope.xsd": text_of(envelope_xsd())}
    texts |= {f"{schema.name}.xsd": schema.xsd for schema in Codec.of(classes).schemas}
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (directory / name).write_text(text, encoding="utf-8")
    return [directory / name for name in texts]

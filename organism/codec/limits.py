"""What may come in (S10, S11), and the namespaces that a document may name."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

ENVELOPE = "urn:organism:envelope:1"
XSD = "http://www.w3.org/2001/XMLSchema"
XSI = "http://www.w3.org/2001/XMLSchema-instance"

MAX_DEPTH = 32
MAX_ATTRIBUTES = 64
MAX_NAMESPACES = 16
ENVELOPE_BYTES = 4096
"""Room for what an envelope puts around its payload."""


class Controls(Enum):
    """What becomes of characters that XML cannot carry: refused from people, U+FFFD with a note from models."""

    REFUSE = "refuse"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class Terms:
    """What a receiver takes: UTF-8 bytes of the payload's XML, elements of the document, and whose text it is."""

    payload_bytes: int = 262_144
    elements: int = 2_000
    controls: Controls = Controls.REFUSE

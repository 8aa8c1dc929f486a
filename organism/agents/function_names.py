"""The names of listeners as a model's functions: models take ``[a-zA-Z0-9_-]{1,64}``, listeners may be called more.

Within one offer the two are bijective. A name that fits stays as it is; another one has its dots replaced, and a
digest behind it where it is too long or the name is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

MOST_CHARS: Final = 64
_FITS: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_FOREIGN: Final = re.compile(r"[^a-zA-Z0-9_-]")
_DIGEST_CHARS: Final = 8


def function_names(listeners: Iterable[str]) -> dict[str, str]:
    """The function name of each listener, whatever the order in which they are given."""
    wanted = sorted(set(listeners), key=lambda name: (_FITS.fullmatch(name) is None, name))
    taken: dict[str, str] = {}
    for name in wanted:
        taken[_free(name, taken)] = name
    return {listener: function for function, listener in taken.items()}


def _free(name: str, taken: dict[str, str]) -> str:
    plain = _FOREIGN.sub("_", name)
    if len(plain) <= MOST_CHARS and plain not in taken:
        return plain
    digest = sha256(name.encode()).hexdigest()
    return f"{plain[: MOST_CHARS - _DIGEST_CHARS - 1]}-{digest[:_DIGEST_CHARS]}"

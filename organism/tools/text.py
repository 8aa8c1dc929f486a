"""Foreign text made fit for a payload: decoded, without what XML cannot carry, cut to a length."""

from __future__ import annotations

import codecs
import re
from typing import Final

_UNFIT: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CHARSET: Final = re.compile(r"(?i)\bcharset\s*=\s*\"?([A-Za-z0-9._:-]{1,40})")
_CHARSETS: Final = frozenset(
    {
        "ascii", "utf-8", "utf-16", "utf-16-le", "utf-16-be", "big5", "gbk", "gb2312", "gb18030", "shift_jis", "euc_jp",
        "euc_kr", "iso2022_jp", "koi8-r", "koi8-u", "mac-roman",
        *(f"iso8859-{part}" for part in (*range(1, 12), 13, 14, 15, 16)),
        *(f"cp125{page}" for page in range(9)),
    }
)  # fmt: skip
"""Those that the web speaks. Python knows others, of which some take long and some are no charsets at all."""
_COSTS: Final = {"&": 5, "<": 4, ">": 4, "\r": 5, '"': 6, "\\": 2, "\n": 2, "\t": 2}
"""What a character comes to in XML or in JSON, whichever is more."""


def decoded(body: bytes, content_type: str) -> str:
    """The body as text: by its charset if that is a usual one, else as UTF-8; what does not fit becomes U+FFFD."""
    named = _CHARSET.search(content_type)
    return _UNFIT.sub("\ufffd", body.decode(_charset(named[1]) if named else "utf-8", "replace")).removeprefix("\ufeff")


def _charset(name: str) -> str:
    try:
        known = codecs.lookup(name).name
    except LookupError:
        return "utf-8"
    return known if known in _CHARSETS else "utf-8"


def cut(text: str, most_bytes: int) -> str:
    """The beginning of a text that takes at most so many bytes, as XML and as JSON."""
    left = most_bytes
    for at, character in enumerate(text):
        left -= _COSTS.get(character) or len(character.encode())
        if left < 0:
            return text[:at]
    return text

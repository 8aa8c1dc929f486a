"""The words of texts and questions, as the index has them. Pure.

The index divides a text at spaces and punctuation. Chinese, Japanese, Thai and others write no spaces, and Korean
particles follow their noun without one. A run of such characters is therefore indexed as its pairs: 東京都 as 東京 and
京都, with the last character alone, so that a question of one character is a prefix of all that begins with it.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

MOST_WORDS: Final = 64
_MARK: Final = "\ue000"
"""Before each pair: a character of private use, which FTS5 counts as a letter and texts do not have."""
_CODE: Final = 8
"""Digits of a code point."""
_SCRIPTS: Final = (
    r"\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59"  # Thai
    r"\u0e81-\u0edf"  # Lao
    r"\u0f00\u0f18-\u0f39\u0f3e-\u0f84\u0f86-\u0fbc"  # Tibetan
    r"\u1000-\u1049\u1050-\u109f\ua9e0-\ua9fe\uaa60-\uaa7f"  # Myanmar
    r"\u1780-\u17d3\u17d7\u17dc\u17dd\u17e0-\u17e9"  # Khmer
    r"\u1950-\u19da\u1a20-\u1a9f\uaa80-\uaadd"  # Tai
    r"\ua980-\ua9c0\u1b00-\u1b59"  # Javanese, Balinese
    r"\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"  # Hangul
    r"\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\U0001aff0-\U0001b16f"  # Kana
    r"\u3105-\u312f\u31a0-\u31bf"  # Bopomofo
    r"\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    r"\U00020000-\U0003ffff"
    r"\ua000-\ua48c\U00016fe0-\U00018dff\U0001b170-\U0001b2ff"  # Yi, Tangut, Khitan, Nushu
)
_VARIANTS: Final = r"\ufe00-\ufe0f\U000e0100-\U000e01ef"
"""Which form of the character before is drawn."""
_COMPATIBLE: Final = r"\u3200-\u33ff\uff00-\uffef"
"""Forms of half and full width, and words in one square."""
_EAST: Final = re.compile(f"[{_SCRIPTS}{_COMPATIBLE}][{_SCRIPTS}{_COMPATIBLE}{_VARIANTS}]*")
_RUN: Final = re.compile(f"[{_SCRIPTS}]+")
_VARIANT: Final = re.compile(f"[{_VARIANTS}]")
_SINGLE: Final = re.compile(f"{_MARK}[0-9a-f]{{{_CODE}}}")
_WORD: Final = re.compile(f"{_MARK}[0-9a-f]+|[^\\W_]+")


def indexed(text: str) -> str:
    """The text that is indexed in the place of this one; the same unless it has scripts without spaces."""
    return text if text.isascii() else _EAST.sub(lambda run: _with_pairs(run[0]), text)


def terms(question: str) -> list[str]:
    """What FTS5 is asked for, a term a word: quoted, so that none is an operator. At most ``MOST_WORDS``."""
    asked = _EAST.sub(lambda run: _with_pairs(run[0], is_asked=True), unicodedata.normalize("NFC", question))
    words = dict.fromkeys(word.lower() for word in _WORD.findall(asked))
    return [f'"{word}" *' if _SINGLE.fullmatch(word) else f'"{word}"' for word in list(words)[:MOST_WORDS]]


def _with_pairs(text: str, *, is_asked: bool = False) -> str:
    plain = unicodedata.normalize("NFKC", _VARIANT.sub("", text))
    return _RUN.sub(lambda run: f" {' '.join(_pairs(run[0], is_asked=is_asked))} ", plain)


def _pairs(run: str, *, is_asked: bool) -> list[str]:
    """Its pairs by their code points, since FTS5 knows no younger characters and leaves vowel signs out.

    The last character stands alone, but in a question only if it is the only one.
    """
    codes = run.encode("utf-32-be").hex()
    end = max(_CODE, len(codes) - _CODE) if is_asked else len(codes)
    return [_MARK + codes[at : at + 2 * _CODE] for at in range(0, end, _CODE)]

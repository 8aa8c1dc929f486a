"""The words of texts and questions, as the index has them. Pure.

The index divides a text at spaces and punctuation. Chinese, Japanese, Thai and others write no spaces, and Korean
particles follow their noun without one. A run of such characters is therefore indexed as its pairs: 東京都 as 東京 and
京都, with the last character alone, so that a question of one character is a prefix of all that begins with it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
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
_CLUSTER: Final = re.compile(f".[{_VARIANTS}\\u1160-\\u11ff\\u3099\\u309a\\uff9e\\uff9f]*", re.DOTALL)
"""A character with what is drawn in it: its form, the rest of a syllable of Hangul, the marks of a kana."""
_SINGLE: Final = re.compile(f"{_MARK}[0-9a-f]{{{_CODE}}}")
_WORD: Final = re.compile(f"{_MARK}[0-9a-f]+|[^\\W_]+")

_TOKEN: Final = re.compile(r"[^\W_][^\W_\u0300-\u0331]*(?:[\u0300-\u0331]+[^\W_\u0300-\u0331]*)*")
"""What FTS5 takes for a word of a text: unlike a question, one may have its accents apart."""
MOST_PLACES: Final = 20


def indexed(text: str) -> str:
    """The text that is indexed in the place of this one; the same unless it has scripts without spaces."""
    return text if text.isascii() else _EAST.sub(lambda run: _with_pairs(run[0]), text)


def terms(question: str) -> list[str]:
    """What FTS5 is asked for, a term a word: quoted, so that none is an operator. At most ``MOST_WORDS``."""
    asked = _EAST.sub(lambda run: _with_pairs(run[0], is_asked=True), unicodedata.normalize("NFC", question))
    words = dict.fromkeys(word.lower() for word in _WORD.findall(asked))
    return [f'"{word}" *' if _SINGLE.fullmatch(word) else f'"{word}"' for word in list(words)[:MOST_WORDS]]


def places(text: str, asked: Sequence[str]) -> list[tuple[int, int]]:
    """Where the text has these ``terms``: the first places (from, to), at most ``MOST_PLACES``; none overlap."""
    words = frozenset(_plain(each.strip('" *')) for each in asked)
    found: list[tuple[int, int]] = []
    for start, end in _stretches(text, words):
        if found and start < found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        elif len(found) == MOST_PLACES:
            break
        else:
            found.append((start, end))
    return found


def _stretches(text: str, words: frozenset[str]) -> Iterator[tuple[int, int]]:
    """The places of each word and each pair, in order."""
    at = 0
    for run in () if text.isascii() else _EAST.finditer(text):
        yield from _tokens(text[at : run.start()], range(at, run.start() + 1), words)
        yield from _in_run(run, words)
        at = run.end()
    yield from _tokens(text[at:], range(at, len(text) + 1), words)


def _tokens(text: str, at: Sequence[int], words: frozenset[str]) -> Iterator[tuple[int, int]]:
    """The places of words; ``at`` has that of each character, and one more."""
    return ((at[each.start()], at[each.end()]) for each in _TOKEN.finditer(text) if _plain(each[0]) in words)


def _in_run(run: re.Match[str], words: frozenset[str]) -> Iterator[tuple[int, int]]:
    """Those in a run of eastern characters; one may stand for several, or several for one."""
    clusters = [
        (each.start() + run.start(), unicodedata.normalize("NFKC", _VARIANT.sub("", each[0])))
        for each in _CLUSTER.finditer(run[0])
    ]
    plain = "".join(characters for _, characters in clusters)
    at = [*(place for place, characters in clusters for _ in characters), run.end()]
    before = 0
    for each in _RUN.finditer(plain):
        yield from _tokens(plain[before : each.start()], at[before : each.start() + 1], words)
        for first in range(*each.span()):
            for end in range(first + 1, min(first + 2, each.end()) + 1):
                if _MARK + plain[first:end].encode("utf-32-be").hex() in words:
                    yield at[first], next(place for place in at[end:] if place > at[first])
        before = each.end()
    yield from _tokens(plain[before:], at[before:], words)


def _plain(word: str) -> str:
    """The word as FTS5 compares it: in lower case, without accents."""
    if word.isascii():
        return word.lower()
    return "".join(each for each in unicodedata.normalize("NFD", word.lower()) if not unicodedata.combining(each))


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

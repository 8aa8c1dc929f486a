"""What words mean to the model, English and German: read from the tables beside this file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

_TABLES: Final = Path(__file__).parent / "tables"


def rows(name: str) -> Iterator[tuple[str, str]]:
    """The rows of a table: what stands before the first colon, and what stands behind it."""
    for line in (_TABLES / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            head, _, rest = line.partition(": ")
            yield head, rest


@cache
def _sections() -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    section = ""
    for line, _ in rows("words"):
        if line.startswith("["):
            section = line.strip("[]")
        found.setdefault(section, set()).update(word.replace("_", " ") for word in line.split() if line[0] != "[")
    return {name: frozenset(words) for name, words in found.items()}


def named(section: str) -> frozenset[str]:
    """The words of a section of ``words.txt``."""
    return _sections()[section]


ENGLISH: Final = named("english")
GERMAN: Final = named("german")
SILENT: Final = ENGLISH | GERMAN
"""Words that say nothing of the matter."""
QUESTION_WORDS: Final = named("question_words")
ASKING: Final = QUESTION_WORDS | named("verbs_that_ask")
"""A sentence that begins with one of these asks."""
LEAST_COMMAND: Final = 4
"""Of a shorter word the rest without its end is another one."""
_SHORT_COMMANDS: Final = frozenset(
    word.removesuffix("e") for word in named("commands_german") if len(word) > LEAST_COMMAND
)
COMMANDS: Final = named("commands_english") | named("commands_german") | _SHORT_COMMANDS
"""German ones with and without their ``e``: ``erkläre``, ``erklär``."""
ENGLISH_SIGNS: Final = ENGLISH | named("commands_english") | named("signs_of_english")
GERMAN_SIGNS: Final = GERMAN | named("commands_german") | named("signs_of_german")
"""What tells that a text is English, or German."""
POLITE: Final = named("polite")
"""What may stand before a question or a command."""
NEGATIONS: Final = named("negations")
OWNERS: Final = named("owners")
"""People that someone has: what is said of them is not said of the speaker."""
MEANINGS: Final[Mapping[str, str]] = {word: meaning for meaning, words in rows("meanings") for word in words.split()}
"""By word: the name of its meaning, where it has others like it."""

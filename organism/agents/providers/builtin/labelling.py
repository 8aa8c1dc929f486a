"""Values that a text calls by the name of a field, and values that other fields have taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from organism.agents.providers.builtin.fields import Field
from organism.agents.providers.builtin.sources import Labelled, Source
from organism.agents.providers.builtin.words import Word

Value = TypeVar("Value")
LONG_WORD: Final = 7
LEAST_PART: Final = 4
ENOUGH: Final = 0.5


@dataclass
class Taken:
    """The values that other fields have taken already: the next field of the kind takes another one."""

    values: set[tuple[str, str]] = field(default_factory=set)

    def next(self, kind: str, found: Sequence[str]) -> str | None:
        """The first one that is free; if none is, the first one."""
        free = [value for value in found if (kind, value) not in self.values]
        chosen = free[0] if free else found[0] if found else None
        if chosen is not None:
            self.values.add((kind, chosen))
        return chosen


def labelled(wanted: Field, source: Source, reader: Callable[[str], Value | None]) -> Value | None:
    """What the best fitting label calls so. A label fits if it says most of the field's name and little else."""
    best = ENOUGH
    value: Value | None = None
    for each in source.labelled:
        score = _label_score(wanted, each)
        if score > best:
            read = reader(each.value)
            if read is not None:
                best, value = score, read
    return value


def _label_score(wanted: Field, each: Labelled) -> float:
    label = {word.meaning for word in each.label if not word.is_silent or word.plain in wanted.forms}
    if not label:
        return 0.0
    same = sum(1 for word in each.label if is_alike(word, wanted.meanings))
    same = min(same, len(wanted.meanings))
    return same / len(wanted.meanings) * 0.7 + same / len(label) * 0.4 if same else 0.0


def is_alike(word: Word, meanings: frozenset[str]) -> bool:
    if word.meaning in meanings or word.stem in meanings:
        return True
    return len(word.plain) >= LONG_WORD and any(len(each) >= LEAST_PART and each in word.plain for each in meanings)

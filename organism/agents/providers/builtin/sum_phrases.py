"""Sums that are said as a whole: ``add 3 to 4``, ``what percent of 80 is 20``."""

from __future__ import annotations

from typing import Final

from organism.agents.providers.builtin.sum_reader import SumReader
from organism.agents.providers.builtin.sum_tree import HUNDRED, LEVELS, Sum, chained, changed, number

TWO: Final = 2


def read_verb(reader: SumReader) -> Sum | None:
    """``add 3 to 4``, ``subtract 3 from 9``, ``increase 80 by 5 %``; the words between stand for its sign."""
    begin = reader.at
    token = reader.took("verb")
    left = reader.item() if token is not None else None
    if token is None or left is None:
        reader.at = begin
        return None
    items, between = [left], ""
    while (word := reader.took("and", "to", "of", "with", "from", "by", ",", "infix")) is not None:
        reader.took("and")
        item = reader.item()
        if item is None:
            reader.at -= 1
            break
        between = word.kind if word.kind not in ("infix", ",") else between
        items.append(item)
    return _combined(reader, token.value, items, between, begin)


def _combined(reader: SumReader, op: str, items: list[Sum], between: str, begin: int) -> Sum | None:
    if len(items) < TWO:
        reader.at = begin
        return None
    if op in ("+", "-") and items[1].op == "share":
        return changed(items[0], op, items[1])
    if op in ("+", "-") and items[0].op == "share" and between in ("to", "from", "of"):
        return changed(items[1], op, items[0])
    return chained(op, items[::-1] if op == "-" and between in ("from", "of") else items)


def read_share(reader: SumReader) -> Sum | None:
    """``what percent of 80 is 20``, ``20 is what percent of 80``, ``wie viel Prozent sind 20 von 80``."""
    begin = reader.at
    part = reader.took("number")
    if part is not None and not reader.took("is"):
        reader.at = begin
        return None
    if not reader.took("which"):
        reader.at = begin
        return None
    found = _share_of(reader, number(part.value)) if part else _share(reader)
    if found is None:
        reader.at = begin
        return None
    return Sum("*", (Sum("/", found), number(HUNDRED)))


def _share_of(reader: SumReader, part: Sum) -> tuple[Sum, Sum] | None:
    whole = reader.operand(LEVELS["*"]) if reader.took("percent") and reader.took("of") else None
    return (part, whole) if whole is not None else None


def _share(reader: SumReader) -> tuple[Sum, Sum] | None:
    if not reader.took("percent"):
        return None
    is_whole_first = reader.took("of") is not None
    if not is_whole_first:
        reader.took("is")
    first = reader.operand(LEVELS["*"] + 1)
    second = reader.operand(LEVELS["*"] + 1) if first is not None and reader.took("is", "of") else None
    if first is None or second is None:
        return None
    return (second, first) if is_whole_first else (first, second)


def read_more(reader: SumReader, so_far: Sum) -> Sum | None:
    """What is done next with a sum: ``and add 5``, ``then divide it by 2``."""
    while reader.kind() in ("and", "word", ",", "is", "which", "ask"):
        reader.at += 1
    verb = reader.took("verb", "infix", "prefix")
    if verb is None:
        return None
    while reader.kind() in ("it", "by", "to", "with", "from", "of", "and"):
        reader.at += 1
    if verb.kind == "prefix":
        return Sum("*", (so_far, number(verb.value))) if verb.value.isdigit() and not reader.kind() else None
    operand = reader.item()
    if operand is None or reader.kind() not in ("", "word", "it", ",", "final", "ask"):
        return None
    sign = verb.value.rstrip("~")
    if operand.op == "share" and sign in ("+", "-"):
        return changed(so_far, sign, operand)
    return Sum(sign, (so_far, operand))

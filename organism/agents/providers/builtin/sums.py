"""Sums in a text: finds what is to be calculated, in signs or in words, and writes it as an expression.

A clause becomes tokens (``sum_tokens``), and from each token on as much is read as makes a sum (``sum_reader``,
``sum_phrases``). Nothing is calculated here; that is a tool's work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from organism.agents.providers.builtin.sum_phrases import read_more, read_share, read_verb
from organism.agents.providers.builtin.sum_reader import SumReader
from organism.agents.providers.builtin.sum_stories import told_sum
from organism.agents.providers.builtin.sum_tokens import Token, tokens_of
from organism.agents.providers.builtin.sum_tree import Sum
from organism.agents.providers.builtin.words import Language

TWO: Final = 2
MAX_CHARS: Final = 1000
MAX_TOKENS: Final = 200
"""Whoever asks for more at once needs another model."""


def sums_of(clause: str, language: Language | None = None) -> list[Sum]:
    """The sums of a clause: each has at least one operation."""
    tokens = tokens_of(clause[:MAX_CHARS], language)[:MAX_TOKENS]
    found = _read(tokens, joins=False) or (_read(tokens, joins=True) if _joins(tokens) else [])
    told = told_sum(clause[:MAX_CHARS], language) if not found else None
    return [told] if told is not None else found


def sum_continued(clause: str, so_far: Sum, language: Language | None = None) -> Sum | None:
    """The sum with what a further clause does with it; None if the clause does nothing with it."""
    tokens = tokens_of(clause[:MAX_CHARS], language)[:MAX_TOKENS]
    return read_more(SumReader(tokens, 0, joins=False), so_far)


def _joins(tokens: Sequence[Token]) -> bool:
    """Whether ``and`` adds here: ``3 and 4 together``, and nothing else is asked of the two numbers."""
    kinds = [token.kind for token in tokens]
    return "together" in kinds or (
        kinds.count("and") == 1 and kinds.count("number") == TWO and bool({"ask", "which"} & {*kinds})
    )


def _read(tokens: Sequence[Token], *, joins: bool) -> list[Sum]:
    found, at = [], 0
    while at < len(tokens):
        reader = SumReader(tokens, at, joins=joins)
        made = read_share(reader) or read_verb(reader) or reader.climb(1)
        if made is not None and made.op not in ("", "neg", "share"):
            start = tokens[at].start
            found.append(replace(made, start=start, end=tokens[reader.at - 1].end))
            at = reader.at
        elif made is not None and reader.at > at + 1:
            at = reader.at
        else:
            at += 1
    return found

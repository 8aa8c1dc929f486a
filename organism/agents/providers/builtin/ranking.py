"""Which sentences of a text matter most: by themselves (TextRank), or for a question; few of them, and no two alike.

A sentence is a node, and two are as near as they share rare words. A walk along those edges stays longest at the ones
that speak of what the others speak of. Of a long text only the sentences that hold the most of its frequent words are
walked, so that the work stays linear in the text.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from organism.agents.providers.builtin.words import Sentence, sentences_of, words_of

MOST_WALKED: Final = 60
STEPS: Final = 12
STAYS: Final = 0.85
ALIKE: Final = 0.6
"""How much it counts against a sentence that one like it is taken already."""
LEAST_WORDS: Final = 2

_ORDERS: Final = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:instruction|previous|above|prompt|rule|everything)|"
    r"\b(?:you (?:must|should|shall|have to|are now)|system prompt|as an ai|new instructions?)\b|"
    r"\bcall the (?:tool|function)\b|"
    r"\b(?:ignoriere|vergiss)\b.{0,40}\b(?:anweisung|vorherige|obige|regeln|alles)|\bdu (?:musst|sollst|bist jetzt)\b",
    re.IGNORECASE,
)


def is_order(text: str) -> bool:
    """Whether a sentence gives orders to its reader: such a one is not quoted from foreign text."""
    return bool(_ORDERS.search(text))


def best_sentences(text: str, question: str, most: int) -> list[str]:
    """The sentences that say most of what is asked, in their order; if nothing is asked, those that matter most."""
    found = [sentence for sentence in sentences_of(text) if not is_order(sentence.text)]
    wanted = {word.meaning for word in words_of(question) if not word.is_silent}
    rarity = rarities(found)
    asked = {sentence.start: _shared(sentence, wanted, rarity) for sentence in found}
    if not any(asked.values()):
        return summary(found, most)
    ranks = {at: value + 0.01 / (1 + order) for order, (at, value) in enumerate(asked.items())}
    return _varied(found, ranks, most)


def summary(found: Sequence[Sentence], most: int, density: Callable[[Sentence], float] = lambda _: 1.0) -> list[str]:
    """The sentences that matter most, in their order. ``density`` says how much each tells by itself."""
    kept = [sentence for sentence in found if len(sentence.content) >= LEAST_WORDS] or list(found)
    rarity = rarities(kept)
    kept = _frequent(kept)
    ranks = _walked(kept, rarity)
    return _varied(kept, {each.start: ranks[each.start] * density(each) for each in kept}, most)


def rarities(found: Sequence[Sentence]) -> Mapping[str, float]:
    """By meaning: how rare it is among the sentences."""
    counts = Counter(meaning for sentence in found for meaning in {word.meaning for word in sentence.content})
    return {meaning: math.log(1 + len(found) / count) for meaning, count in counts.items()}


def _shared(sentence: Sentence, wanted: set[str], rarity: Mapping[str, float]) -> float:
    return sum(rarity.get(meaning, 0.0) for meaning in {word.meaning for word in sentence.content} & wanted)


def _frequent(found: Sequence[Sentence]) -> list[Sentence]:
    """Of too many sentences, those with the most of the text's frequent words; the first ones count a little more."""
    if len(found) <= MOST_WALKED:
        return list(found)
    counts = Counter(word.meaning for sentence in found for word in sentence.content)
    weight = {
        sentence.start: sum(counts[word.meaning] for word in sentence.content) / (8 + len(sentence.content))
        for sentence in found
    }
    best = sorted(found, key=lambda sentence: -weight[sentence.start])[:MOST_WALKED]
    return sorted(best, key=lambda sentence: sentence.start)


def _walked(found: Sequence[Sentence], rarity: Mapping[str, float]) -> dict[int, float]:
    """TextRank."""
    bags = [{word.meaning for word in sentence.content} for sentence in found]
    edges: list[list[tuple[int, float]]] = [[] for _ in found]
    for left, bag in enumerate(bags):
        for right in range(left):
            weight = _likeness(bag, bags[right], rarity)
            if weight > 0:
                edges[left].append((right, weight))
                edges[right].append((left, weight))
    totals = [sum(weight for _, weight in own) for own in edges]
    ranks = [1.0] * len(found)
    for _ in range(STEPS):
        ranks = [
            (1 - STAYS) + STAYS * sum(ranks[other] * weight / totals[other] for other, weight in own) for own in edges
        ]
    lead = [1.0 + 0.15 / (1 + at) for at in range(len(found))]
    return {sentence.start: rank * more for sentence, rank, more in zip(found, ranks, lead, strict=True)}


def _likeness(left: set[str], right: set[str], rarity: Mapping[str, float]) -> float:
    shared = left & right
    if not shared:
        return 0.0
    return sum(rarity[meaning] for meaning in shared) / (math.log(2 + len(left)) + math.log(2 + len(right)))


def _varied(found: Sequence[Sentence], ranks: Mapping[int, float], most: int) -> list[str]:
    """The highest ranks, less where one like it is taken already (MMR); given in the order of the text."""
    highest = max(ranks.values(), default=0.0) or 1.0
    bags = {sentence.start: {word.meaning for word in sentence.content} for sentence in found}
    taken: list[Sentence] = []
    ahead = sorted((each for each in found if ranks[each.start] > 0), key=lambda each: -ranks[each.start])[:MOST_WALKED]
    while ahead and len(taken) < most:
        best = max(
            ahead, key=lambda sentence: ranks[sentence.start] / highest - ALIKE * _overlap(sentence, taken, bags)
        )
        taken.append(best)
        ahead.remove(best)
    return [sentence.text for sentence in sorted(taken, key=lambda sentence: sentence.start)]


def _overlap(sentence: Sentence, taken: Sequence[Sentence], bags: Mapping[int, set[str]]) -> float:
    mine = bags[sentence.start]
    return max(
        (len(mine & bags[other.start]) / max(1, min(len(mine), len(bags[other.start]))) for other in taken), default=0.0
    )

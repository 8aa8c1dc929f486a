"""Talks in which something is told and asked for later, among other things that were told."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Any

from tests.agents.providers.asking import Came
from tests.agents.providers.builtin.generated.case import Case
from tests.agents.providers.builtin.generated.phrases import Phrases

ANSWERS = {
    "en": ["I see.", "Thanks for telling me.", "Noted!", "Good to know."],
    "de": ["Verstehe.", "Danke, das merke ich mir.", "Alles klar.", "Gut zu wissen."],
}
FRAMES = {
    "en": ["{}", "{}", "By the way: {}", "Just so you know, {}", "Hi! {}"],
    "de": ["{}", "{}", "Übrigens: {}", "Nur damit du es weißt: {}", "Hallo! {}"],
}


def fact_case(random: Random, phrases: Phrases) -> Case:
    """A talk that ends in a question whose answer was told in it."""
    language = random.choice(["en", "de"])
    told = random.sample(phrases.facts[language], random.randint(2, 5))
    values: list[str] = []
    messages: list[dict[str, Any]] = []
    for text, _, possible in told:
        values.append(random.choice([one for one in possible if one not in values]))
        said = random.choice(FRAMES[language]).format(text.format(values[-1]))
        messages.append({"role": "user", "content": said})
        messages.append({"role": "assistant", "content": random.choice(ANSWERS[language])})
    at = random.randrange(len(told))
    messages.append({"role": "user", "content": random.choice(told[at][1])})
    others = [value for value in values if value != values[at]]
    return Case(messages, values[at], partial(_wrong_facts, values[at], others))


def _wrong_facts(wanted: str, others: Sequence[str], came: Came) -> Sequence[str]:
    missing = [] if wanted in came.text else [f"{wanted} is not said"]
    return [*missing, *(f"{other} was not asked for" for other in others if other in came.text)]

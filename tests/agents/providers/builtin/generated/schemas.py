"""Texts, and schemas of some of what they tell."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

import jsonschema_rs

from tests.agents.providers.asking import Came
from tests.agents.providers.builtin.generated.case import Case, is_right
from tests.agents.providers.builtin.generated.phrases import Phrases
from tests.agents.providers.builtin.generated.slots import slots


def schema_case(random: Random, phrases: Phrases) -> Case:
    """A text, and a schema of some of the fields that it tells, all required."""
    language = random.choice(["en", "de"])
    said = slots(random, language)
    every = [(name, of, random.choice(told)) for name, of, told in phrases.fields[language]]
    wanted = random.sample(every, random.randint(1, 5))
    sentences = [told[0] for name, _, told in every if name in {one[0] for one in wanted} or random.random() < 0.15]
    random.shuffle(sentences)
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: of for name, of, _ in wanted},
        "required": [name for name, *_ in wanted],
        "additionalProperties": False,
    }
    values = {name: told[1].format(**said) for name, _, told in wanted}
    messages = [
        {"role": "system", "content": "Extract the fields."},
        {"role": "user", "content": " ".join(sentences).format(**said)},
    ]
    form = {"type": "json_schema", "json_schema": {"name": "fields", "schema": schema}}
    return Case(messages, values, partial(_wrong_fields, schema, values), response_format=form)


def _wrong_fields(schema: dict[str, Any], values: Mapping[str, str], came: Came) -> Sequence[str]:
    try:
        answer = json.loads(came.text)
    except ValueError:
        return ["no JSON"]
    if not jsonschema_rs.is_valid(schema, answer):
        return ["does not fit its schema"]
    return [f"{name}: {answer[name]!r}" for name, value in values.items() if not is_right(value, answer[name])]

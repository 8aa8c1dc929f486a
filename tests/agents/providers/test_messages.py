"""What is said of a request as a whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from organism.agents.providers.messages import prompt_digest
from organism.model.completion import ModelRequest
from organism.pump.prompt import json_of
from tests.agents.providers.asking import request, tool

ASKED = request("What is 2*21?", tools=[tool("calculator", "Computes.", expression={"type": "string"})])


def digest(asked: ModelRequest) -> str:
    """What is recorded of its prompt."""
    return prompt_digest(map(json_of, asked.messages), asked)


@pytest.mark.parametrize(
    "other",
    [
        request("What is 2*22?", tools=ASKED.tools),
        request("What is 2*21?"),
        replace(ASKED, response_format={"type": "object"}),
    ],
)
def test_another_prompt_has_another_digest(other: ModelRequest) -> None:
    assert digest(other) != digest(ASKED)


def test_the_order_of_keys_does_not_change_the_digest() -> None:
    turned = replace(ASKED, messages=({"content": "What is 2*21?", "role": "user"},))
    assert digest(turned) == digest(ASKED)

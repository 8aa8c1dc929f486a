"""What is said of a request as a whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from organism.agents.providers.messages import prompt_digest
from organism.model.completion import ModelRequest
from tests.agents.providers.asking import request, tool

ASKED = request("What is 2*21?", tools=[tool("calculator", "Computes.", expression={"type": "string"})])


@pytest.mark.parametrize(
    "other",
    [
        request("What is 2*22?", tools=ASKED.tools),
        request("What is 2*21?"),
        replace(ASKED, response_format={"type": "object"}),
    ],
)
def test_another_prompt_has_another_digest(other: ModelRequest) -> None:
    assert prompt_digest(other) != prompt_digest(ASKED)


def test_the_order_of_keys_does_not_change_the_digest() -> None:
    turned = replace(ASKED, messages=({"content": "What is 2*21?", "role": "user"},))
    assert prompt_digest(turned) == prompt_digest(ASKED)

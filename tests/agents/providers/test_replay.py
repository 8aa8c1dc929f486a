"""The replayed model: what was answered is answered again, and what was not asked is refused."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from organism.agents.providers import ProviderError
from organism.agents.providers.replay import Replay, prompt_digest
from organism.model.completion import Completion, Finish, ModelRequest, TextDelta, ThoughtDelta, ToolCall, Usage
from tests.agents.providers.asking import gathered, request, tool

ASKED = request("What is 2*21?", tools=[tool("calculator", "Computes.", expression={"type": "string"})])
ANSWERED = Completion(
    model="small",
    text="Forty-two, as far as anybody could ever tell, and that is all.",
    thought="Six times seven.",
    tool_calls=(ToolCall("c1", "calculator", {"expression": "2*21"}), ToolCall("c2", "calculator", None, "{oops")),
    finish="tool_calls",
    input_tokens=12,
    output_tokens=34,
    cost_usd=Decimal("0.0021"),
    cost_source="upstream",
)


async def test_a_recorded_answer_is_given_again_part_by_part() -> None:
    came = await gathered(Replay({prompt_digest(ASKED): [ANSWERED]}).stream(ASKED))
    assert (came.text, came.thought, tuple(came.calls)) == (ANSWERED.text, ANSWERED.thought, ANSWERED.tool_calls)
    assert (came.usage, came.finish) == (Usage(12, 34, Decimal("0.0021")), "tool_calls")
    order = [type(part) for part in came.parts]
    assert list(dict.fromkeys(order)) == [ThoughtDelta, TextDelta, ToolCall, Usage, Finish]
    assert order.count(TextDelta) > 1


@pytest.mark.parametrize(
    "other",
    [
        request("What is 2*22?", tools=ASKED.tools),
        request("What is 2*21?"),
        replace(ASKED, response_format={"type": "object"}),
    ],
)
async def test_another_call_is_refused_by_its_digest_and_without_its_prompt(other: ModelRequest) -> None:
    with pytest.raises(ProviderError) as caught:
        await gathered(Replay({prompt_digest(ASKED): [ANSWERED]}).stream(other))
    assert caught.value.fault == "rejected"
    assert prompt_digest(other) in caught.value.message
    assert "What is" not in caught.value.message


def test_the_order_of_keys_does_not_matter() -> None:
    turned = replace(ASKED, messages=({"content": "What is 2*21?", "role": "user"},))
    assert prompt_digest(turned) == prompt_digest(ASKED)


async def test_what_was_asked_again_is_answered_in_that_order_and_then_as_last() -> None:
    provider = Replay({prompt_digest(ASKED): [ANSWERED, replace(ANSWERED, text="Again forty-two.")]})
    assert [(await gathered(provider.stream(ASKED))).text for _ in range(3)] == [
        ANSWERED.text,
        "Again forty-two.",
        "Again forty-two.",
    ]

"""The embedded default is general: requests by chance of the sets of phrases (spec 4.3; adr/0043)."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from organism.agents.providers.builtin.model import Builtin
from tests.agents.providers.asking import gathered
from tests.agents.providers.builtin.generated.case import Case
from tests.agents.providers.builtin.generated.facts import fact_case
from tests.agents.providers.builtin.generated.phrases import SETS, Phrases, phrases
from tests.agents.providers.builtin.generated.schemas import schema_case
from tests.agents.providers.builtin.generated.tools import tool_case

CASES = 200


async def share(make: Callable[[Random, Phrases], Case], name: str) -> float:
    """How many of the cases of that set come out right; those that do not are shown if the test fails."""
    random, of, right = Random(f"generality {name}"), phrases(name), 0
    for _ in range(CASES):
        case = make(random, of)
        came = await gathered(Builtin().stream(case.request))
        if case.faults(came):
            print(case.told(came))  # noqa: T201 - read when it fails
        else:
            right += 1
    return right / CASES


@pytest.mark.parametrize("name", SETS)
async def test_of_requests_nearly_all_call_the_right_tools_with_the_right_arguments(name: str) -> None:
    assert await share(tool_case, name) >= 0.95


@pytest.mark.parametrize("name", SETS)
async def test_of_facts_told_among_others_nearly_all_are_given_back_alone(name: str) -> None:
    assert await share(fact_case, name) >= 0.95


@pytest.mark.parametrize("name", SETS)
async def test_of_texts_nearly_all_fill_their_schema_with_what_they_say(name: str) -> None:
    assert await share(schema_case, name) >= 0.95

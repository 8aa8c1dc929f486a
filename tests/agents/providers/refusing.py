"""Servers that refuse, and the faults that come of it."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from organism.agents.provider import Provider, ProviderError
from tests.agents.peer.answers import Answer
from tests.agents.providers.asking import ask

KEY: Final = "sk-0123456789abcdef"
PROMPT: Final = "What does the treasurer of Elbonia earn?"


async def fault(provider: Provider, **options: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await ask(provider, PROMPT, **options)
    return caught.value


def refusing(error: Any, status: int = 400) -> Answer:
    return Answer(status=status, body=json.dumps({"error": error}).encode())

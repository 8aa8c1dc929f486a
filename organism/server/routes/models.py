"""The models that the caller may use, in the form that OpenAI-compatible clients read."""

from __future__ import annotations

from typing import Final

from organism.config.settings import Model
from organism.server.call import Answer, Call, Route, answer
from organism.server.contract import Contract, gives
from organism.server.shapes.objects import ModelList

ABOUT: Final = {
    "offline": (
        "A small stand-in without network or key: it quotes and summarises what it is given, fills schemas and calls "
        "tools for plain requests. Configure a real model in organism.yaml."
    ),
    "local": "A small model in the server's own process.",
    "scripted": "Answers from a file, for tests.",
    "replay": "Gives what was answered before.",
}
"""Descriptions of the providers that are not other people's models."""


async def models(call: Call) -> Answer:
    """The models of the configuration that the token may use."""
    call.allow_query()
    state, allowed = call.tenant.pump.state, call.who.models
    since = state.routing.life_at // 1_000_000
    found = state.rules.settings.models.items()
    return answer(
        {
            "object": "list",
            "data": [_shown(name, model, since) for name, model in found if allowed is None or name in allowed],
        }
    )


def _shown(name: str, model: Model, since: int) -> dict[str, object]:
    return {
        "id": name,
        "object": "model",
        "created": since,
        "owned_by": model.provider,
        "context_window": model.context_window,
        "description": ABOUT.get(model.provider, ""),
    }


LIST: Final = Contract(gives=gives(ModelList))

ROUTES: Final = (Route("GET", "/models", models, contract=LIST),)

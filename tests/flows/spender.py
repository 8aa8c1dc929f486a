"""Organisms whose handlers call scripted models through the real gateway, and what their logs say of the money."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from organism.events.record import Record
from organism.events.vocabulary import BudgetReserved, BudgetSettled
from organism.pump.spending import DAY_US
from tests.flows.world import MakeWorld, World

SOURCE = """
from organism import CompleteError

async def think(payload: Ask, metadata: HandlerMetadata):
    TRACE.append(payload.text)
    try:
        said = await metadata.complete([{"role": "user", "content": payload.text}], max_tokens=100)
    except CompleteError as error:
        return HandlerResponse.respond(Told(f"{error.code}: {error.message}"))
    return HandlerResponse.respond(Told(said.text))
"""
PRICE = {"input_usd_per_million": 1, "output_usd_per_million": 2}


def says(text: str, *tokens: int, **more: Any) -> dict[str, Any]:
    """An answer of a script, with the tokens that it tells."""
    usage = {"usage": dict(zip(("input_tokens", "output_tokens"), tokens, strict=True))} if tokens else {}
    return {"text": text, **usage, **more}


HANGS = {"fault": "hang"}
"""An answer that never comes."""


def scripted(world: MakeWorld, *answers: Mapping[str, Any], source: str = SOURCE, **top: Any) -> World:
    """An organism with one listener ``ada``, who thinks with the model ``m``."""
    listeners = top.pop("listeners", None) or {"ada": {"handler": "think", "agent": True, "model": "m"}}
    model = {"provider": "scripted", "script": "script.yaml", "price": PRICE, **top.pop("model", {})}
    models = {"m": model, **top.pop("models", {})}
    folder = world("", {}).folder
    (folder / "script.yaml").write_bytes(orjson.dumps({"answers": list(answers)}))
    return world(source, listeners, models=models, **top)


def script(made: World, *answers: Mapping[str, Any], name: str = "script.yaml") -> None:
    """What the model says from the next start or reload on."""
    (made.folder / name).write_bytes(orjson.dumps({"answers": list(answers)}))


def tenants(made: World, **of: Mapping[str, Any]) -> None:
    """Write config/tokens.yaml."""
    path = made.folder / "config" / "tokens.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(orjson.dumps({"tenants": [{"id": name, **fields} for name, fields in of.items()]}))


def token(name: str, **fields: Any) -> dict[str, Any]:
    """A token of that name; nobody needs its text here."""
    return {"name": name, "sha256": name.encode().hex().ljust(64, "0"), "scopes": ["inject"], **fields}


def most_used(records: Sequence[Record[Any]]) -> tuple[int, int]:
    """The most tokens that were spent and reserved on a day, and how many calls had reservations at once."""
    held: dict[tuple[str, int], int] = {}
    spent: dict[int, int] = {}
    most = at_once = 0
    for record in records:
        event, day = record.event, record.at // DAY_US
        if isinstance(event, BudgetReserved):
            held[event.message, event.step] = event.tokens
        elif isinstance(event, BudgetSettled):
            del held[event.message, event.step]
            spent[day] = spent.get(day, 0) + event.tokens
        most = max(most, sum(held.values()) + sum(list(spent.values())[-1:]))
        at_once = max(at_once, len(held))
    return most, at_once

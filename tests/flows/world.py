"""A small organism for one test: handlers as source, listeners as a table, written as files and started for real."""

from __future__ import annotations

import math
import textwrap
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from organism.bootstrap import Parts
from organism.testing import Running, running
from tests.flows import lawful

HEAD = """
from __future__ import annotations
import asyncio
from dataclasses import dataclass, field
from organism import AskError, EffectError, EffectFailed, HandlerMetadata, HandlerResponse, SystemError
from organism import TodoComplete, TodoRegistered, TodoUntil

@dataclass
class Ask:
    text: str = ""

@dataclass
class Told:
    text: str = ""

GATES, CAME = {}, {}
TRACE = []

async def gate(name):
    CAME.setdefault(name, asyncio.Event()).set()
    await GATES.setdefault(name, asyncio.Event()).wait()
"""


class World:
    """Files of an organism below ``folder``. ``listeners`` maps a name to its keys; code is named by its short name."""

    def __init__(self, folder: Path, source: str, listeners: dict[str, dict[str, Any]], **top: Any) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.top = top
        self.listeners = listeners
        self.write(source)

    @property
    def config(self) -> Path:
        """Its organism.yaml."""
        return self.folder / "organism.yaml"

    def write(self, source: str, listeners: dict[str, dict[str, Any]] | None = None) -> None:
        """Write (or change) the handlers and the configuration."""
        self.listeners = listeners if listeners is not None else self.listeners
        (self.folder / "config" / "agents").mkdir(parents=True, exist_ok=True)  # none but those that a test writes
        package = self.folder / "actors"
        package.mkdir(exist_ok=True)
        (package / "__init__.py").write_text("")
        (package / "play.py").write_text(HEAD + textwrap.dedent(source))
        config = {
            "organism": {"name": "play", "imports": ["actors"]},
            "retry": {"attempts": 3, "base_delay_s": 0.01, "max_delay_s": 0.02},
            **self.top,
            "listeners": [_listener(name, keys) for name, keys in self.listeners.items()],
        }
        self.config.write_bytes(orjson.dumps(config))  # JSON is YAML

    @asynccontextmanager
    async def running(
        self, *, on_disk: bool = True, parts: Parts | None = None, blocked_seconds: float = math.inf
    ) -> AsyncIterator[Running]:
        """Start it; whatever a test plays must have kept the laws.

        With ``blocked_seconds`` its log tells of a loop that is held up so long, by a busy machine too. Without
        ``parts`` the start waits for the first answer of each MCP server.
        """
        parts = replace(parts or Parts(mcp_seconds=math.inf), blocked_seconds=blocked_seconds)
        async with running(self.config, self.data if on_disk else None, parts) as organism:
            try:
                yield organism
                if not organism.crashed and organism.organism.status != "stopping":
                    lawful.check_open(await organism.records())
            finally:
                open_all(organism)


def open_all(o: Running) -> None:
    """Nobody waits at a gate when the play is over."""
    for listener in o.organism.settings.listeners:
        for each in getattr(listener.handler, "__globals__", {}).get("GATES", {}).values():
            each.set()


def _listener(name: str, keys: dict[str, Any]) -> dict[str, Any]:
    """``handler: None`` is one that a model runs."""
    handler = keys.get("handler", name.replace("-", "_").replace(".", "_"))
    settings = {"name": name, "description": f"Plays {name}", **keys}
    if handler is None:
        return {key: value for key, value in settings.items() if key != "handler"}
    return {
        **settings,
        "handler": f"actors.play.{handler}",
        "payload_class": f"actors.play.{keys.get('payload_class', 'Ask')}",
    }


MakeWorld = Callable[..., World]

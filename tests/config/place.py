"""A folder with an organism.yaml and handler modules, to be written, loaded and loaded again."""

from __future__ import annotations

import asyncio
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pytest

from organism.config.load import load
from organism.config.modules import Importer
from organism.config.settings import Listener, Settings, Ship
from organism.errors import ConfigInvalid

HELLO = """
from dataclasses import dataclass

from organism import HandlerMetadata, HandlerResponse, SystemError


@dataclass
class Greeting:
    name: str


@dataclass
class Shout:
    text: str


async def greet(payload: Greeting, metadata: HandlerMetadata) -> None: ...


def slow(payload: Greeting, metadata: HandlerMetadata) -> None: ...
"""

SAYING = """
from dataclasses import dataclass

from handlers.words import WORD


@dataclass
class Greeting:
    name: str


async def greet(payload: Greeting, metadata: object) -> str:
    return f"{WORD}, {payload.name}"


async def late(payload: Greeting, metadata: object) -> str:
    from handlers.later import WORD
    import handlers.later as later
    from . import later as relative

    assert later is relative and later.WORD == WORD
    return f"{WORD}, {payload.name}"
"""

HEAD = """\
organism: {name: hello, imports: [handlers]}
listeners:
"""

GREETER = """\
  - name: greeter
    description: Greets
    payload_class: handlers.hello.Greeting
    handler: handlers.hello.greet
"""


def takes_all(payload_class: type) -> list[str]:
    """A check that finds nothing wrong with any class."""
    return []


class Place:
    """One organism's folder. Each file's text may be indented as a whole."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.importer = Importer()
        self.check_payload = takes_all
        self.ship: Ship = lambda *_: ()
        self.write("handlers/__init__.py", "")
        self.write("handlers/hello.py", HELLO)
        self.yaml(HEAD + GREETER)

    def write(self, path: str, text: str) -> None:
        """Write a file below the folder."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text), "utf-8")

    def yaml(self, text: str) -> None:
        """Write organism.yaml."""
        self.write("organism.yaml", text)

    def load(self) -> Settings:
        """Load it, as a start or a reload does."""
        return load(
            self.folder / "organism.yaml", check_payload=self.check_payload, imports=self.importer, ship=self.ship
        )

    def listener(self, name: str = "greeter") -> Listener:
        """Load it and give one listener."""
        listener = self.load().listener(name)
        assert listener is not None
        return listener

    def faults(self, text: str | None = None) -> dict[str, str]:
        """Load it, which must fail: what is wrong, by ``LINE:KEY``."""
        if text is not None:
            self.yaml(text)
        with pytest.raises(ConfigInvalid) as refused:
            self.load()
        found = {fault.pointer.removeprefix("organism.yaml:"): fault.message for fault in refused.value.details}
        assert len(found) == len(refused.value.details)
        return found


def say(listener: Listener | None) -> str:
    assert listener is not None
    assert listener.handler is not None
    answer: str = asyncio.run(listener.handler(listener.payload_class(name="Ada"), None))
    return answer


def speak(place: Place, word: str, later: str = "later") -> Settings:
    """Write what the handlers say, and load."""
    place.write("handlers/words.py", f"WORD = {word!r}\n")
    place.write("handlers/later.py", f"WORD = {later!r}\n")
    place.write("handlers/hello.py", SAYING)
    place.yaml(HEAD + GREETER + GREETER.replace("greeter", "late").replace("hello.greet", "hello.late"))
    return place.load()


def shown() -> dict[str, ModuleType]:
    return {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "handlers"}

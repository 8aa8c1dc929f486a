"""Writes envelope.xsd, and one XSD for each payload class of an organism.yaml and of the handlers that ship."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path

from organism.bootstrap import VERSION, payload_check
from organism.codec import Codec
from organism.codec.xsd import envelope_xsd, text_of
from organism.config.load import load
from organism.tools.toolbox import static_tools


def shipped_payloads(folder: Path) -> Iterator[type]:
    """The payload classes of the handlers that ship, whether or not a listener names them."""
    sys.path.insert(0, str(folder.parent.resolve()))
    for path in sorted(folder.glob("[a-z]*.py")):
        module = import_module(f"{folder.name}.{path.stem}")
        yield from (kind for kind in vars(module).values() if is_own_payload(kind, module.__name__))


def is_own_payload(kind: object, module: str) -> bool:
    """Whether it is a dataclass that this module defines."""
    return isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--config", type=Path, default=Path("organism.yaml"))
    options.add_argument("--handlers", type=Path, default=Path("handlers"))
    options.add_argument("--into", type=Path, default=Path("schemas"))
    given = options.parse_args()

    listeners = load(given.config, check_payload=payload_check(), ship=static_tools(VERSION)).listeners
    classes = {kind for listener in listeners for kind in (listener.payload_class, *listener.accepts)}
    named = {kind.__name__ for kind in classes}
    classes.update(kind for kind in shipped_payloads(given.handlers) if kind.__name__ not in named)
    for stale in given.into.glob("*.xsd"):
        stale.unlink()
    texts = {"envelope.xsd": text_of(envelope_xsd())}
    texts |= {f"{schema.name}.xsd": schema.xsd for schema in Codec.of(classes).schemas}
    given.into.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (given.into / name).write_text(text, encoding="utf-8")
    print(f"{len(texts)} schemas in {given.into}/")


if __name__ == "__main__":
    main()

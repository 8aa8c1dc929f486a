"""Writes the schemas of an organism.yaml into a folder: envelope.xsd, and one XSD for each payload class."""

from __future__ import annotations

import argparse
from pathlib import Path

from organism.bootstrap import VERSION, payload_faults
from organism.codec import write_schemas
from organism.config.load import load
from organism.tools.shelf import shipped


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--config", type=Path, default=Path("organism.yaml"))
    options.add_argument("--into", type=Path, default=Path("schemas"))
    given = options.parse_args()

    listeners = load(given.config, check_payload=payload_faults, ship=shipped(VERSION)).listeners
    classes = {kind for listener in listeners for kind in (listener.payload_class, *listener.accepts)}
    for stale in given.into.glob("*.xsd"):
        stale.unlink()
    written = write_schemas(given.into, sorted(classes, key=lambda kind: kind.__name__))
    print(f"{len(written)} schemas in {given.into}/")


if __name__ == "__main__":
    main()

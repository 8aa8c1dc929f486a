"""Writes the types of the wire for the web pages: what goes over REST and over /ws, in TypeScript."""

from __future__ import annotations

import argparse
from pathlib import Path

from organism.server.app import ROUTES
from organism.server.documents import typescript


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--into", type=Path, default=Path("web/src/wire.ts"))
    given = options.parse_args()

    given.into.parent.mkdir(parents=True, exist_ok=True)
    given.into.write_text(typescript.text(ROUTES), "utf-8")
    print(f"the types of the wire in {given.into}")


if __name__ == "__main__":
    main()

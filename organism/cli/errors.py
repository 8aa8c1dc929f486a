"""``organism errors``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from organism.cli.client import Client
from organism.cli.exits import Exit
from organism.cli.options import Errors
from organism.cli.show import fields, print_json, refuse, table

COLUMNS: Final = ("CODE", "STATUS", "MEANING")


def errors(options: Errors) -> None:
    """All codes, or one with its remedy."""
    entries = Client(options).get("/errors")["entries"]
    if options.code is not None:
        _one(options, [entry for entry in entries if entry["code"] == options.code])
    elif options.json:
        print_json(entries)
    else:
        table(COLUMNS, ((entry["code"], str(entry["http_status"]), entry["description"]) for entry in entries), "none")


def _one(options: Errors, found: list[Mapping[str, Any]]) -> None:
    if not found:
        refuse(Exit.NOT_FOUND, f"There is no error code {options.code!r}.", "`organism errors` lists them.")
    if options.json:
        print_json(found[0])
        return
    entry = found[0]
    fields(
        {
            "code": entry["code"],
            "status": str(entry["http_status"]),
            "meaning": entry["description"],
            "next": entry["remediation"],
        }
    )

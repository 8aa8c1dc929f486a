"""``organism indeterminate``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from organism.cli.client import Client, given
from organism.cli.control import stands
from organism.cli.options import Indeterminate, Indeterminates
from organism.cli.payloads import json_of
from organism.cli.show import moment, print_json, table, tell_more

COLUMNS: Final = ("EFFECT", "AGENT", "SINCE", "KEY")


def listed(options: Indeterminates) -> None:
    """The open ones."""
    found = Client(options).rows("indeterminate", {"thread_id": options.thread}, options.limit)
    if options.json:
        print_json(found.rows)
        return
    table(COLUMNS, map(_row, found.rows), "no effect is in doubt")
    tell_more(len(found.rows), found.total)


def _row(effect: Mapping[str, Any]) -> tuple[Any, ...]:
    return (effect["id"], effect["agent"], moment(effect["since"]), effect["key"])


def resolve(options: Indeterminate) -> None:
    """Say what became of it; its thread is shown as it then stands."""
    body = given({"outcome": options.outcome, "result": json_of(options.result, "--result")})
    stands(Client(options).post(f"/indeterminate/{quote(options.effect, safe='')}/resolve", body), options)

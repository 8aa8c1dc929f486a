"""``organism dead-letters``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from organism.cli.client import Client
from organism.cli.control import stands
from organism.cli.options import DeadLetters, Discard, Replay
from organism.cli.payloads import json_of
from organism.cli.show import out, print_json, table, tell_more

COLUMNS: Final = ("DEAD LETTER", "AGENT", "CODE", "ATTEMPTS", "REASON")


def listed(options: DeadLetters) -> None:
    """The open ones."""
    found = Client(options).rows("dead-letters", {"thread_id": options.thread}, options.limit)
    if options.json:
        print_json(found.rows)
        return
    table(COLUMNS, map(_row, found.rows), "no dead letters")
    tell_more(len(found.rows), found.total)


def _row(letter: Mapping[str, Any]) -> tuple[Any, ...]:
    return (letter["id"], letter["agent"], letter["code"], str(letter["attempts"]), letter["reason"])


def replay(options: Replay) -> None:
    """Send it again."""
    payload = json_of(options.payload, "--payload")
    headers = {"Idempotency-Key": options.key} if options.key else {}
    body = {} if options.payload is None else {"payload": payload}
    said = Client(options).post(f"/dead-letters/{quote(options.message, safe='')}/replay", body, headers=headers)
    if options.json:
        print_json(said)
    else:
        out().print(f"thread   {said['thread_id']}\nmessage  {said['message_id']}\nposition {said['position']}")


def discard(options: Discard) -> None:
    """Close it; its thread is shown as it then stands."""
    stands(Client(options).delete(f"/dead-letters/{quote(options.message, safe='')}"), options)

"""``organism inject``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from organism.cli.client import Client, given
from organism.cli.exits import Exit, end
from organism.cli.options import Inject
from organism.cli.payloads import parsed, text_of
from organism.cli.show import fail, message_line, out, print_json, state

PAYLOAD = "PAYLOAD"


def inject(options: Inject) -> None:
    """Send it; with ``--wait``, show the replies. A thread that ended in an error ends the command with 1."""
    text = text_of(options.payload, PAYLOAD)
    where = given({"to": options.to, "thread_id": options.thread, "wait": options.wait or None})
    client = Client(options)
    if text.lstrip().startswith("<"):
        xml = {"Content-Type": "application/xml"}
        said = client.post("/inject", key=options.key, params=where, content=text.encode(), headers=xml)
    else:
        payload = parsed(text, PAYLOAD, "JSON or XML")
        said = client.post("/inject", {**where, "payload": payload}, options.key)
    if options.json:
        print_json(said)
    else:
        _show(said, waited=options.wait is not None)
    if said.get("thread", {}).get("status") in {"error", "killed"}:
        end(Exit.FAILED)


def _show(said: Mapping[str, Any], *, waited: bool) -> None:
    console = out()
    console.print(f"thread   {said['thread_id']}\nmessage  {said['message_id']}\nposition {said['position']}")
    for reply in said.get("replies", ()):
        console.print(message_line(reply))
    if "thread" in said:
        console.print(state(said["thread"]["status"]))
        if said["thread"]["error"]:
            fail(said["thread"]["error"])
    elif waited:
        console.print(f"still active; `organism threads {said['thread_id']}` shows what came of it")

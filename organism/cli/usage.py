"""``organism usage``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final
from urllib.parse import quote

import typer

from organism.cli.client import Client
from organism.cli.options import Usage
from organism.cli.show import fields, moment, print_json, table

COLUMNS: Final = ("AGENT", "CALLS", "FAILED", "TOKENS", "USD", "LAST")


def usage(options: Usage) -> None:
    """Of all, by agent; or of one thread or agent, by model."""
    if options.thread is not None and options.agent is not None:
        raise typer.BadParameter("--thread and --agent are two accounts: ask for one of them.")
    path = "/usage"
    if options.thread is not None:
        path = f"/usage/threads/{quote(options.thread, safe='')}"
    elif options.agent is not None:
        path = f"/usage/agents/{quote(options.agent, safe='')}"
    found = Client(options).get(path, {"at": options.at})
    if options.json:
        print_json(found)
    elif "total" in found:
        rows = [*found["agents"], {**found["total"], "agent": "all"}]
        table(COLUMNS, map(_row, rows if found["agents"] else []), "no model was called yet")
    else:
        _one(found)


def _row(used: Mapping[str, Any]) -> tuple[str, ...]:
    calls, failed = str(used["calls"]), str(used["failed_calls"] or "-")
    return (used["agent"], calls, failed, str(used["tokens"]), used["cost_usd"], moment(used["last_called"]))


def _one(used: Mapping[str, Any]) -> None:
    by_model = (f"{each['model']}: {each['calls']} for {each['cost_usd']} USD" for each in used["models"])
    failed = f", {used['failed_calls']} failed" if used["failed_calls"] else ""
    fields(
        {
            "agent": used.get("agent"),
            "thread": used.get("thread_id"),
            "calls": f"{used['calls']}{failed}",
            "tokens": f"{used['tokens']} ({used['input_tokens']} in, {used['output_tokens']} out)",
            "cost": f"{used['cost_usd']} USD" + (f", {used['cost_eur']} EUR" if used["cost_eur"] else ""),
            "took": str(timedelta(seconds=round(used["model_seconds"]))),
            "last": moment(used["last_called"]),
            "models": "; ".join(by_model),
        }
    )

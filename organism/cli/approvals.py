"""``organism approvals``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from organism.cli.client import Client, given
from organism.cli.control import stands
from organism.cli.options import Approval, Approvals
from organism.cli.payloads import json_of
from organism.cli.show import compact, moment, print_json, state, table, tell_more
from organism.model.redact import visible

COLUMNS: Final = ("APPROVAL", "AGENT", "STATUS", "EXPIRES", "PREVIEW")


def listed(options: Approvals) -> None:
    """Those of one status, or all."""
    status = None if options.status == "all" else options.status
    found = Client(options).rows("approvals", {"status": status, "thread_id": options.thread}, options.limit)
    if options.json:
        print_json(found.rows)
        return
    table(COLUMNS, map(_row, found.rows), "no approvals" if status is None else f"no {status} approvals")
    tell_more(len(found.rows), found.total)


def _row(approval: Mapping[str, Any]) -> tuple[Any, ...]:
    return (
        approval["id"],
        approval["agent"],
        state(approval["status"]),
        moment(approval["expires_at"]),
        compact(visible(approval["preview"])),
    )


def resolve(options: Approval) -> None:
    """Say the word."""
    edits = json_of(options.edits, "--edits")
    body = given({"decision": options.decision, "edits": edits, "comment": options.comment or None})
    stands(Client(options).post(f"/approvals/{quote(options.approval, safe='')}/resolve", body), options)

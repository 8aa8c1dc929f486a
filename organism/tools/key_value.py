"""``key_value_get``, ``_set``, ``_list``, ``_delete``: a tenant's texts under keys, which outlive a thread.

A value is an event (``value_set``) in the unit of the tool's answer, so it is set exactly once. A read is a step. What
another user has stored is text from outside for each reader, its key too (S20).
"""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final

import orjson
from pydantic import Field

from organism.config.settings import Row, ShippedTool
from organism.events import vocabulary as events
from organism.log.log import History
from organism.model.handler import HandlerMetadata, HandlerResponse
from organism.model.redact import Redactor
from organism.model.tool import ToolError
from organism.pump.decide.respond import Owner, Recorded
from organism.views.keyed import VALUES, Value
from organism.views.views import Query, ViewStore, Where, rows_of

MOST_KEYS: Final = 10_000
MOST_CHARACTERS: Final = 32_000
_AFTER_ALL: Final = "\x7f"
"""Sorts after every character of a key."""

Key = Annotated[
    str,
    Field(
        min_length=1,
        max_length=128,
        pattern=r"^[A-Za-z0-9._:/-]+$",
        description="Letters, digits, . _ : / and -, such as user/name.",
    ),
]
Prefix = Annotated[str, Field(max_length=128, description="Only keys that begin so; all if left out.")]


@dataclass
class KeyValueGet:
    """Gives the text that is kept under a key."""

    key: Key


@dataclass
class KeyValueSet:
    """Keeps a text under a key, for later threads too. What was kept there before is replaced."""

    key: Key
    value: Annotated[str, Field(max_length=MOST_CHARACTERS)]


@dataclass
class KeyValueList:
    """Lists the keys under which texts are kept, in the order of the alphabet."""

    prefix: Prefix = ""
    after: Annotated[str, Field(max_length=128, description="Go on behind this key.")] = ""
    limit: Annotated[int, Field(ge=1, le=500)] = 100


@dataclass
class KeyValueDelete:
    """Deletes what is kept under a key."""

    key: Key


@dataclass
class KeyValue:
    """What is kept under the key; ``value`` is missing if nothing is."""

    key: str
    value: str | None = None


@dataclass
class KeyValueStored:
    """The text is kept; ``replaced`` says whether there was one before."""

    key: str
    replaced: bool


@dataclass
class KeyValueKeys:
    """The keys; ``more`` says that there are others behind the last one."""

    keys: list[str]
    more: bool


@dataclass
class KeyValueDeleted:
    """``deleted`` says whether there was anything."""

    key: str
    deleted: bool


_tool = partial(ShippedTool, scope="tools:execute", timeout_s=10)

TOOLS: Final = (
    _tool(name="key_value_get", payload_class=KeyValueGet, replies=(KeyValue,), effect="pure"),
    _tool(
        name="key_value_set",
        payload_class=KeyValueSet,
        replies=(KeyValueStored,),
        destroys=Row(VALUES.name, "key"),
        effect="idempotent",
    ),
    _tool(name="key_value_list", payload_class=KeyValueList, replies=(KeyValueKeys,), effect="pure"),
    _tool(
        name="key_value_delete",
        payload_class=KeyValueDelete,
        replies=(KeyValueDeleted,),
        destroys=True,
        effect="idempotent",
    ),
)


_WrittenOwner = builtins.list[str | None]
"""An owner as JSON has it."""


def _owner(written: _WrittenOwner) -> Owner:
    principal, user = written
    return principal, user


class Values:
    """The values of one tenant, as the tools' handlers."""

    def __init__(self, log: History, views: ViewStore, redactor: Redactor) -> None:
        self._log, self._views = log, views
        self._redactor = redactor

    async def get(self, payload: KeyValueGet, metadata: HandlerMetadata) -> HandlerResponse:
        async def read(_key: str) -> tuple[str | None, builtins.list[str], builtins.list[_WrittenOwner]]:
            row = await self._views.private_row(VALUES, payload.key)
            content = None if row is None else await self._log.content(row.position)
            if row is None or content is None:
                return None, [], []
            return str(orjson.loads(content[0])), row.authors, [row.owner]

        value, authors, owners = await metadata.effect("get", read, kind="pure")
        return Recorded(KeyValue(payload.key, value), authors=frozenset(authors), owners=frozenset(map(_owner, owners)))

    async def set(self, payload: KeyValueSet, metadata: HandlerMetadata) -> HandlerResponse:
        if self._redactor.holds_live(payload.key):
            message = "A token or key of this server stands in the key; take another name."
            return HandlerResponse.respond(ToolError("invalid_field", message))

        async def look(_key: str) -> dict[str, Any]:
            is_there = await self._views.private_row(VALUES, payload.key) is not None
            page = await self._views.rows(VALUES.name, Query(limit=1))
            return {"replaced": is_there, "has_room": is_there or page.total < MOST_KEYS}

        found = await metadata.effect("look", look, kind="pure")
        if not found["has_room"]:
            message = f"{MOST_KEYS} keys are in use, which is all that there may be; key_value_delete makes room."
            return HandlerResponse.respond(ToolError("invalid_field", message))
        fact = events.ValueSet(payload.key), orjson.dumps(payload.value)
        return Recorded(KeyValueStored(payload.key, found["replaced"]), facts=(fact,))

    async def list(self, payload: KeyValueList, metadata: HandlerMetadata) -> HandlerResponse:
        """The keys of a prefix, a page at a time."""

        async def read(_key: str) -> builtins.list[tuple[str, builtins.list[str], _WrittenOwner]]:
            where = (
                Where("key", ">=", payload.prefix),
                Where("key", "<", payload.prefix + _AFTER_ALL),
                Where("key", ">", payload.after),
            )
            page = await self._views.rows(VALUES.name, Query(where, "key", limit=payload.limit + 1))
            return [(row.key, row.authors, row.owner) for row in rows_of(page, Value)]

        found = await metadata.effect("list", read, kind="pure")
        shown = found[: payload.limit]
        keys = KeyValueKeys([key for key, _, _ in shown], len(found) > payload.limit)
        return Recorded(
            keys,
            authors=frozenset(author for _, authors, _ in shown for author in authors),
            owners=frozenset(_owner(owner) for _, _, owner in shown),
        )

    async def delete(self, payload: KeyValueDelete, metadata: HandlerMetadata) -> HandlerResponse:
        async def look(_key: str) -> bool:
            return await self._views.private_row(VALUES, payload.key) is not None

        is_there = await metadata.effect("look", look, kind="pure")
        facts = ((events.ValueSet(payload.key, deleted=True), None),) if is_there else ()
        return Recorded(KeyValueDeleted(payload.key, is_there), facts=facts)

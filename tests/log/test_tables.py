"""Rows that never change lie without JSON: what is read of them is what was folded, byte for byte."""

from __future__ import annotations

import asyncio

import orjson
from hypothesis import example, given
from hypothesis import strategies as st

from organism.log.sqlite import SqliteLog
from organism.model.times import iso
from tests.log.engines import MESSAGES, sent, unit

YEAR_9999_US = 253_402_300_799_999_999
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
ODD = "\\\"'/ü\u2028\U0001f600\x7f\x80"


@given(names, names, st.none() | names, st.integers(0, YEAR_9999_US))
@example("".join(map(chr, range(0x80))), ODD, None, 0)
def test_a_row_composed_by_sqlite_is_that_composed_in_memory(key: str, to: str, thread: str | None, at: int) -> None:
    async def composed() -> bytes | None:
        log = await SqliteLog.in_memory([MESSAGES])
        await log.commit(unit(thread, sent(key, "hi", to), at=at))
        return await log.views.row("messages", key)

    row = {"id": key, "thread": thread, "to": to, "position": 1, "sent_at": iso(at), "payload": {"text": "hi"}}
    assert asyncio.run(composed()) == orjson.dumps(row)

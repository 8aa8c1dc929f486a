"""What is answered when content in the log's file is not as it was written (G11)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from organism.log.driver import Pysqlite
from tests.server.served import Served, served

DAMAGES = {
    "emptied": "UPDATE content SET salt = x'', json = x'', xml = x''",
    "no JSON": "UPDATE content SET json = x'ff'",
    "of another owner": "UPDATE content SET owner = 'other'",
    "missing": "DELETE FROM content",
}


@pytest.fixture
async def on_disk(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(data=tmp_path / "data") as server:
        yield server


@pytest.mark.parametrize("damage", DAMAGES)
async def test_damaged_content_is_answered_by_a_code_of_its_own_wherever_it_would_be_shown(
    on_disk: Served, tmp_path: Path, damage: str
) -> None:
    answer = await on_disk.inject("greeter", {"name": "Dan"})
    message = answer["message_id"]
    with closing(Pysqlite().connect(str(tmp_path / "data" / "tenants" / "default" / "log.sqlite"))) as database:
        database.execute(DAMAGES[damage])
    position = (await on_disk.call("GET", "/log?type=message_sent")).json()["events"][0]["position"]
    for path in (
        f"/messages/{message}",
        f"/messages/{message}?xml=true",
        "/messages",
        "/messages?xml=true",
        f"/threads/{answer['thread_id']}/messages",
        f"/messages?at={position}",
        "/log?content=true",
    ):
        refused = await on_disk.call("GET", path)
        assert (path, refused.status_code, refused.json()["error"]["code"]) == (path, 500, "content_damaged")
        assert "content at position" in refused.json()["error"]["message"]

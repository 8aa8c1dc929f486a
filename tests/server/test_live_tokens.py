"""config/tokens.yaml while the server runs: an edit acts within a second, on open sockets too (S1)."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import structlog
from websockets.exceptions import ConnectionClosed

from organism import bootstrap
from organism.errors import ConfigInvalid, LogDamaged
from organism.server.http.live_tokens import AGAIN_SECONDS, Changes
from organism.tenants import Tenant
from tests.server.served import Frames, Served, served
from tests.server.tenanted import Wanted, bearer, digest, hello_with, write_tokens

READER: Wanted = {"acme": {"ci": ["read"], "web": ["read"]}}


@asynccontextmanager
async def open_socket(server: Served, headers: Mapping[str, str]) -> AsyncIterator[Frames]:
    """A socket that has said how everything stands."""
    async with server.socket(headers=headers) as socket:
        frames = Frames(socket)
        await frames.until("connected")
        yield frames


async def closed(frames: Frames) -> int | None:
    """The code that the server closes with."""
    try:
        while True:
            await frames.next()
    except ConnectionClosed as end:
        return end.rcvd.code if end.rcvd else None


async def status(server: Served, tenant: str, name: str) -> int:
    """Whether a token is taken."""
    return (await server.call("GET", "/organism", headers=bearer(tenant, name))).status_code


async def until_status(server: Served, tenant: str, name: str, wanted: int) -> None:
    """Ask until the answer is as wanted."""
    async with asyncio.timeout(10):
        while await status(server, tenant, name) != wanted:
            pass


async def until_logged(server: Served, logs: Sequence[Mapping[str, Any]], event: str) -> Mapping[str, Any]:
    """Ask for anything until the server has logged such a line."""
    async with asyncio.timeout(10):
        while not (entries := [line for line in logs if line["event"] == event]):
            await server.call("GET", "/organism")
    return entries[0]


@pytest.mark.parametrize("left", [{}, {"ci": {"scopes": ["read"], "sha256": "ab" * 32}}])
async def test_a_revoked_token_is_refused_and_its_sockets_are_closed_within_a_second(
    tmp_path: Path, left: Mapping[str, Any]
) -> None:
    async with (
        served(hello_with(tmp_path, READER)) as server,
        open_socket(server, bearer("acme", "ci")) as revoked,
        open_socket(server, bearer("acme", "web")) as other,
    ):
        write_tokens(tmp_path, {"acme": {"web": ["read"], **left}})
        begun = time.monotonic()
        assert await closed(revoked) == 4401
        assert time.monotonic() - begun < 1
        assert await status(server, "acme", "ci") == 401
        assert (await other.ask("ping"))["event"] == "ok"


async def test_what_was_taken_away_is_said_in_the_log(tmp_path: Path) -> None:
    async with served(hello_with(tmp_path, READER)) as server, open_socket(server, bearer("acme", "ci")) as frames:
        with structlog.testing.capture_logs() as logs:
            (tmp_path / "config" / "tokens.yaml").unlink()
            assert await closed(frames) == 4401
            log = await until_logged(server, logs, "tokens_revoked")
        assert log["log_level"] == "warning"
        assert "tokens.yaml is gone" in log["reason"]
        assert (await server.call("GET", "/organism")).status_code == 200


async def test_a_token_that_expires_ends_its_sockets_within_a_second(tmp_path: Path) -> None:
    end = datetime.now(UTC) + timedelta(seconds=2)
    entry = {"scopes": ["read"], "expires": end.isoformat()}
    async with (
        served(hello_with(tmp_path, {"acme": {"soon": entry}})) as server,
        open_socket(server, bearer("acme", "soon")) as frames,
    ):
        assert await closed(frames) == 4401
        assert timedelta() <= datetime.now(UTC) - end < timedelta(seconds=1)
        assert await status(server, "acme", "soon") == 401


async def test_a_scope_that_is_taken_away_is_gone_on_open_sockets_too(tmp_path: Path) -> None:
    before: Wanted = {"acme": {"ci": ["read", "control"]}}
    async with served(hello_with(tmp_path, before)) as server, open_socket(server, bearer("acme", "ci")) as frames:
        assert (await frames.ask("pause", agent="greeter"))["event"] == "ok"
        write_tokens(tmp_path, {"acme": {"ci": ["read"]}})
        async with asyncio.timeout(10):
            while (await frames.ask("resume", agent="greeter")).get("code") != "forbidden":
                pass
        write_tokens(tmp_path, {"acme": {"ci": ["inject"]}})
        assert await closed(frames) == 4403


BAD = [("tenants: [", "tokens.yaml:"), ("tenants: [{id: acme, tokens: [{name: ci}]}]", "tokens.yaml:"),
       ("", "tokens.yaml:"), (None, "cannot be read")]  # fmt: skip


@pytest.mark.parametrize(("text", "fault"), BAD)
async def test_a_bad_edit_keeps_the_last_good_tokens_and_is_logged(
    tmp_path: Path, text: str | None, fault: str
) -> None:
    path = tmp_path / "config" / "tokens.yaml"
    async with served(hello_with(tmp_path, READER)) as server:
        with structlog.testing.capture_logs() as logs:
            if text is None:
                path.unlink()
                path.mkdir()
            else:
                path.write_text(text)
            log = await until_logged(server, logs, "tokens_not_taken")
        assert fault in log["faults"][0]
        assert await status(server, "acme", "ci") == 200
        if text is None:
            path.rmdir()
        write_tokens(tmp_path, {"acme": {"web": ["read"]}})
        await until_status(server, "acme", "ci", 401)


async def test_an_edit_of_the_same_size_and_time_is_seen_too(tmp_path: Path) -> None:
    path = tmp_path / "config" / "tokens.yaml"
    async with served(hello_with(tmp_path, READER)) as server:
        write_tokens(tmp_path, {"acme": {"ci": ["read"]}})
        await until_status(server, "acme", "web", 401)
        before = path.stat()
        path.write_text(path.read_text().replace('"ci"', '"cj"').replace(digest("acme", "ci"), "ab" * 32))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert path.stat().st_size == before.st_size
        await until_status(server, "acme", "ci", 401)


async def test_tokens_end_while_something_else_takes_its_time(tmp_path: Path) -> None:
    async with served(hello_with(tmp_path, READER)) as server, open_socket(server, bearer("acme", "ci")) as frames:
        async with server.organism._changing:  # noqa: SLF001 - as a reload holds it for as long as its servers take
            write_tokens(tmp_path, {"acme": {"web": ["read"]}, "globex": {"new": ["read"]}})
            assert await closed(frames) == 4401
            write_tokens(tmp_path, {"globex": {"new": ["read"]}})
            await until_status(server, "acme", "web", 401)
            assert await status(server, "globex", "new") == 401
        await until_status(server, "globex", "new", 200)


async def test_a_tenant_whose_log_does_not_open_keeps_out_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(hello_with(tmp_path, READER)) as server:
        opened = server.organism._opened  # noqa: SLF001 - to let one fail

        async def opening(tenant_id: str) -> Tenant:
            if tenant_id == "broken":
                raise LogDamaged("position 3: the unit was changed")
            return await opened(tenant_id)

        monkeypatch.setattr(server.organism, "_opened", opening)
        with structlog.testing.capture_logs() as logs:
            write_tokens(tmp_path, {**READER, "broken": {"ci": ["read"]}, "globex": {"ci": ["read"]}})
            await until_status(server, "globex", "ci", 200)
        assert [line["tenant"] for line in logs if line["event"] == "tenant_not_opened"] == ["broken"]
        assert "broken" not in server.organism.tenants


ONE, TWO = (1, 1, 1, 1), (2, 2, 2, 2)


@pytest.mark.parametrize(
    ("looks", "due"),
    [
        ([ONE, ONE, ONE, TWO, TWO, TWO], [False, True, False] * 2),
        ([ONE, ONE, None, ONE, None, ONE, None, ONE, None, None], [False, True, *[False] * 7, True]),
        ([(at, at, at, at) for at in range(9)], [False, False, True] * 3),
    ],
    ids=["once it stays the same", "gone for good, not for a moment", "never the same"],
)
def test_a_change_is_due_once_it_has_stayed_the_same_for_a_look(looks: list[Any], due: list[bool]) -> None:
    changes = Changes()
    assert [changes.is_due(seen, 0) for seen in looks] == due


def test_what_failed_is_due_again_later_or_when_it_has_changed() -> None:
    changes = Changes()
    assert [changes.is_due(ONE, 0), changes.is_due(ONE, 0)] == [False, True]
    changes.failed(0)
    assert [changes.is_due(ONE, 1), changes.is_due(ONE, AGAIN_SECONDS)] == [False, True]
    assert not changes.is_due(ONE, 1000)
    changes.failed(1000)
    assert [changes.is_due(TWO, 1001), changes.is_due(TWO, 1001)] == [False, True]


async def test_a_request_whose_body_outlasts_its_token_is_not_done(tmp_path: Path) -> None:
    async with served(hello_with(tmp_path, {"acme": {"ci": ["read", "inject"]}})) as server:

        async def slowly() -> AsyncIterator[bytes]:
            yield b'{"to":"greeter",'
            (tmp_path / "config" / "tokens.yaml").unlink()
            async with asyncio.timeout(10):
                while server.organism.entries:
                    await server.call("GET", "//healthz")
            yield b'"payload":{"name":"Dan"}}'

        headers = {**bearer("acme", "ci"), "Content-Type": "application/json"}
        answer = await server.client.post(f"{server.url}/api/v1/inject", content=slowly(), headers=headers)
        assert answer.status_code == 401
        assert server.organism.tenants["acme"].pump.state.folded.threads == {}


async def test_a_bad_file_is_refused_at_the_start_with_every_fault(tmp_path: Path) -> None:
    config = hello_with(tmp_path, {"a b": {}, "acme": {"ci": ["raed"]}})
    with pytest.raises(ConfigInvalid) as refused:
        await bootstrap.start(config, None)
    assert len(refused.value.details) == 2

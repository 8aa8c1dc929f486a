"""The log names who asked: the principal of the token, for what came by REST and by the socket (S5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.served import Frames, served
from tests.server.tenanted import bearer, hello_with


@pytest.mark.parametrize(("who", "name"), [(bearer("default", "clerk"), "clerk"), ({}, "operator")])
async def test_what_a_token_injects_names_its_holder(tmp_path: Path, who: dict[str, str], name: str) -> None:
    config = hello_with(tmp_path, {"default": {"clerk": ["inject", "read"]}})
    async with served(config, tmp_path / "data") as server:
        body = {"to": "greeter", "payload": {"name": "Dan"}, "wait": 10}
        assert (await server.call("POST", "/inject", json=body, headers=who)).status_code == 200
        log = await server.get("/log?type=message_sent")
    assert log["events"][0]["actor"]["principal"] == name
    assert log["events"][1]["actor"] is None


async def test_what_comes_by_the_socket_names_its_holder_too(tmp_path: Path) -> None:
    async with served(hello_with(tmp_path, {}), tmp_path / "data") as server:
        async with server.socket() as socket:
            await Frames(socket).ask("inject", to="greeter", payload={"name": "Dan"})
        log = await server.get("/log?type=message_sent")
    assert log["events"][0]["actor"]["principal"] == "operator"

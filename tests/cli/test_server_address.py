"""Which server a verb asks, and with which token."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import orjson
import pytest
import typer

from organism.cli.client import find_server
from organism.cli.options import Remote
from organism.server.runner import announced

LOCAL = "http://127.0.0.1:1234"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """What a running server leaves in its data directory."""
    (tmp_path / "server.json").write_bytes(orjson.dumps({"url": LOCAL, "pid": 1, "certificate": None}))
    (tmp_path / "token").write_text("org_kept\n")
    return tmp_path


def test_options_come_before_the_data_directory(data: Path) -> None:
    found = find_server(Remote(data=data, url="http://127.0.0.1:9/", token="org_given"))
    assert (found.url, found.token) == ("http://127.0.0.1:9", "org_given")


def test_the_local_server_is_found_with_its_token(data: Path) -> None:
    found = find_server(Remote(data=data))
    assert (found.url, found.headers) == (LOCAL, {"Authorization": "Bearer org_kept"})


def test_the_default_address_is_used_without_a_server(tmp_path: Path) -> None:
    found = find_server(Remote(data=tmp_path))
    assert (found.url, found.headers) == ("http://127.0.0.1:8080", {})


@pytest.mark.parametrize(
    ("url", "token"),
    [
        ("http://localhost:8080", "org_kept"),
        ("http://127.0.0.2:8080", "org_kept"),
        ("http://[::1]:8080", "org_kept"),
        ("https://organism.example.org", ""),
        ("http://192.0.2.1:8080", ""),
        ("http://localhost.example.org", ""),
    ],
)
def test_the_directorys_token_never_leaves_this_machine(data: Path, url: str, token: str) -> None:
    assert find_server(Remote(data=data, url=url)).token == token


def test_the_directorys_token_goes_to_the_local_server_at_any_address(data: Path) -> None:
    (data / "server.json").write_bytes(orjson.dumps({"url": "https://192.0.2.1:8080", "pid": 1}))
    assert find_server(Remote(data=data)).token == "org_kept"


@pytest.mark.parametrize(
    "given",
    [
        {"url": "127.0.0.1:8080"},
        {"url": "ftp://127.0.0.1"},
        {"url": "http://"},
        {"url": "http://host:port"},
        {"token": "ü"},
        {"token": "a\nb"},
    ],
)
def test_an_invalid_address_or_token_is_wrong_usage(data: Path, given: dict[str, Any]) -> None:
    with pytest.raises(typer.BadParameter):
        find_server(Remote(data=data, **given))


@pytest.mark.parametrize("said", [b"", b"[]", b"{", b'{"url": 5}', b"\xff"])
def test_an_unreadable_notice_is_ignored(data: Path, said: bytes) -> None:
    (data / "server.json").write_bytes(said)
    assert find_server(Remote(data=data)).url == "http://127.0.0.1:8080"


def test_a_server_that_stops_leaves_the_notice_of_a_newer_one(tmp_path: Path) -> None:
    with ExitStack() as newer:
        with announced(tmp_path, LOCAL):
            newer.enter_context(announced(tmp_path, "http://127.0.0.1:4321"))
        assert find_server(Remote(data=tmp_path, token="org_given")).url == "http://127.0.0.1:4321"
    assert not (tmp_path / "server.json").exists()

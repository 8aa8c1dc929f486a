"""Which server a verb asks, and with which token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
import typer

from organism.cli.client import find_server
from organism.cli.options import Remote

LOCAL = "http://127.0.0.1:1234"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """What a running server leaves in its data directory."""
    (tmp_path / "server.json").write_bytes(orjson.dumps({"url": LOCAL, "pid": 1, "certificate": None}))
    (tmp_path / "token").write_text("org_kept\n")
    return tmp_path


def test_what_is_given_comes_before_what_the_directory_knows(data: Path) -> None:
    found = find_server(Remote(data=data, url="http://127.0.0.1:9/", token="org_given"))
    assert (found.url, found.token) == ("http://127.0.0.1:9", "org_given")


def test_the_local_server_is_found_with_its_token(data: Path) -> None:
    found = find_server(Remote(data=data))
    assert (found.url, found.headers) == (LOCAL, {"Authorization": "Bearer org_kept"})


def test_without_any_server_the_usual_address_is_asked(tmp_path: Path) -> None:
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
def test_the_kept_token_leaves_this_machine_never(data: Path, url: str, token: str) -> None:
    assert find_server(Remote(data=data, url=url)).token == token


def test_the_kept_token_goes_to_the_local_server_on_any_address_of_its_own(data: Path) -> None:
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
def test_what_cannot_be_an_address_or_a_token_is_wrong_usage(data: Path, given: dict[str, Any]) -> None:
    with pytest.raises(typer.BadParameter):
        find_server(Remote(data=data, **given))


@pytest.mark.parametrize("said", [b"", b"[]", b"{", b'{"url": 5}', b"\xff"])
def test_a_notice_that_cannot_be_read_is_none(data: Path, said: bytes) -> None:
    (data / "server.json").write_bytes(said)
    assert find_server(Remote(data=data)).url == "http://127.0.0.1:8080"

"""Names and origins: rebinding and cross-site pages are turned away."""

from __future__ import annotations

import pytest

from organism.errors import Forbidden
from organism.server.headers import Hosts

HOSTS = Hosts(["work.example"])


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8080", "[::1]:8080", "LOCALHOST:1", "work.example:443"])
def test_loopback_and_allowed_names_are_served(host: str) -> None:
    HOSTS.check_host({b"host": host.encode()})


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "localhost.evil.example",
        "localhost@evil.example",
        "127.0.0.1/x",
        "localhost:99999",
        "a b",
        "[::1",
        "\xff",
    ],
)
def test_any_other_name_is_turned_away(host: str) -> None:
    with pytest.raises(Forbidden):
        HOSTS.check_host({b"host": host.encode("latin-1")})


def test_a_program_sends_no_origin() -> None:
    HOSTS.check_origin({b"host": b"localhost:8080"})


def test_the_servers_own_page_may_open_the_socket() -> None:
    HOSTS.check_origin({b"host": b"localhost:8080", b"origin": b"http://localhost:8080"})


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "http://localhost:3000",
        "http://localhost",
        "null",
        "",
        "file://",
        "http://localhost:8080.evil.example",
    ],
)
def test_another_page_may_not(origin: str) -> None:
    with pytest.raises(Forbidden):
        HOSTS.check_origin({b"host": b"localhost:8080", b"origin": origin.encode()})

"""The section ``tools``: what the shipped tools may reach."""

from __future__ import annotations

import pytest

from organism.config.host_rules import host_rule
from organism.config.shown import live_secrets, shown_settings
from organism.config.tools import HttpFetchTerms, McpServer, Wikipedia
from tests.config.place import GREETER, HEAD, Place


def test_http_fetch_is_off_and_wikipedia_is_the_english_one_until_it_is_said(place: Place) -> None:
    tools = place.load().tools
    assert tools.http_fetch is None
    assert tools.wikipedia == Wikipedia("https://en.wikipedia.org", 10.0)


def test_servers_of_tools_are_taken_with_their_defaults(place: Place) -> None:
    place.yaml(
        """\
tools:
  mcp:
    files: {command: [python, server.py], env: {A: b}, inherit: [HOME_OF_FILES], tools: [read], timeout_s: 5}
    far: {url: "https://tools.example/mcp", token_env: FAR_TOKEN}
"""
        + HEAD
        + GREETER
    )
    assert place.load().tools.mcp == {
        "files": McpServer(("python", "server.py"), {"A": "b"}, ("HOME_OF_FILES",), "", "", ("read",), 5),
        "far": McpServer((), {}, (), "https://tools.example/mcp", "FAR_TOKEN", (), 60),
    }


def test_of_servers_neither_variables_nor_arguments_are_shown(place: Place) -> None:
    place.yaml(
        """\
tools:
  mcp:
    files: {command: [run, --key=canary-1], env: {A: canary-2}, inherit: [PLAIN]}
    far: {url: "https://tools.example/mcp", token_env: FAR}
"""
        + HEAD
        + GREETER
    )
    settings = place.load()
    assert shown_settings(settings)["tools"]["mcp"] == {
        "files": {"command": ["run"], "inherit": ["PLAIN"], "timeout_s": 60.0},
        "far": {"url": "https://tools.example/mcp", "token_env": "FAR", "timeout_s": 60.0},
    }
    assert live_secrets(settings, {"FAR": "canary-3", "OTHER": "x"}) == {"canary-3"}


def test_every_key_of_the_section_is_taken(place: Place) -> None:
    place.yaml(
        """\
tools:
  http_fetch: {hosts: [example.org, "*.example.net:8443"], timeout_s: 5, max_bytes: 10, max_redirects: 0}
  wikipedia: {base_url: "https://de.wikipedia.org", timeout_s: 2.5}
"""
        + HEAD
        + GREETER
    )
    tools = place.load().tools
    assert tools.http_fetch == HttpFetchTerms(("example.org", "*.example.net:8443"), 5, 10, 0)
    assert tools.wikipedia == Wikipedia("https://de.wikipedia.org", 2.5)


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("http_fech: {}", "http_fech", "unknown key `http_fech`; did you mean `http_fetch`?"),
        ("calculator: {}", "calculator", "unknown key `calculator`; known here: http_fetch, mcp, wikipedia"),
        ("http_fetch: {}", "http_fetch.hosts", "`hosts` is missing"),
        ("http_fetch: {hosts: []}", "http_fetch.hosts", "expected at least one host; leave"),
        ("http_fetch: {hosts: [5]}", "http_fetch.hosts[0]", "expected text, came 5"),
        ("http_fetch: {hosts: [a.example], timeout_s: 121}", "http_fetch.timeout_s", "expected at most 120"),
        ("http_fetch: {hosts: [a.example], max_redirects: 11}", "http_fetch.max_redirects", "expected at most 10"),
        ("http_fetch: {hosts: [a.example], private: true}", "http_fetch.private", "unknown key `private`"),
        ("http_fetch: {hosts: ['https://a.example']}", "http_fetch.hosts[0]", "expected a host such as `example.org`"),
        ("http_fetch: {hosts: [a.example, '*']}", "http_fetch.hosts[1]", "expected a host such as `example.org`"),
        ("http_fetch: {hosts: ['127.0.0.1']}", "http_fetch.hosts[0]", "this address is not public"),
        ("wikipedia: {base_url: 'ftp://x'}", "wikipedia.base_url", "expected an address such as"),
        ("wikipedia: {base_url: 'https://u:p@x'}", "wikipedia.base_url", "expected an address such as"),
        ("mcp: []", "mcp", "expected a mapping, came a list"),
        ("mcp: {files: x}", "mcp.files", 'expected a mapping, came "x" (text)'),
        ("mcp: {Files: {command: [x]}}", "mcp.Files", "expected a name: a small letter, then small letters"),
        ("mcp: {a__b: {command: [x]}}", "mcp.a__b", "expected a name"),
        ("mcp: {files: {}}", "mcp.files.command", "a server has a `command`, such as [python, server.py], or a `url`"),
        ("mcp: {files: {command: []}}", "mcp.files.command", "expected at least the program"),
        ("mcp: {files: {command: run}}", "mcp.files.command", 'expected a list, came "run" (text)'),
        ("mcp: {f: {command: [x], url: 'http://x'}}", "mcp.f.url", "a server has a `command` or a `url`, not both"),
        ("mcp: {f: {url: 'http://x', env: {A: b}}}", "mcp.f.env", "a server with a `url` is not run here"),
        ("mcp: {f: {command: [x], token_env: T}}", "mcp.f.token_env", "a server that is run here takes no token"),
        ("mcp: {f: {url: 'http://x', token_env: 'my key'}}", "mcp.f.token_env", "expected the name of an environment"),
        ("mcp: {f: {url: 'http://u:p@x'}}", "mcp.f.url", "expected an address such as `https://tools.example/mcp`"),
        ("mcp: {f: {url: 'http://x', timeout: 5}}", "mcp.f.timeout", "unknown key `timeout`; did you mean"),
        ("wikipedia: {lang: de}", "wikipedia.lang", "unknown key `lang`; known here: base_url, timeout_s"),
    ],
)
def test_what_is_wrong_with_it_is_reported_at_its_key(place: Place, text: str, where: str, message: str) -> None:
    ((pointer, what),) = place.faults(f"tools: {{{text}}}\n{HEAD}{GREETER}").items()
    assert pointer == f"1:tools.{where}"
    assert what.startswith(message)


@pytest.mark.parametrize(
    ("line", "allowed", "refused"),
    [
        ("example.org", ("https", "example.org", 443), ("https", "www.example.org", 443)),
        ("example.org", ("http", "example.org", 80), ("http", "example.org", 443)),
        ("Example.ORG.", ("https", "example.org", 443), ("https", "example.org.evil.example", 443)),
        ("example.org:8443", ("https", "example.org", 8443), ("https", "example.org", 443)),
        ("*.example.org", ("https", "a.b.example.org", 443), ("https", "example.org", 443)),
        ("*.example.org", ("https", "a.example.org", 443), ("https", "evilexample.org", 443)),
        ("8.8.8.8", ("https", "8.8.8.8", 443), ("https", "8.8.4.4", 443)),
        ("[2606:4700:0:0::1111]", ("https", "[2606:4700::1111]", 443), ("https", "[2606:4700::1112]", 443)),
    ],
)
def test_a_line_allows_what_it_names_on_the_usual_port(
    line: str, allowed: tuple[str, str, int], refused: tuple[str, str, int]
) -> None:
    rule = host_rule(line)
    assert rule.allows(*allowed)
    assert not rule.allows(*refused)


@pytest.mark.parametrize(
    "line",
    [
        "", "*", "*.", "*.*.example.org", "a*.example.org", "example.org/path", "user@example.org", "example.org:0",
        "example.org:65536", "example.org:http", "ex ample.org", "exämple.org", "-a.example", "a..example",
        ".example", "2130706433", "0x7f.0.0.1", "127.1", "0177.0.0.1", "1.2.3.256", "1.2.3.04", "*.8.8.8.8",
        "10.0.0.1", "[::1]", "[::ffff:8.8.8.8]", "[fe80::1%25eth0]", "::1", "a" * 254,
    ],
)  # fmt: skip
def test_what_is_no_public_host_is_no_line(line: str) -> None:
    with pytest.raises(ValueError, match=r"expected a host|expected a port|not public"):
        host_rule(line)

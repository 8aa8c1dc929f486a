"""http_fetch: it asks listed public hosts, by the very address that was judged, and nothing makes it ask another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from organism.config.tools import HttpFetchTerms, Tools
from organism.model.tool import ToolError
from organism.tools.http_fetch import Fetched, Fetcher, HttpFetch, tool
from tests.tools.certificates import certificate
from tests.tools.outside import PUBLIC, PlayedNet, Steps, answer, lines_of, path_of, served

HOSTS = ("a.example", "b.example", "*.c.example", "8.8.8.8", "[2606:4700::1]", "odd.example:8080")
NAMES = {
    "a.example": [[PUBLIC]],
    "b.example": [["1.1.1.1"]],
    "x.c.example": [["2606:4700:4700::1111"]],
    "odd.example": [[PUBLIC]],
}


async def fetched(net: PlayedNet, url: str, **terms: Any) -> Fetched | ToolError:
    """What the tool answers."""
    fetcher = Fetcher(HttpFetchTerms(HOSTS, **terms), net)
    found = (await fetcher.fetch(HttpFetch(url), cast("Any", Steps()))).payload
    assert isinstance(found, Fetched | ToolError)
    return found


async def page(net: PlayedNet, url: str = "http://a.example/", **terms: Any) -> Fetched:
    """The page that is fetched."""
    found = await fetched(net, url, **terms)
    assert isinstance(found, Fetched)
    return found


async def page_of(said: bytes, **terms: Any) -> Fetched:
    """The page that is made of an answer."""
    async with served(lambda _: said) as server:
        return await page(net_of(server.port), **terms)


async def refusal(net: PlayedNet, url: str = "http://a.example/", **terms: Any) -> ToolError:
    """Why nothing is fetched."""
    found = await fetched(net, url, **terms)
    assert isinstance(found, ToolError)
    return found


def net_of(port: int, **names: list[list[str]]) -> PlayedNet:
    """A network whose every way leads to the server at ``port``; ``names`` lead elsewhere than usual."""
    return PlayedNet(names={**{k: [list(a) for a in v] for k, v in NAMES.items()}, **names}, port=port)


PRIVATE = (
    "127.0.0.1",
    "10.0.0.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",  # noqa: S104 - nothing is bound to it
    "224.0.0.1",
    "::1",
    "::ffff:127.0.0.1",
    "64:ff9b::a00:1",
    "2002:a00:1::1",
    "fe80::1%eth0",
    "fc00::1",
    "not an address",
)


def by_path(pages: dict[str, bytes]) -> Callable[[str], bytes]:
    return lambda head: pages.get(path_of(head), answer(b"none", "404 Not Found"))


async def test_a_page_of_a_listed_host_is_fetched_from_the_address_that_was_judged() -> None:
    async with served(lambda _: answer(b"<p>Hello</p>", kind="text/html; charset=utf-8")) as server:
        net = net_of(server.port)
        found = await fetched(net, "http://A.example:80/p?q=1#f")
        assert found == Fetched("http://a.example/p?q=1", 200, "text/html; charset=utf-8", "<p>Hello</p>")
        assert (net.looked_up, net.connected) == (["a.example"], [(PUBLIC, 80)])
        assert path_of(server.heads[0]) == "/p?q=1"
        headers = lines_of(server.heads[0])
        assert headers == {
            "host": "a.example",
            "user-agent": "organism",
            "accept": headers["accept"],
            "accept-encoding": "identity",
        }


@pytest.mark.parametrize(
    ("url", "address"), [("http://8.8.8.8/", "8.8.8.8"), ("http://[2606:4700::1]/", "2606:4700::1")]
)
async def test_an_address_that_is_listed_is_connected_to_without_a_look_up(url: str, address: str) -> None:
    async with served(lambda _: answer(b"x")) as server:
        net = net_of(server.port)
        await page(net, url)
        assert (net.looked_up, net.connected) == ([], [(address, 80)])


@pytest.mark.parametrize(
    "url", ["http://evil.example/", "http://127.0.0.1/", "http://[::1]/", "http://a.example:81/", "http://c.example/"]
)
async def test_what_is_not_listed_is_not_even_looked_up(url: str) -> None:
    net = net_of(0)
    found = await refusal(net, url)
    assert found.code == "forbidden"
    assert found.message.endswith("is not among the hosts that may be asked: " + ", ".join(HOSTS) + ".")
    assert (net.looked_up, net.connected) == ([], [])


@pytest.mark.parametrize("url", ["ftp://a.example/", "http://u@a.example/", "http://a.example\\@b/", "a.example"])
async def test_a_url_that_cannot_be_asked_is_reported_as_such(url: str) -> None:
    found = await refusal(net_of(0), url)
    assert found.code == "invalid_field"
    assert found.message.startswith("The URL cannot be asked: ")


@pytest.mark.parametrize("address", PRIVATE)
async def test_a_listed_name_that_leads_to_an_inner_network_is_not_asked(address: str) -> None:
    net = net_of(0, **{"a.example": [[address]]})
    assert await fetched(net, "http://a.example/") == ToolError(
        "forbidden", "a.example leads to an address that is not public."
    )
    assert net.connected == []


@pytest.mark.parametrize("addresses", [[PUBLIC, "127.0.0.1"], ["10.0.0.1", PUBLIC], [PUBLIC, "1.1.1.1", "::1"], []])
async def test_one_address_that_is_not_public_among_others_is_enough(addresses: list[str]) -> None:
    net = net_of(0, **{"a.example": [addresses]})
    found = await refusal(net)
    assert found.code == "forbidden"
    assert net.connected == []


async def test_a_name_that_leads_elsewhere_the_second_time_is_not_asked_a_second_time() -> None:
    async with served(lambda _: answer(b"x")) as server:
        net = net_of(server.port, **{"a.example": [[PUBLIC], ["127.0.0.1"]]})
        await page(net)
        assert (net.looked_up, net.connected) == (["a.example"], [(PUBLIC, 80)])


async def test_a_name_without_an_address_is_reported() -> None:
    found = await fetched(net_of(0), "http://y.c.example/")
    assert found == ToolError("upstream_error", "y.c.example has no address.")


async def test_the_next_address_is_tried_where_one_does_not_answer() -> None:
    async with served(lambda _: answer(b"x")) as server:
        net = PlayedNet(names={"a.example": [["1.1.1.1", "8.8.8.8"]]}, port=server.port, silent=frozenset({"1.1.1.1"}))
        await page(net)
        assert [address for address, _ in net.connected] == ["1.1.1.1", "8.8.8.8"]
        assert net.looked_up == ["a.example"]


# ── redirects ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
async def test_a_redirect_is_followed_and_judged_like_the_first(status: str) -> None:
    pages = {"/": answer(b"", status, location="http://b.example/there"), "/there": answer(b"found")}
    async with served(by_path(pages)) as server:
        net = net_of(server.port)
        found = await page(net)
        assert (found.url, found.text) == ("http://b.example/there", "found")
        assert net.looked_up == ["a.example", "b.example"]
        assert net.connected == [(PUBLIC, 80), ("1.1.1.1", 80)]
        assert [lines_of(head)["host"] for head in server.heads] == ["a.example", "b.example"]


@pytest.mark.parametrize(
    ("location", "code"),
    [
        ("http://evil.example/", "forbidden"),
        ("http://127.0.0.1/", "forbidden"),
        ("http://169.254.169.254/latest/meta-data/", "forbidden"),
        ("http://[::ffff:169.254.169.254]/", "forbidden"),
        ("http://a.example:22/", "forbidden"),
        ("http://inner.c.example/", "forbidden"),
        ("http://2130706433/", "invalid_field"),
        ("http://a.example@10.0.0.1/", "invalid_field"),
        ("http://10.0.0.1\\@a.example/", "invalid_field"),
        ("file:///etc/passwd", "invalid_field"),
    ],
)
async def test_a_redirect_to_a_place_that_may_not_be_asked_ends_there(location: str, code: str) -> None:
    async with served(by_path({"/": answer(b"", "302 Found", location=location)})) as server:
        net = net_of(server.port, **{"inner.c.example": [["10.0.0.1"]]})
        found = await refusal(net)
        assert found.code == code
        assert net.connected == [(PUBLIC, 80)]


async def test_a_name_that_is_rebound_between_two_redirects_is_judged_again() -> None:
    async with served(by_path({"/": answer(b"", "302 Found", location="/again")})) as server:
        net = net_of(server.port, **{"a.example": [[PUBLIC], ["127.0.0.1"]]})
        found = await fetched(net, "http://a.example/")
        assert found == ToolError("forbidden", "a.example leads to an address that is not public.")
        assert net.connected == [(PUBLIC, 80)]


async def test_there_are_no_more_redirects_than_the_terms_allow() -> None:
    pages = {f"/{step}": answer(b"", "302 Found", location=f"/{step + 1}") for step in range(9)}
    async with served(by_path(pages)) as server:
        net = net_of(server.port)
        many = ToolError("upstream_error", "There were more than 2 redirects.")
        assert await fetched(net, "http://a.example/0", max_redirects=2) == many
        assert len(server.heads) == 3
        await page(net, "http://a.example/5", max_redirects=5)


# ── what comes back ──────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_error_of_the_host_is_an_answer_with_its_status() -> None:
    found = await page_of(answer(b"gone", "410 Gone"))
    assert (found.status, found.text) == (410, "gone")


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        ("text/plain", "ä".encode(), "ä"),
        ("text/plain; charset=iso-8859-1", "ä".encode("latin-1"), "ä"),
        ('text/html; charset="windows-1252"', "€".encode("cp1252"), "€"),
        ("text/plain; charset=utf-16", "ä".encode("utf-16"), "ä"),
        ("text/plain; charset=zip", b"\xff", "\ufffd"),
        ("text/plain; charset=unicode_escape", b"\\u0041", "\\u0041"),
        ("text/plain", b"\xef\xbb\xbfbom", "bom"),
        ("text/plain", b"a\x00\x07\x1bb\xff", "a\ufffd\ufffd\ufffdb\ufffd"),
        ("application/json", b'{"a":1}', '{"a":1}'),
        ("application/xhtml+xml", b"<p/>", "<p/>"),
        ("", b"plain", "plain"),
    ],
)
async def test_text_is_decoded_by_its_charset_and_what_nobody_can_carry_is_replaced(
    kind: str, body: bytes, text: str
) -> None:
    found = await page_of(answer(body, kind=kind))
    assert (found.text, found.truncated) == (text, False)


@pytest.mark.parametrize(("kind", "body"), [("image/png", b"\x89PNG"), ("application/pdf", b"%PDF"), ("", b"\0\1")])
async def test_what_is_no_text_is_not_told(kind: str, body: bytes) -> None:
    async with served(lambda _: answer(body, kind=kind)) as server:
        found = await refusal(net_of(server.port), "http://a.example/p")
        assert found.message == f"http://a.example/p is no text: it is {kind or 'of no type'}."


async def test_an_answer_that_never_ends_is_cut_too() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n"
    found = await page_of(head + b"3e8\r\n" + b"y" * 1000 + b"\r\n", max_bytes=10)
    assert (found.text, found.truncated) == ("y" * 10, True)


@pytest.mark.parametrize("sign", ["x", "<", "&", "ä", "\n", '"'])
async def test_what_is_reported_of_a_text_fits_into_a_message_whatever_it_is_made_of(sign: str) -> None:
    found = await page_of(answer((sign * 300_000).encode()))
    assert found.truncated
    assert 10_000 < len(found.text) <= 64 * 1024
    assert len(found.text.replace("&", "&amp;").replace("<", "&lt;").encode()) <= 64 * 1024


async def test_a_compressed_answer_is_refused_since_a_few_bytes_may_be_gigabytes() -> None:
    async with served(lambda _: answer(b"\x1f\x8b", content_encoding="gzip")) as server:
        found = await fetched(net_of(server.port), "http://a.example/")
        assert found == ToolError("upstream_error", "The answer is compressed, though it was asked for as it is.")


@pytest.mark.parametrize(
    "said", [b"", b"hello\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 100_000, b"HTTP/1.1 999999 \r\n\r\n"]
)
async def test_what_is_no_http_is_reported_as_no_answer(said: bytes) -> None:
    async with served(lambda _: said) as server:
        found = await refusal(net_of(server.port))
        assert found.code == "upstream_error"


async def test_all_redirects_share_one_time() -> None:
    pages = {"/": answer(b"", "302 Found", location="/slow"), "/slow": None}
    async with served(lambda head: pages[path_of(head)]) as server:
        found = await refusal(net_of(server.port), timeout_s=0.1)
        assert found.code == "upstream_timeout"


async def test_no_proxy_of_the_environment_comes_between(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with served(lambda _: answer(b"x")) as server:
        await page(net_of(server.port))


# ── over TLS ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_with_https_the_host_proves_its_name_though_its_address_is_connected_to(tmp_path: Path) -> None:
    serving, believing = certificate(tmp_path, "a.example")
    names: list[str | None] = []
    serving.sni_callback = lambda _socket, name, _context: names.append(name)
    async with served(lambda _: answer(b"secret"), serving) as server:
        net = PlayedNet(tls=believing, names={"a.example": [[PUBLIC]], "b.example": [[PUBLIC]]}, port=server.port)
        found = await page(net, "https://a.example/")
        assert (found.url, found.text, names) == ("https://a.example/", "secret", ["a.example"])
        assert net.connected == [(PUBLIC, 443)]
        assert "certificate" in (await refusal(net, "https://b.example/")).message
        assert len(server.heads) == 1


async def test_a_host_that_nobody_vouches_for_is_not_believed(tmp_path: Path) -> None:
    serving, _ = certificate(tmp_path, "a.example")
    async with served(lambda _: answer(b"secret"), serving) as server:
        await refusal(net_of(server.port), "https://a.example/")
        assert server.heads == []


# ── the tool ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_it_is_off_until_hosts_are_listed() -> None:
    assert tool(Tools()).is_off == "list the hosts that it may ask under `tools.http_fetch.hosts`"
    on = tool(Tools(http_fetch=HttpFetchTerms(("a.example",), timeout_s=7)))
    assert (on.is_off, on.brings_outside_text, on.timeout_s) == ("", True, 12)


async def test_an_answer_is_a_step_that_may_be_repeated_and_is_asked_for_once() -> None:
    steps = Steps()
    async with served(lambda _: answer(b"x")) as server:
        await Fetcher(HttpFetchTerms(HOSTS), net_of(server.port)).fetch(
            HttpFetch("http://a.example/"), cast("Any", steps)
        )
    assert steps.effects == [("fetch", "pure")]

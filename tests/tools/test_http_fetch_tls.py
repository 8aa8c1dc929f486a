"""http_fetch over TLS: the address that was judged is connected to, and the host proves its name."""

from __future__ import annotations

from pathlib import Path

from organism.model.tool import ToolError
from organism.tools.http_fetch import Fetched
from tests.tools.certificates import certificate
from tests.tools.fetching import fetched, net_of
from tests.tools.outside import PUBLIC, PlayedNet, answer, served


async def test_with_https_the_host_proves_its_name_though_its_address_is_connected_to(tmp_path: Path) -> None:
    serving, believing = certificate(tmp_path, "a.example")
    names: list[str | None] = []
    serving.sni_callback = lambda _socket, name, _context: names.append(name)
    async with served(lambda _: answer(b"secret"), serving) as server:
        net = PlayedNet(tls=believing, names={"a.example": [[PUBLIC]], "b.example": [[PUBLIC]]}, port=server.port)
        found = await fetched(net, "https://a.example/")
        assert isinstance(found, Fetched)
        assert (found.url, found.text, names) == ("https://a.example/", "secret", ["a.example"])
        assert net.connected == [(PUBLIC, 443)]
        another = await fetched(net, "https://b.example/")
        assert isinstance(another, ToolError)
        assert "certificate" in another.message
        assert len(server.heads) == 1


async def test_a_host_that_nobody_vouches_for_is_not_believed(tmp_path: Path) -> None:
    serving, _ = certificate(tmp_path, "a.example")
    async with served(lambda _: answer(b"secret"), serving) as server:
        found = await fetched(net_of(server.port), "https://a.example/")
        assert isinstance(found, ToolError)
        assert server.heads == []


async def test_a_redirect_from_https_to_http_is_not_followed(tmp_path: Path) -> None:
    serving, believing = certificate(tmp_path, "a.example")
    async with served(lambda _: answer(b"", "302 Found", location="http://b.example/"), serving) as server:
        net = PlayedNet(tls=believing, names={"a.example": [[PUBLIC]], "b.example": [[PUBLIC]]}, port=server.port)
        assert await fetched(net, "https://a.example/") == ToolError(
            "invalid_field", "The URL cannot be asked: a redirect leads from https to http."
        )

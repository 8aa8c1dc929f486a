"""The page's files: packed for who accepts it, and kept for good where the name has a hash."""

from __future__ import annotations

import gzip
import runpy
from pathlib import Path

import brotli
import httpx2
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware

from organism.server.app import page_routes
from organism.server.http.middleware import AccessLog

SCRIPT = "x = 1;\n" * 500
PACK = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "pack_page.py"))["pack"]
HASHED = "assets/index-DiwrgTda.js"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A built page, packed."""
    (tmp_path / "assets").mkdir()
    for name in ("index.html", "app.js", HASHED, "assets/index-renderer.js"):
        (tmp_path / name).write_text(SCRIPT)
    (tmp_path / "small.js").write_text("x = 1;")
    PACK(tmp_path)
    return tmp_path


def serving(folder: Path) -> Starlette:
    """A server of that page."""
    return Starlette(routes=page_routes((folder,)), middleware=[Middleware(AccessLog)])


async def get(
    page: Path | Starlette, path: str, accept: str = "br, gzip", **headers: str
) -> tuple[httpx2.Response, bytes]:
    """The answer of a server of that page, a new one or this one, and its body as it came."""
    app = serving(page) if isinstance(page, Path) else page
    sent = {"Accept-Encoding": accept, **headers}
    async with (
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://page") as client,
        client.stream("GET", path, headers=sent) as answer,
    ):
        return answer, b"".join([part async for part in answer.aiter_raw()])


@pytest.mark.parametrize("path", ["/", "/app.js", f"/{HASHED}"])
async def test_a_file_comes_packed_to_who_accepts_it_with_the_same_etag(folder: Path, path: str) -> None:
    plain, body = await get(folder, path, "identity")
    assert (body.decode(), "content-encoding" in plain.headers) == (SCRIPT, False)
    for accept, coding, unpack in (
        ("gzip, br", "br", brotli.decompress),
        ("gzip", "gzip", gzip.decompress),
        ("br;q=0, gzip", "gzip", gzip.decompress),
    ):
        packed, came = await get(folder, path, accept)
        assert (packed.headers["content-encoding"], unpack(came)) == (coding, body)
        assert len(came) == int(packed.headers["content-length"]) < len(body)
        for name in ("etag", "last-modified", "content-type", "vary", "cache-control"):
            assert packed.headers[name] == plain.headers[name], name
    assert plain.headers["vary"] == "Accept-Encoding"
    known, nothing = await get(folder, path, **{"If-None-Match": plain.headers["etag"]})
    assert (known.status_code, nothing, known.headers["vary"]) == (304, b"", "Accept-Encoding")


async def test_what_the_build_names_by_its_content_is_kept_for_good_and_nothing_else(folder: Path) -> None:
    kept = {}
    for path in ("/", "/app.js", f"/{HASHED}", "/docs.css"):
        kept[path] = (await get(folder, path))[0].headers["cache-control"]
    assert kept[f"/{HASHED}"] == "public, max-age=31536000, immutable"
    assert {kept[path] for path in ("/", "/app.js", "/docs.css")} == {"no-cache"}


async def test_a_changed_file_goes_plain_until_it_is_packed_again(folder: Path) -> None:
    (folder / "app.js").write_text(SCRIPT + "y = 2;")
    answer, body = await get(folder, "/app.js")
    assert ("content-encoding" in answer.headers, body.decode()) == (False, SCRIPT + "y = 2;")
    PACK(folder)
    answer, body = await get(folder, "/app.js")
    assert brotli.decompress(body).decode() == SCRIPT + "y = 2;"


async def test_a_file_that_changes_while_it_is_served_goes_plain(folder: Path) -> None:
    app = serving(folder)
    packed, _ = await get(app, "/app.js")
    (folder / "app.js").write_text(SCRIPT + "y = 2;")
    changed, body = await get(app, "/app.js")
    assert ("content-encoding" in packed.headers, "content-encoding" in changed.headers) == (True, False)
    assert (body.decode(), changed.headers["etag"] == packed.headers["etag"]) == (SCRIPT + "y = 2;", False)


@pytest.mark.parametrize(
    ("lacks", "content", "coding"), [(".br", None, "gzip"), (".gz", None, None), (".gz", b"broken", None)]
)
async def test_without_a_whole_packed_file_the_next_form_comes(
    folder: Path, lacks: str, content: bytes | None, coding: str | None
) -> None:
    packed = folder / f"app.js{lacks}"
    packed.unlink()
    if content is not None:
        packed.write_bytes(content)
    answer, body = await get(folder, "/app.js")
    assert answer.headers.get("content-encoding") == coding
    assert (gzip.decompress(body) if coding else body).decode() == SCRIPT


async def test_a_small_file_and_a_part_of_one_come_plain(folder: Path) -> None:
    small, _ = await get(folder, "/small.js")
    part, body = await get(folder, "/app.js", Range="bytes=0-4")
    assert ("content-encoding" in small.headers, "content-encoding" in part.headers) == (False, False)
    assert (part.status_code, body) == (206, b"x = 1")


async def test_packed_files_have_no_address(folder: Path) -> None:
    assert {(await get(folder, f"/app.js{ending}"))[0].status_code for ending in (".br", ".gz")} == {404}

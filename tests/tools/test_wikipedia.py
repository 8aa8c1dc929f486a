"""wikipedia_search and wikipedia_summary, against a real server that speaks as a wiki does, or does not."""

from __future__ import annotations

import json
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import pytest

from organism.config.tools import Tools, Wikipedia
from organism.model.tool import ToolError
from organism.tools.web import Net
from organism.tools.wikipedia import (
    Article,
    Wiki,
    WikipediaArticles,
    WikipediaExtract,
    WikipediaSearch,
    WikipediaSummary,
    tools,
)
from tests.tools.outside import Server, Steps, answer, lines_of, path_of, served

HITS = {
    "query": {
        "search": [
            {
                "title": "Alan Turing",
                "snippet": 'was a <span class="searchmatch">British</span> &amp; &quot;great&quot;',
            },
            {"title": "Turing machine"},
            {"title": 5, "snippet": "no title"},
            "no object",
        ]
    }
}
PAGE = {
    "type": "standard",
    "title": "Alan Turing",
    "description": "English computer scientist",
    "extract": "Alan Mathison Turing was …",
    "content_urls": {"desktop": {"page": "https://en.wikipedia.org/wiki/Alan_Turing"}},
}


def answering(found: object, status: str = "200 OK", **headers: str) -> bytes:
    return answer(json.dumps(found).encode(), status, "application/json", **headers)


async def search(server: Server | None, query: str = "turing", limit: int = 5, **terms: Any) -> object:
    wiki = Wiki(terms_of(server, **terms), Net())
    return (await wiki.search(WikipediaSearch(query, limit), cast("Any", Steps()))).payload


async def summary(server: Server | None, title: str = "Alan Turing", **terms: Any) -> object:
    wiki = Wiki(terms_of(server, **terms), Net())
    return (await wiki.summary(WikipediaSummary(title), cast("Any", Steps()))).payload


def terms_of(server: Server | None, path: str = "", **terms: Any) -> Wikipedia:
    return Wikipedia(f"http://127.0.0.1:{server.port if server else 1}{path}", **terms)


async def test_a_search_gives_titles_with_snippets_in_plain_text() -> None:
    async with served(lambda _: answering(HITS)) as server:
        found = await search(server, "alan & turing", 3)
        root = f"http://127.0.0.1:{server.port}/wiki"
        assert found == WikipediaArticles(
            [
                Article("Alan Turing", 'was a British & "great"', f"{root}/Alan_Turing"),
                Article("Turing machine", "", f"{root}/Turing_machine"),
            ]
        )
        asked = urlsplit(path_of(server.heads[0]))
        assert asked.path == "/w/api.php"
        assert parse_qs(asked.query) == {
            "action": ["query"],
            "list": ["search"],
            "srsearch": ["alan & turing"],
            "srlimit": ["3"],
            "format": ["json"],
            "formatversion": ["2"],
        }
        assert lines_of(server.heads[0])["host"] == f"127.0.0.1:{server.port}"
        assert lines_of(server.heads[0])["user-agent"] == "organism"


async def test_a_summary_gives_the_beginning_of_the_article() -> None:
    async with served(lambda _: answering(PAGE)) as server:
        assert await summary(server) == WikipediaExtract(
            title="Alan Turing",
            description="English computer scientist",
            extract="Alan Mathison Turing was …",
            url="https://en.wikipedia.org/wiki/Alan_Turing",
        )
        assert path_of(server.heads[0]) == "/api/rest_v1/page/summary/Alan_Turing"


@pytest.mark.parametrize(
    ("title", "path"),
    [
        ("AC/DC", "AC%2FDC"),
        ("../../w/api.php", "..%2F..%2Fw%2Fapi.php"),
        ("Straße?x=1#y", "Stra%C3%9Fe%3Fx%3D1%23y"),
        (" Berlin ", "Berlin"),
        ("a\r\nHost: evil", "a%0D%0AHost:_evil"),
    ],
)
async def test_a_title_is_one_part_of_the_path_whatever_is_in_it(title: str, path: str) -> None:
    async with served(lambda _: answering(PAGE)) as server:
        await summary(server, title)
        assert path_of(server.heads[0]).replace("%3A", ":") == f"/api/rest_v1/page/summary/{path}"


async def test_a_title_of_several_meanings_says_so() -> None:
    async with served(lambda _: answering({**PAGE, "type": "disambiguation"})) as server:
        found = await summary(server)
        assert isinstance(found, WikipediaExtract)
        assert found.is_ambiguous


async def test_a_page_that_says_little_has_a_title_and_an_address_all_the_same() -> None:
    async with served(lambda _: answering({"extract": None, "content_urls": [], "title": 7})) as server:
        found = await summary(server, "Alan Turing")
        assert found == WikipediaExtract("Alan Turing", "", "", f"http://127.0.0.1:{server.port}/wiki/Alan_Turing")


async def test_an_article_that_is_not_there_is_reported_with_the_way_to_find_one() -> None:
    async with served(lambda _: answering({}, "404 Not Found")) as server:
        assert await summary(server, "Xyz") == ToolError(
            "not_found", "There is no article 'Xyz'; wikipedia_search finds titles."
        )


async def test_another_name_of_an_article_is_followed_within_the_wiki() -> None:
    pages = {
        "/api/rest_v1/page/summary/Turing": answer(b"", "302 Found", location="Alan_Turing"),
        "/api/rest_v1/page/summary/Alan_Turing": answering(PAGE),
    }
    async with served(lambda head: pages[path_of(head)]) as server:
        found = await summary(server, "Turing")
        assert isinstance(found, WikipediaExtract)
        assert found.title == "Alan Turing"


@pytest.mark.parametrize(
    "location", ["http://127.0.0.1:1/", "https://evil.example/", "//evil.example/x", "http://[", "/a b\x7f"]
)
async def test_no_redirect_leads_out_of_the_wiki(location: str) -> None:
    async with served(lambda _: answer(b"", "302 Found", location=location)) as server:
        found = await summary(server)
        assert isinstance(found, ToolError)
        assert found.code == "upstream_error"
        assert len(server.heads) == 1


async def test_a_wiki_that_leads_in_a_circle_is_left() -> None:
    async with served(lambda _: answer(b"", "302 Found", location="/again")) as server:
        found = await summary(server)
        assert isinstance(found, ToolError)
        assert found.message.endswith("led on more than 3 times.")
        assert len(server.heads) == 4


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (answering({}, "500 Internal Server Error"), "answered with status 500."),
        (answering({}, "429 Too Many Requests"), "answered with status 429."),
        (answering([]), "answered with JSON that is no object."),
        (answering({"query": {"search": {}}}), "gave no list of results."),
        (answering({"query": 5}), "gave no list of results."),
        (answer(b"<html>", kind="text/html"), "answered with something that is no JSON."),
        (answer(b'{"a":' + b"1" * 2_000_000), "answered with more than 1048576 bytes."),
        (answer(b"[" * 100_000), "answered with something that is no JSON."),
    ],
)
async def test_an_answer_that_is_not_one_of_a_wiki_is_reported(said: bytes, message: str) -> None:
    async with served(lambda _: said) as server:
        found = await search(server)
        assert found == ToolError("upstream_error", f"http://127.0.0.1:{server.port} {message}")


async def test_a_wiki_that_is_not_there_is_reported_and_one_that_says_nothing_is_waited_for() -> None:
    found = await search(None)
    assert isinstance(found, ToolError)
    assert found.code == "upstream_error"
    assert found.message.startswith("127.0.0.1:1 did not answer: ")
    async with served(lambda _: None) as server:
        late = ToolError("upstream_timeout", "There was no whole answer within 0.1 seconds.")
        assert await summary(server, timeout_s=0.1) == late


async def test_the_address_of_the_wiki_may_have_a_path() -> None:
    async with served(lambda _: answering(PAGE)) as server:
        await summary(server, path="/mirror/")
        assert path_of(server.heads[0]) == "/mirror/api/rest_v1/page/summary/Alan_Turing"


def test_both_bring_text_of_strangers_and_change_with_the_wiki() -> None:
    wiki = Wikipedia("https://de.wikipedia.org", 3)
    for tool in tools(Tools(wikipedia=wiki)):
        assert (tool.brings_outside_text, tool.timeout_s, tool.settings) == (True, 8, wiki)

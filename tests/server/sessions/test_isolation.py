"""No user and no tenant sees another's session, by any route, cursor, filter, key or error."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx2
import pytest
import pytest_asyncio

from organism.server.app import ROUTES
from organism.server.http.call import Route
from tests.server.served import TOKEN
from tests.server.sessions.talking import User, error_of, talking

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECRET = "what-dan-alone-knows"
STRANGERS = {"another user": ("eve", "default"), "another tenant": ("dan", "acme")}
OF_SESSION = [route for route in ROUTES if "{sid}" in route.path]
BODIES = {"POST /a1/agents/{name}/sessions/{sid}/messages": {"message": "x"}}


@dataclass(frozen=True)
class Estate:
    """What Dan has: sessions, one of them archived, and what strangers have of their own."""

    dan: User
    ids: dict[str, str]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def estate(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Estate]:
    async with talking(tmp_path_factory.mktemp("estate")) as server:
        dan = User(server)
        live, archived = await dan.begin(compact_keep_last_n=0), await dan.begin(compact_keep_last_n=0)
        thread = (await dan.say(live, SECRET, Idempotency_Key="dans")).json()["thread_id"]
        await dan.say(archived, SECRET)
        assert (await dan.call("POST", f"parrot/sessions/{archived}/compact", {})).status_code == 200
        message = (await dan.history(live))["messages"][0]["id"]
        yield Estate(dan, {"live": live, "archived": archived, "thread": thread, "message": message})


def stranger(estate: Estate, who: str) -> User:
    name, tenant = STRANGERS[who]
    return User(estate.dan.server, name, tenant)


def face(answer: httpx2.Response, named: str) -> tuple[int, str, tuple[str, ...]]:
    """All that can be seen of an answer but the ids of the request and of what was asked for."""
    text = re.sub(r'"request_id":"[^"]*"', "", answer.text).replace(named, "ID").replace(named[:40], "ID")
    return answer.status_code, text, tuple(sorted(answer.headers))


@pytest.mark.parametrize("who", STRANGERS)
@pytest.mark.parametrize("kind", ["live", "archived", "thread", "message"])
@pytest.mark.parametrize("route", OF_SESSION, ids=lambda route: f"{route.method} {route.path.partition('{sid}')[2]}")
async def test_a_foreign_session_looks_like_one_that_is_not_there(
    estate: Estate, route: Route, kind: str, who: str
) -> None:
    body = BODIES.get(f"{route.method} {route.path}")
    found = []
    for named in (estate.ids[kind], "ses-" + secrets.token_hex(16)):
        path = route.path.replace("{name}", "parrot").replace("{sid}", named)
        found.append(face(await stranger(estate, who).call(route.method, path, body), named))
    assert found[0] == found[1]
    assert found[0][0] == 404


@pytest.mark.parametrize("who", STRANGERS)
async def test_a_foreign_session_is_no_session_for_invoke(estate: Estate, who: str) -> None:
    found = []
    for named in (estate.ids["live"], "ses-" + secrets.token_hex(16)):
        body = {"agent": "parrot", "session_id": named, "data": {"inputs": {"message": "x"}}}
        found.append(face(await stranger(estate, who).call("POST", "/invoke", body), named))
    assert found[0] == found[1]
    assert found[0][0] == 404


@pytest.mark.parametrize("who", STRANGERS)
async def test_a_list_has_ones_own_sessions_alone(estate: Estate, who: str) -> None:
    other = stranger(estate, who)
    own = await other.begin()
    page = (await other.call("GET", "parrot/sessions")).json()
    assert [row["id"] for row in page["sessions"]] == [own]
    assert page["total"] == 1
    assert (await other.call("DELETE", f"parrot/sessions/{own}")).status_code == 204


@pytest.mark.parametrize("who", STRANGERS)
@pytest.mark.parametrize("path", ["parrot/sessions", "parrot/sessions/{}/messages"])
async def test_a_cursor_opens_a_list_for_its_own_user_alone(estate: Estate, who: str, path: str) -> None:
    other = stranger(estate, who)
    own = await other.begin()
    mine = path.format(estate.ids["live"])
    cursor = (await estate.dan.call("GET", f"{mine}?limit=1")).json()["next"]
    assert (await estate.dan.call("GET", f"{mine}?limit=1&cursor={cursor}")).status_code == 200
    refused = await other.call("GET", f"{path.format(own)}?limit=1&cursor={cursor}")
    assert error_of(refused) == (400, "invalid_field", "query.cursor")
    assert (await other.call("DELETE", f"parrot/sessions/{own}")).status_code == 204


@pytest.mark.parametrize("who", STRANGERS)
async def test_a_key_and_the_id_of_an_event_are_of_their_user_alone(estate: Estate, who: str) -> None:
    other = stranger(estate, who)
    refused = await other.say(estate.ids["live"], SECRET, Idempotency_Key="dans")
    assert error_of(refused)[:2] == (404, "not_found")
    streamed = await estate.dan.say(estate.ids["live"], "more", stream=True)
    seen = streamed.text.split("\n")[0].removeprefix("id: ")
    refused = await other.say(estate.ids["live"], "more", stream=True, Last_Event_ID=seen)
    assert refused.status_code in {400, 404}
    assert SECRET not in refused.text


async def test_the_threads_of_a_session_are_listed_for_its_user_and_for_a_reader_who_names_none(estate: Estate) -> None:
    server, session = estate.dan.server, estate.ids["live"]

    async def found(user: str | None, session: str = session) -> set[str]:
        answer = await User(server, user).call(
            "GET", f"/api/v1/threads?session={session}", Authorization=f"Bearer {TOKEN}"
        )
        return {thread["session_id"] for thread in answer.json()["threads"]}

    assert await found("dan") == await found(None) == {session}
    assert await found("eve") == await found(None, "ses-none") == set()


async def test_an_administrator_of_the_tenant_reads_all_of_its_sessions_and_of_no_other(estate: Estate) -> None:
    boss = User(estate.dan.server, None, "default", "boss")
    assert (await boss.call("GET", "parrot/sessions")).json()["total"] == 3
    assert SECRET in (await boss.call("GET", f"parrot/sessions/{estate.ids['live']}/messages")).text
    assert error_of(await boss.say(estate.ids["live"], "x"))[:2] == (400, "missing_field")
    assert error_of(await boss.call("DELETE", f"parrot/sessions/{estate.ids['live']}"))[:2] == (400, "missing_field")
    other = User(estate.dan.server, None, "acme", "boss")
    assert (await other.call("GET", "parrot/sessions")).json()["total"] == 0
    assert (await other.call("GET", f"parrot/sessions/{estate.ids['live']}")).status_code == 404


@pytest.mark.parametrize(
    "named",
    ["%2e%2e", "%2Fetc", "ses-", "SES-00", "ses-0.1", "x" * 300, "%00", "'--", "ses-%F0%9F%A6%8A"],
)
async def test_what_is_no_id_is_no_session(estate: Estate, named: str) -> None:
    for more in ("", "/messages", "/lineage"):
        answer = await estate.dan.call("GET", f"/a1/agents/parrot/sessions/{named}{more}")
        assert answer.status_code in {404, 405}, answer.text


async def test_a_token_can_be_narrowed_to_an_agent(estate: Estate) -> None:
    narrow = User(estate.dan.server, "dan", "default", "narrow")
    assert (await narrow.call("GET", "parrot/sessions")).status_code == 403
    assert (await narrow.call("GET", "other/sessions")).status_code == 200
    assert (await narrow.call("GET", f"parrot/sessions/{estate.ids['live']}")).status_code == 403
    assert (await narrow.call("GET", f"other/sessions/{estate.ids['live']}")).status_code == 400

"""The page in a real Chromium: it shows a hop live, injects, survives a cut, and lets nothing in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Page, async_playwright, expect

from tests.e2e.serving import Process, serving
from tests.flows.test_failures import ASKERS, CHAIN
from tests.flows.world import World
from tests.server.served import LISTENERS

pytestmark = pytest.mark.e2e

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    """A page of Debian's Chromium. Whatever it logs as an error, a breach of the policy say, fails the test."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        opened = await browser.new_page()
        complaints: list[str] = []
        opened.on("pageerror", lambda error: complaints.append(str(error)))
        opened.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        yield opened
        await browser.close()
        network = ("ERR_CONNECTION_REFUSED", "Failed to load resource")
        assert [text for text in complaints if not any(kind in text for kind in network)] == []


async def ready(page: Page, server: Process) -> None:
    """Open the page as the terminal's link does."""
    await page.goto(f"{server.url}/#token={server.token}")
    await expect(page.locator("#connection")).to_have_text("Live")


async def test_a_form_without_room_scrolls_within_its_panel(page: Page, tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as server:
        await ready(page, server)
        await expect(page.locator("#inject-fields .field")).to_have_count(1)
        await page.set_viewport_size({"width": 1280, "height": 400})
        assert await page.evaluate("document.documentElement.scrollHeight") == 400


async def test_a_hop_is_seen_live_from_greeter_to_console(page: Page, tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as server, server.client() as client:
        await ready(page, server)
        await expect(page.locator("#name")).to_have_text("hello-world")
        assert "token" not in page.url, "the token leaves the address"
        agents = page.locator("#agents .agent")
        await expect(agents.locator("strong")).to_have_text(LISTENERS)
        await client.post("/inject", json={"to": "greeter", "payload": {"name": "<img src=x onerror=alert(1)>"}})
        routes = page.locator("#stream .route")
        await expect(routes).to_have_count(4)
        await expect(routes.first).to_contain_text("response-handler→console")
        await expect(page.locator("#stream .entry").last).to_contain_text("<img src=x onerror=alert(1)>")
        assert await page.locator("#stream img").count() == 0, "a payload is text, whatever it says"
        await expect(page.locator("#threads .thread .state")).to_have_text("completed")
        await expect(page.locator("#total-messages")).to_have_text("4")


async def test_the_form_is_made_from_the_schema_and_names_faults_at_their_fields(page: Page, tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as server:
        await ready(page, server)
        await page.get_by_label("To", exact=True).select_option("shouter")
        await expect(page.locator("#inject-fields label")).to_have_text(["message", "original_sender"])
        await page.get_by_label("To", exact=True).select_option("greeter")
        await page.get_by_label("name", exact=True).fill("a\u0007b")
        await page.get_by_role("button", name="Send").click()
        await expect(page.locator("#field-name-fault")).to_be_visible()
        await expect(page.get_by_label("name", exact=True)).to_have_attribute("aria-invalid", "true")
        await page.get_by_label("name", exact=True).fill("Dan")
        await page.keyboard.press("Enter")
        await expect(page.locator("#inject-said")).to_contain_text("Sent, in thread")
        await expect(page.locator("#stream .entry").first).to_contain_text("HELLO, DAN!")


async def test_after_a_kill_the_page_resumes_by_position_and_says_so(page: Page, tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as server, server.client() as client:
        port = server.url.rsplit(":", 1)[1]
        await ready(page, server)
        await client.post("/inject", json={"to": "greeter", "payload": {"name": "before"}, "wait": 20})
        await expect(page.locator("#stream .entry")).to_have_count(4)
    await expect(page.locator("#connection")).to_have_attribute("data-state", "lost")
    async with serving(tmp_path / "data", "--port", port) as server, server.client() as client:
        await client.post("/inject", json={"to": "greeter", "payload": {"name": "after"}, "wait": 20})
        await expect(page.locator("#connection")).to_contain_text("nothing missed", timeout=20_000)
        await expect(page.locator("#stream .entry")).to_have_count(8)
        await expect(page.locator("#total-messages")).to_have_text("8")


async def test_agents_and_threads_are_controlled_by_keyboard(page: Page, tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as server, server.client() as client:
        await ready(page, server)
        pause = page.get_by_role("button", name="Pause shouter")
        await pause.focus()
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("button", name="Resume shouter")).to_be_visible()
        thread = (await client.post("/inject", json={"to": "greeter", "payload": {"name": "D"}})).json()["thread_id"]
        await expect(page.locator("#threads .thread")).to_have_attribute("data-state", "active")
        await page.get_by_role("button", name="Kill thread").click()
        await expect(page.locator("#threads .thread")).to_have_attribute("data-state", "killed")
        assert (await client.get(f"/threads/{thread}")).json()["status"] == "killed"


async def test_a_failure_is_shown_on_the_terminal_and_the_page_with_its_line_and_replayed_there(
    page: Page, tmp_path: Path
) -> None:
    made = World(tmp_path, CHAIN, dict(ASKERS))
    async with serving(tmp_path / "data", config=made.config) as server, server.client() as client:
        await ready(page, server)
        await expect(page.locator("#waiting-count")).to_have_text("0")
        await client.post("/inject", json={"to": "outer", "payload": {"text": "ann"}})
        card = page.locator("#waiting .waits")
        await expect(card).to_have_count(1)
        await expect(card.locator("strong")).to_have_text("inner failed")
        await expect(card.locator(".fault")).to_have_text("KeyError: 'ann' (with it: middle, outer)")
        await expect(card.locator("pre")).to_contain_text("return HandlerResponse.respond(Told(NAMES[name]))")
        await expect(card.locator("pre")).to_contain_text("outer failed with it:")
        await expect(page.locator("#waiting-count")).to_have_text("1")
        await server.until_said("actors/play.py:")
        made.write(CHAIN.replace("NAMES = {}", 'NAMES = {"ann": "Ann"}'))
        await page.get_by_role("button", name="Reload").click()
        await expect(page.locator("#notice")).to_contain_text("Reloaded: updated ")
        await page.get_by_role("button", name="Replay: inner failed").click()
        await expect(page.locator("#threads .thread .state")).to_have_text("completed")
        await expect(page.locator("#waiting-panel")).to_be_hidden()
        await expect(page.locator("#waiting-count")).to_have_text("0")


async def test_without_a_token_the_page_asks_for_one_and_refuses_a_wrong_one(page: Page, tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as server:
        await page.goto(server.url)
        await page.get_by_role("textbox", name="Token").fill("wrong")
        await page.get_by_role("button", name="Connect").click()
        await expect(page.locator("#ask-why")).to_contain_text("not taken")
        await page.get_by_role("textbox", name="Token").fill(server.token)
        await page.get_by_role("button", name="Connect").click()
        await expect(page.locator("#connection")).to_have_text("Live")
        await page.reload()
        await expect(page.locator("#connection")).to_have_text("Live")


async def test_the_documentation_sends_a_request_with_the_token_that_is_typed_in(page: Page, tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as server:
        await page.goto(f"{server.url}/docs")
        operation = page.locator('section[id="inject.inject"]')
        await operation.get_by_text("Send it").click()
        await operation.get_by_role("button").click()
        await expect(operation.locator("output")).to_contain_text("401")
        await page.locator("#token").fill(server.token)
        await operation.locator("textarea").fill('{"to": "greeter", "payload": {"name": "Dan"}}')
        await operation.get_by_role("button").click()
        await expect(operation.locator("output")).to_contain_text('"thread_id": "thr-')
        stored = "Object.keys(localStorage).length + Object.keys(sessionStorage).length + document.cookie.length"
        assert await page.evaluate(stored) == 0

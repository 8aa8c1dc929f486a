"""Control: pause, resume, kill, reload, stop; each answers with what stands then."""

from __future__ import annotations

import asyncio

from organism.bootstrap import Parts
from tests.flows.disk import Disk
from tests.flows.world import MakeWorld
from tests.server.served import Served, served


async def test_a_paused_agent_says_so_and_works_again_when_resumed(hello: Served) -> None:
    paused = await hello.call("POST", "/agents/shouter/pause")
    assert (paused.status_code, paused.json()["paused"], paused.json()["state"]) == (200, True, "paused")
    waiting = await hello.inject(wait=None)
    assert (await hello.get("/agents/shouter"))["queue_depth"] in {0, 1}
    resumed = await hello.call("POST", "/agents/shouter/resume")
    assert (resumed.json()["paused"], resumed.json()["position"] > paused.json()["position"]) == (False, True)
    assert await hello.organism.tenants["default"].ended(waiting["thread_id"], 10)
    assert (await hello.get(f"/threads/{waiting['thread_id']}"))["status"] == "completed"


async def test_the_whole_organism_pauses_and_resumes(hello: Served) -> None:
    paused = await hello.call("POST", "/organism/pause")
    assert (paused.status_code, paused.json()["status"]) == (200, "paused")
    assert (await hello.get("//readyz"))["status"] == "paused"
    thread = (await hello.inject(wait=None))["thread_id"]
    assert (await hello.get(f"/threads/{thread}"))["message_count"] == 1
    assert (await hello.call("POST", "/organism/resume")).json()["status"] == "running"
    assert await hello.organism.tenants["default"].ended(thread, 10)


async def test_a_thread_is_paused_resumed_and_killed(hello: Served) -> None:
    await hello.call("POST", "/agents/shouter/pause")
    thread = (await hello.inject(wait=None))["thread_id"]
    paused = await hello.call("POST", f"/threads/{thread}/pause")
    assert (paused.status_code, paused.json()["paused"], paused.json()["status"]) == (200, True, "active")
    assert (await hello.call("POST", f"/threads/{thread}/resume")).json()["paused"] is False
    killed = await hello.call("POST", f"/threads/{thread}/kill")
    assert (killed.status_code, killed.json()["status"]) == (200, "killed")
    assert killed.headers["etag"] == f'"{killed.json()["position"]}"'
    again = await hello.call("POST", f"/threads/{thread}/kill")
    assert (again.status_code, again.json()) == (200, killed.json())


async def test_a_reload_says_what_it_changed_or_changes_nothing(world: MakeWorld) -> None:
    source = "async def one(payload: Ask, metadata):\n    return None\n\n\ntwo = one\n"
    made = world(source, {"one": {}})
    async with served(made.config) as server:
        made.write(source, {"one": {}, "two": {}})
        reloaded = await server.call("POST", "/organism/reload")
        assert (reloaded.status_code, reloaded.json()["added"], reloaded.json()["removed"]) == (200, ["two"], [])
        made.config.write_text("organism: {nam: x}\n")
        refused = await server.call("POST", "/organism/reload")
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "config_invalid")
        assert refused.json()["error"]["details"]
        assert (await server.get("/agents"))["total"] == 2


async def test_while_the_server_stops_it_is_not_ready_and_a_reload_says_so_at_once(world: MakeWorld) -> None:
    source = """
async def sleeper(payload: Ask, metadata: HandlerMetadata):
    await asyncio.sleep(3600)
"""
    made = world(source, {"sleeper": {}})
    async with served(made.config) as server:
        await server.inject("sleeper", {"text": ""}, wait=None)
        stopping = asyncio.ensure_future(server.organism.stop(grace_s=60))
        await server.until(lambda: server.organism.status == "stopping")
        refused = await server.call("POST", "/organism/reload")
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "stopping")
        ready = await server.call("GET", "//readyz")
        assert (ready.status_code, ready.json()["error"]["code"]) == (503, "stopping")
        assert (await server.get("//healthz")) == {"status": "ok"}
        assert not stopping.done()
        await server.call("POST", f"/threads/{(await server.get('/threads'))['threads'][0]['id']}/kill")
        await stopping


async def test_a_disk_that_stops_answering_is_reported_within_seconds_and_all_goes_on_when_it_answers(
    world: MakeWorld,
) -> None:
    source = """
async def worker(payload: Ask, metadata: HandlerMetadata):
    await gate(payload.text)
    return HandlerResponse.respond(Told(f"{payload.text} {metadata.attempt}"))
"""
    made, disk = world(source, {"worker": {}}), Disk()
    async with served(made.config, made.data, parts=Parts(driver=disk)) as server:
        gates = server.organism.settings.listeners[0].handler.__globals__["GATES"]  # type: ignore[union-attr]  # it has one
        before = await server.inject("worker", {"text": "before"}, wait=None)
        disk.hold()
        request = {"json": {"to": "worker", "payload": {"text": "held"}}, "headers": {"Idempotency-Key": "key-1"}}
        unknown = await server.call("POST", "/inject", **request)
        assert (unknown.status_code, unknown.json()["error"]["code"]) == (503, "commit_unknown")
        for method, path in (("GET", "//readyz"), ("POST", "/inject")):
            refused = await server.call(method, path, **(request if method == "POST" else {}))
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "log_unavailable")
        gates.setdefault("before", asyncio.Event()).set()
        gates.setdefault("held", asyncio.Event()).set()
        assert (await server.get(f"/threads/{before['thread_id']}"))["status"] == "active"
        disk.release()
        await server.until(lambda: server.organism.tenants["default"].log.available)
        assert (await server.get("//readyz"))["status"] == "running"
        done = (await server.call("POST", "/inject", **request)).json()
        for thread_id, reply in ((before["thread_id"], "before 1"), (done["thread_id"], "held 1")):
            assert await server.organism.tenants["default"].ended(thread_id, 20)
            messages = (await server.get(f"/threads/{thread_id}/messages"))["messages"]
            assert [message["payload"] for message in messages if message["to"] == "console"] == [{"text": reply}]
        assert len((await server.get("/threads"))["threads"]) == 2

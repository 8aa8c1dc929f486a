"""The tenant's configuration over the wire: three levels, key by key, at each read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest

from organism.model.commands import ChangeTenantConfig
from tests.flows.spender import says, scripted
from tests.flows.world import MakeWorld
from tests.server.logged import logged
from tests.server.served import Served, served
from tests.server.tenanted import bearer, hello_with, token

PATH = "//v1/tenant/config"
PROCESS = {
    "compact_strategy": "auto",
    "compact_keep_last_n": 10,
    "compact_observation_mask": True,
    "compact_summary_model": None,
    "on_busy": "queue",
    "taint": "escalate",
    "audit_prompts": False,
    "tools_enabled_default": [],
    "budget": {"run": {}, "day": {}},
}
YAML = {"on_busy": "steer", "compact_keep_last_n": 5, "budget": {"day": {"usd": 0.5}}}


def with_defaults(folder: Path, defaults: dict[str, Any]) -> Path:
    """The hello organism whose tenant acme has these defaults, a token with all rights, and some with few."""
    tokens: dict[str, Any] = {
        "boss": ["admin"],
        "reader": ["tenant_config:read"],
        "writer": ["tenant_config:write"],
        "small": {"scopes": ["tenant_config:write"], "models": ["llama-4-scout"]},
    }
    config = hello_with(folder, {"acme": tokens})
    _set_defaults(folder, defaults)
    return config


def _set_defaults(folder: Path, defaults: dict[str, Any]) -> None:
    path = folder / "config" / "tokens.yaml"
    written = orjson.loads(path.read_bytes())
    written["tenants"][0]["defaults"] = defaults
    draft = path.with_suffix(".new")
    draft.write_bytes(orjson.dumps(written))
    draft.replace(path)


async def shown(server: Served, **headers: str) -> dict[str, Any]:
    """What is in force, by key."""
    found: dict[str, Any] = await server.get(PATH, headers=headers or bearer("acme", "boss"))
    return found


async def put(server: Served, body: Any, name: str = "boss", **headers: str) -> httpx2.Response:
    return await server.call("PUT", PATH, json=body, headers={**bearer("acme", name), **headers})


def values(found: dict[str, Any]) -> dict[str, Any]:
    return {key: each["value"] for key, each in found.items() if each["writable"]}


def source(found: dict[str, Any], key: str) -> str:
    made: str = found[key]["source"]
    return made


async def test_each_key_has_the_value_of_the_last_level_that_says_it(tmp_path: Path) -> None:
    async with served(with_defaults(tmp_path, YAML)) as server:
        assert values(await server.get(PATH)) == PROCESS  # the operator's own tenant has no defaults
        before = await shown(server)
        assert values(before) == {**PROCESS, **YAML, "budget": {"run": {}, "day": {"usd": 0.5}}}
        answer = await put(server, {"on_busy": "reject", "compact_strategy": "off"})
        after = await shown(server)
        assert answer.json() == after
        keys = ("on_busy", "compact_strategy", "compact_keep_last_n", "taint")
        assert [source(after, key) for key in keys] == ["db", "db", "yaml", "process"]
        assert (values(after)["on_busy"], values(after)["compact_strategy"]) == ("reject", "off")
        assert values(await server.get(PATH)) == PROCESS
        await put(server, {"on_busy": None, "compact_strategy": None})
        assert await shown(server) == before


async def test_what_is_written_outlives_a_crash_and_an_edit_of_the_file(tmp_path: Path) -> None:
    config, data = with_defaults(tmp_path, YAML), tmp_path / "data"
    async with served(config, data) as server:
        await put(server, {"compact_keep_last_n": 0, "audit_prompts": True})
        await server.organism.tenants["acme"].crash()
    _set_defaults(tmp_path, {"compact_keep_last_n": 7, "taint": "allow"})
    async with served(config, data) as server:
        found = await shown(server)
        assert (found["compact_keep_last_n"]["value"], found["audit_prompts"]["value"]) == (0, True)
        assert (found["taint"]["value"], source(found, "taint"), values(found)["on_busy"]) == ("allow", "yaml", "queue")


async def test_an_edit_of_the_file_acts_at_the_next_read(tmp_path: Path) -> None:
    async with served(with_defaults(tmp_path, YAML)) as server:
        _set_defaults(tmp_path, {"on_busy": "force"})
        while (found := await shown(server))["on_busy"]["value"] != "force":
            pass
        assert source(found, "compact_keep_last_n") == "process"


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        ({"models": ["m"]}, "tenant_config_key_readonly", "/models"),
        ({"scopes": None}, "tenant_config_key_readonly", "/scopes"),
        ({"rate": 5, "on_busy": "queue"}, "tenant_config_key_readonly", "/rate"),
        ({"providers": []}, "tenant_config_key_readonly", "/providers"),
        ({"limits": {}}, "tenant_config_key_readonly", "/limits"),
        ({"colour": "red"}, "unknown_field", "/colour"),
        ({"colour": None}, "unknown_field", "/colour"),
        ({"on_busy": "dance"}, "invalid_field", "/on_busy"),
        ({"on_busy": 1}, "invalid_field", "/on_busy"),
        ({"compact_keep_last_n": "5"}, "invalid_field", "/compact_keep_last_n"),
        ({"compact_keep_last_n": True}, "invalid_field", "/compact_keep_last_n"),
        ({"compact_keep_last_n": 201}, "invalid_field", "/compact_keep_last_n"),
        ({"compact_keep_last_n": -1}, "invalid_field", "/compact_keep_last_n"),
        ({"audit_prompts": "yes"}, "invalid_field", "/audit_prompts"),
        ({"tools_enabled_default": "calculator"}, "invalid_field", "/tools_enabled_default"),
        ({"tools_enabled_default": ["a b"]}, "invalid_field", "/tools_enabled_default/0"),
        ({"tools_enabled_default": ["a"] * 101}, "invalid_field", "/tools_enabled_default"),
        ({"budget": {"day": {"usd": "1"}}}, "invalid_field", "/budget/day/usd"),
        ({"budget": {"week": {}}}, "unknown_field", "/budget/week"),
        ({"budget": {"day": {"calls": -1}}}, "invalid_field", "/budget/day/calls"),
        ({"compact_summary_model": "nobody"}, "model_not_in_allowlist", "/compact_summary_model"),
        ({"compact_summary_model": " "}, "invalid_field", "/compact_summary_model"),
        ([], "invalid_field", ""),
    ],
)
async def test_what_cannot_be_written_is_refused_and_nothing_is(
    shared: Served, body: Any, code: str, param: str
) -> None:
    before = await shared.get(PATH)
    answer = await shared.call("PUT", PATH, json=body)
    assert (answer.status_code, answer.json()["error"]["code"], answer.json()["error"]["param"]) == (400, code, param)
    assert await shared.get(PATH) == before


@pytest.mark.parametrize("glue", ["", "x"])
async def test_a_live_secret_is_refused_as_the_name_of_a_tool_whoever_s_it_is(tmp_path: Path, glue: str) -> None:
    config, data = with_defaults(tmp_path, {}), tmp_path / "data"
    async with served(config, data) as server:
        for secret in (token("acme", "boss"), token("acme", "reader")):  # the second one was never used
            answer = await put(server, {"tools_enabled_default": ["calculator", glue + secret + glue]})
            assert (answer.status_code, answer.json()["error"]["param"]) == (400, "/tools_enabled_default/1")
            assert secret not in answer.text
        before = await shown(server)
    async with served(config, data) as server:
        assert await shown(server) == before


async def test_what_cannot_be_read_back_is_left_out_with_a_warning(tmp_path: Path) -> None:
    config, data = with_defaults(tmp_path, {"taint": "allow"}), tmp_path / "data"
    kept = {"tools_enabled_default": ["calculator", "[redacted]"], "on_busy": "reject"}
    others = {"taint": "of another version", "colour": "red", "budget": {"day": {"calls": 7, "hours": 3}}}
    async with served(config, data) as server:
        await server.organism.tenants["acme"].do(ChangeTenantConfig(changes={**kept, **others}))
        await server.organism.tenants["acme"].crash()
    with logged() as said:
        async with served(config, data) as server:
            found = await shown(server)
            assert (found["tools_enabled_default"]["value"], found["on_busy"]["value"]) == (["calculator"], "reject")
            assert (found["taint"]["value"], source(found, "taint")) == ("allow", "yaml")
            assert found["budget"]["value"]["day"] == {"calls": 7}
            assert (await put(server, {"on_busy": "steer"})).status_code == 200
        [warned] = [entry for entry in said.entries if entry["event"] == "tenant_config_left_out"]
    places = {"tools_enabled_default/1", "taint", "colour", "budget/day/hours"}
    assert (warned["tenant"], set(warned["places"])) == ("acme", places)


async def test_a_secret_that_the_operator_has_written_as_a_name_is_not_shown(tmp_path: Path) -> None:
    secret = token("acme", "boss")
    async with served(with_defaults(tmp_path, {"tools_enabled_default": [secret]})) as server:
        assert values(await shown(server))["tools_enabled_default"] == ["[redacted]"]


async def test_who_may_read_may_not_write_and_a_summary_model_is_one_that_the_token_may_use(tmp_path: Path) -> None:
    async with served(with_defaults(tmp_path, {})) as server:
        assert (await put(server, {"on_busy": "queue"}, "reader")).status_code == 403
        denied = await server.call("GET", PATH, headers=bearer("acme", "writer"))
        assert denied.status_code == 403
        assert (await put(server, {"compact_summary_model": "llama-4-scout"}, "small")).status_code == 200
        refused = await put(server, {"compact_summary_model": "gpt-4.1-mini"}, "small")
        assert refused.json()["error"]["code"] == "model_not_in_allowlist"


async def test_the_same_key_writes_once_and_gets_the_first_answer(tmp_path: Path) -> None:
    async with served(with_defaults(tmp_path, {})) as server:
        first = await put(server, {"on_busy": "steer"}, "boss", **{"Idempotency-Key": "once"})
        await put(server, {"on_busy": "force"})
        again = await put(server, {"on_busy": "steer"}, "boss", **{"Idempotency-Key": "once"})
        assert (again.status_code, again.content) == (first.status_code, first.content)
        assert (await shown(server))["on_busy"]["value"] == "force"


async def test_a_budget_that_is_written_bounds_the_next_call(world: MakeWorld) -> None:
    async with served(scripted(world, says("Here.", 20, 5)).config) as server:
        assert (await server.call("PUT", PATH, json={"budget": {"day": {"calls": 1}}})).status_code == 200
        await server.inject("ada", {"text": "Say it."})
        await server.inject("ada", {"text": "Say it."})
        assert (await server.get("/usage"))["total"]["calls"] == 1

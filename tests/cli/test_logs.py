"""``organism log verify``, ``log stats`` and ``doctor`` over the logs of several tenants."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from organism.bootstrap import Parts
from organism.errors import LogDamaged
from organism.model.commands import Inject
from organism.model.ids import folder_of
from organism.server.http.auth import server_key
from organism.sqlite.driver import Pysqlite
from organism.testing import running
from organism.views.views import Query
from tests.cli.command import Ran, in_a_process, organism
from tests.server.served import served
from tests.server.tenanted import hello_with, write_tokens

OTHERS = ("acme", "globex")


@pytest.fixture
async def config(tmp_path: Path) -> Path:
    """The hello organism of three tenants, each with one thread; it ran, its keys lie elsewhere, and it was stopped."""
    config = hello_with(tmp_path, {tenant: {"any": ("admin",)} for tenant in OTHERS})
    async with running(config, tmp_path / "data", Parts(key_path=tmp_path / "chain.key")) as o:
        for tenant in o.organism.tenants.values():
            done = await tenant.do(Inject(to="greeter", json={"name": tenant.id}))
            assert await tenant.ended(getattr(done, "thread_id", ""), 10)
    (tmp_path / "data").chmod(0o700)
    return config


def folder(config: Path, tenant: str) -> Path:
    return config.parent / "data" / "tenants" / folder_of(tenant)


async def asked(config: Path, *words: str | Path) -> Ran:
    here = ("--data", config.parent / "data", "--key", config.parent / "chain.key", "--config", config)
    return await organism(*words, *here)


def files(config: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(config.parent.rglob("*")) if path.is_file()}


def lines(ran: Ran) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in ran.out.splitlines()]


async def test_verify_checks_every_tenants_log_and_default_first(config: Path) -> None:
    said = await asked(config, "log", "verify")
    assert (said.code, [line.partition(": whole: ")[0] for line in said.out.splitlines()]) == (
        0,
        ["default", *sorted(OTHERS, key=folder_of)],
    )
    found = lines(await asked(config, "log", "verify", "--json"))
    assert {(each["tenant"], each["damage"] == [], each["events"] == each["position"]) for each in found} == {
        (tenant, True, True) for tenant in ("default", *OTHERS)
    }


async def test_an_option_selects_one_tenants_log(config: Path) -> None:
    (only,) = lines(await asked(config, "log", "verify", "--tenant", "globex", "--json"))
    assert only["tenant"] == "globex"
    (counted,) = lines(await asked(config, "log", "stats", "--tenant", "acme", "--json"))
    assert (counted["tenant"], counted["threads"]) == ("acme", 1)
    nobody = await asked(config, "log", "verify", "--tenant", "nobody")
    assert (nobody.code, nobody.out) == (5, "")
    assert "Tenant nobody has no log" in nobody.err


async def test_damage_is_reported_with_its_tenant_and_the_rest_is_verified(config: Path) -> None:
    shutil.copy(folder(config, "acme") / "anchor", folder(config, "globex") / "anchor")
    ran = await asked(config, "log", "verify")
    assert ran.code == 1
    assert {line.partition(":")[0] for line in ran.out.splitlines()} == {"default", "acme"}
    assert "globex: " in ran.err
    assert "was not written under the key" in ran.err
    assert "acme:" not in ran.err


@pytest.mark.parametrize("gone", ["acme", "default"])
async def test_a_tenant_whose_whole_directory_is_gone_is_missed_by_verify_and_by_the_start(
    config: Path, gone: str
) -> None:
    shutil.rmtree(folder(config, gone))
    for only in ((), ("--tenant", gone)) if gone == "acme" else ((),):
        ran = await asked(config, "log", "verify", *only)
        assert (ran.code, "holds no log" in ran.err, folder_of(gone) in ran.err) == (1, True, True)
    with pytest.raises(LogDamaged, match=f"the log of the tenant {gone}, is gone"):
        async with running(config, config.parent / "data", Parts(key_path=config.parent / "chain.key")):
            pass
    assert not folder(config, gone).exists()


async def test_the_only_log_of_a_server_is_missed_too(tmp_path: Path) -> None:
    async with served(data=tmp_path):
        server_key(tmp_path)
    shutil.rmtree(tmp_path / "tenants")
    with pytest.raises(LogDamaged, match="the log of the tenant default, is gone"):
        async with served(data=tmp_path):
            pass


async def test_a_tenant_that_was_removed_from_the_list_is_not_missed(config: Path) -> None:
    shutil.rmtree(folder(config, "acme"))
    write_tokens(config.parent, {"globex": {"any": ("admin",)}})
    assert (await asked(config, "log", "verify")).code == 0
    async with running(config, config.parent / "data", Parts(key_path=config.parent / "chain.key")) as o:
        assert set(o.organism.tenants) == {"default", "globex"}


async def test_an_unlisted_tenants_log_is_named_by_its_directory(config: Path) -> None:
    (config.parent / "config" / "tokens.yaml").unlink()
    found = lines(await asked(config, "log", "verify", "--json"))
    assert [each["tenant"] for each in found] == ["default", *sorted(map(folder_of, OTHERS))]
    assert all(each["damage"] == [] for each in found)


async def test_every_tenants_log_is_counted(config: Path) -> None:
    found = lines(await asked(config, "log", "stats", "--json"))
    assert {each["tenant"]: each["threads"] for each in found} == dict.fromkeys(("default", *OTHERS), 1)
    assert all(each["position"] == sum(each["events"].values()) for each in found)
    assert all(each["first_at"] < each["last_at"] and each["file_bytes"]["log.sqlite"] > 0 for each in found)
    said = (await asked(config, "log", "stats")).out
    assert all(f"{tenant}\n" in said for tenant in ("default", *OTHERS))


async def test_the_doctor_looks_at_every_tenants_log_and_key(config: Path) -> None:
    well = await asked(config, "doctor", "--port", "0", "--json")
    assert well.json["ok"], well.out
    keys = sorted(config.parent.glob("chain.key*"))
    keys[1].chmod(0o640)
    (folder(config, "acme") / "anchor").unlink()
    ill = await asked(config, "doctor", "--port", "0", "--json")
    faults = {check["check"]: check["faults"] for check in ill.json["checks"] if check["faults"]}
    assert set(faults) == {"permissions", "log"}
    assert str(keys[1]) in faults["permissions"][0]["fault"]
    assert folder_of("acme") in faults["log"][0]["fault"]


async def test_reading_a_stopped_log_changes_no_file(config: Path) -> None:
    before = files(config)
    for words in (("log", "verify"), ("log", "stats"), ("doctor", "--port", "0")):
        assert (await asked(config, *words)).code == 0
        assert files(config) == before


async def test_a_key_that_is_there_is_never_overwritten_by_a_new_log(config: Path, tmp_path: Path) -> None:
    keys = {path: path.read_bytes() for path in config.parent.glob("chain.key*")}
    shutil.rmtree(folder(config, "acme"))
    ran = await in_a_process(
        "serve", "--config", config, "--data", tmp_path / "data", "--port", "0", "--key", tmp_path / "chain.key"
    )
    assert (ran.code, ran.out) == (1, "")
    assert "the log of the tenant acme, is gone" in ran.err
    assert {path: path.read_bytes() for path in config.parent.glob("chain.key*")} == keys


async def test_rebuild_makes_the_same_rows_again(config: Path) -> None:
    parts = Parts(key_path=config.parent / "chain.key")
    shown: list[list[bytes]] = []
    for _ in range(2):
        async with running(config, config.parent / "data", parts) as o:
            shown.append([(await tenant.views.rows("threads", Query())).rows for tenant in o.organism.tenants.values()])
            held = await asked(config, "log", "rebuild")
            assert (held.code, "held by process" in held.err) == (1, True)
        ran = await asked(config, "log", "rebuild")
        assert (ran.code, len(ran.out.splitlines())) == (0, 1 + len(OTHERS))
        assert (await asked(config, "log", "verify")).code == 0
    assert shown[0] == shown[1]
    assert all(b"completed" in rows for rows in shown[1])


@pytest.mark.parametrize("verb", ["rebuild", "backup"])
async def test_a_log_of_a_newer_layout_is_neither_rebuilt_nor_backed_up(config: Path, verb: str) -> None:
    with closing(Pysqlite().connect(str(folder(config, "default") / "log.sqlite"))) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = files(config)
    ran = await asked(config, "log", verb, *[config.with_name("backup")] * (verb == "backup"))
    assert (ran.code, "The log has layout 99, this program knows layout 2" in ran.err) == (1, True)
    changed = {path for path, text in files(config).items() if before.get(path) != text}
    assert changed <= {folder(config, "default") / "lock"}

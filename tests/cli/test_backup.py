"""``organism log backup`` and ``log restore``: copies next to a running server, restores, and refusals."""

from __future__ import annotations

import asyncio
import hashlib
import io
import itertools
import resource
import shutil
import tarfile
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from organism.bootstrap import Parts
from organism.errors import LibraryDamaged, LogDamaged
from organism.events.vocabulary import ContentErased, DocumentsChanged
from organism.model.commands import Inject
from organism.model.ids import folder_of
from organism.rag.library import By, Library
from organism.testing import Running, running
from tests.cli.command import Ran, names, organism, start_process
from tests.rag import libraries
from tests.rag.libraries import content, texts
from tests.server.tenanted import hello_with

Texts = dict[str, str] | None


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """A data directory with a thread and an index, whose server was stopped."""
    async with libraries.organism(tmp_path / "data") as o:
        await o.tenant.library.replace("x", texts(a="the tower stands", b="the park is large"), None, By())
        await o.inject("greeter", {"name": "Dan"}, wait=True)
    return tmp_path / "data"


@pytest.fixture
async def file(data: Path) -> Path:
    """Its backup."""
    file = data.with_name("backup")
    assert (await organism("log", "backup", file, "--data", data)).code == 0
    return file


async def restored(file: Path, data: Path, *words: str) -> Ran:
    return await organism("log", "restore", file, "--data", data, *words)


async def verified(data: Path, *words: str | Path) -> bool:
    return (await organism("log", "verify", "--data", data, *words)).code == 0


async def position(data: Path) -> int:
    found: int = (await organism("log", "stats", "--data", data, "--json")).json["position"]
    return found


# ── what is copied ───────────────────────────────────────────────────────────────────────────────────────────────────


async def write(library: Library, index_id: str, history: dict[int, Texts], end: asyncio.Event) -> None:
    """Change an index in every way until the end, and note what it holds in each generation."""
    now: dict[str, str] = {}
    for number in itertools.takewhile(lambda _: not end.is_set(), itertools.count()):
        text = f"the tower {number} stands in {index_id}"
        match number % 6:
            case 0:
                await library.replace(index_id, texts(a=text, b=f"park {number}"), None, By())
                now = {"a": text, "b": f"park {number}"}
            case 1 | 4:
                await library.patch(index_id, "a", text, None, By())
                now["a"] = text
            case 2:
                await library.append(index_id, texts(**{f"n{number}": text}), None, By())
                now[f"n{number}"] = text
            case 3:
                await library.delete_document(index_id, "b", By())
                del now["b"]
            case _ if index_id == "z":
                continue
            case _:
                await library.delete_index(index_id, By())
                continue
        history[(await library.index(index_id)).private.generation] = dict(now)


async def test_a_backup_beside_a_busy_server_holds_the_log_and_the_library_of_one_moment(tmp_path: Path) -> None:
    histories: dict[str, dict[int, Texts]] = defaultdict(dict)
    files = [tmp_path / f"backup-{number}" for number in range(3)]
    promised: dict[Path, int] = {}
    end = asyncio.Event()

    async def inject(o: Running) -> None:
        while not end.is_set():
            await o.inject("greeter", {"name": "Dan"}, wait=True)

    async with libraries.organism(tmp_path / "data") as o:
        library = o.tenant.library
        load = [asyncio.ensure_future(write(library, name, histories[name], end)) for name in "xyz"]
        load.append(asyncio.ensure_future(inject(o)))
        await o.until(DocumentsChanged)
        for file in files:
            promised[file] = o.log.head
            assert (await organism("log", "backup", file, "--data", tmp_path / "data")).code == 0
        end.set()
        await asyncio.gather(*load)

    for file in files:
        assert (await restored(file, file.with_suffix(".data"))).code == 0
        assert await verified(file.with_suffix(".data"))
        assert await position(file.with_suffix(".data")) >= promised[file]
        async with libraries.organism(file.with_suffix(".data")) as o:
            held = {name: await content(o.tenant.library, name) for name in "xyz"}
            assert held["z"]
            for name, found in held.items():
                if found is not None:
                    assert found == histories[name][(await o.tenant.library.index(name)).private.generation]


async def test_every_tenants_log_is_copied_without_a_key_that_lies_elsewhere(tmp_path: Path) -> None:
    config, key = hello_with(tmp_path, {"acme": {"any": ("admin",)}}), tmp_path / "chain.key"
    async with running(config, tmp_path / "data", Parts(key_path=key)) as o:
        for tenant in o.organism.tenants.values():
            await tenant.do(Inject(to="greeter", json={"name": tenant.id}))
    here = ("--data", tmp_path / "data", "--key", key, "--config", config)
    assert (await organism("log", "backup", tmp_path / "backup", *here)).out.count(": whole, up to position ") == 2
    with tarfile.open(tmp_path / "backup") as tar:
        assert not [name for name in tar.getnames() if name.endswith("key")]

    without = await restored(tmp_path / "backup", tmp_path / "new")
    assert (without.code, "a key elsewhere" in without.err, "--key FILE" in without.err) == (5, True, True)
    missing = await restored(tmp_path / "backup", tmp_path / "new", "--key", str(tmp_path / "none"))
    assert (missing.code, f"{tmp_path / 'none'}, the key" in missing.err) == (5, True)
    wrong = tmp_path / "wrong.key"
    for path in (wrong, wrong.with_name(f"wrong.key.{folder_of('acme')}")):
        path.write_text("ab" * 32)
        path.chmod(0o600)
    other = await restored(tmp_path / "backup", tmp_path / "new", "--key", str(wrong))
    assert (other.code, "was not written under the key" in other.err) == (1, True)
    assert names(tmp_path / "new") == []

    assert (await restored(tmp_path / "backup", tmp_path / "new", "--key", str(key))).code == 0
    assert await verified(tmp_path / "new", "--key", key)
    assert names(tmp_path / "new/tenants") == sorted(("default", folder_of("acme")))


async def test_a_backup_and_what_is_restored_are_for_the_owner_alone(file: Path) -> None:
    assert (await restored(file, file.with_name("new"))).code == 0
    made = [file, file.with_name("new"), *file.with_name("new").rglob("*")]
    assert [path.name for path in made if path.stat().st_mode & 0o077] == []
    assert names(file.parent) == ["backup", "data", "new"]


async def test_the_log_of_a_killed_server_is_copied_with_its_wal(tmp_path: Path) -> None:
    async with libraries.organism(tmp_path / "data") as o:
        head = (await o.inject("greeter", {"name": "Dan"})).position
        shutil.copytree(tmp_path / "data", tmp_path / "killed")
    before = (tmp_path / "killed/tenants/default/log.sqlite-wal").read_bytes()
    assert (await organism("log", "backup", tmp_path / "backup", "--data", tmp_path / "killed")).code == 0
    assert (tmp_path / "killed/tenants/default/log.sqlite-wal").read_bytes() == before
    assert (await restored(tmp_path / "backup", tmp_path / "new")).code == 0
    assert await position(tmp_path / "new") >= head


# ── what is put in place ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_restored_log_has_a_timeline_of_its_own_and_goes_on(data: Path, file: Path) -> None:
    async with libraries.organism(data) as o:
        timeline = o.log.timeline
    assert (await restored(file, data, "--force")).code == 0
    async with libraries.organism(data) as o:
        assert o.log.timeline != timeline
        assert (await o.inject("greeter", {"name": "Eve"}, wait=True)).replies
        assert await content(o.tenant.library, "x") == {"a": "the tower stands", "b": "the park is large"}
    assert await verified(data)


async def test_force_keeps_what_was_there(data: Path, file: Path) -> None:
    async with libraries.organism(data) as o:
        await o.inject("greeter", {"name": "Eve"}, wait=True)
    head = await position(data)
    refused = await restored(file, data)
    assert (refused.code, f"{data} holds logs already" in refused.err, "--force" in refused.err) == (6, True, True)
    assert await position(data) == head
    forced = await restored(file, data, "--force")
    (kept,) = (data / name for name in names(data) if name.startswith("tenants."))
    assert (forced.code, f"What was there lies in {kept}" in forced.err) == (0, True)
    assert await position(data) < head
    (data / "tenants").rename(data / "tenants.restored")
    kept.rename(data / "tenants")
    assert (await position(data), await verified(data)) == (head, True)


async def test_a_damaged_log_is_replaced_by_its_backup(data: Path, file: Path) -> None:
    log = data / "tenants/default/log.sqlite"
    log.unlink()
    log.symlink_to(file)
    assert (await restored(file, data, "--force")).code == 0
    assert await verified(data)


async def test_a_log_that_a_server_holds_is_not_replaced(data: Path, file: Path) -> None:
    async with libraries.organism(data) as o:
        ran = await restored(file, data, "--force")
        assert (ran.code, "is held by process" in ran.err) == (1, True)
        assert (await o.inject("greeter", {"name": "Dan"}, wait=True)).replies
    assert await verified(data)


async def test_a_start_beside_a_restore_that_did_not_end_is_refused(data: Path, file: Path) -> None:
    (data / "tenants").rename(data / "tenants.2026-01-15T10-00-00Z")
    (data / "tenants.new").mkdir()
    with pytest.raises(LogDamaged, match=r"A restore into .* did not end: run `organism log restore"):
        async with libraries.organism(data):
            pass
    assert (await restored(file, data)).code == 0
    assert await verified(data)


# ── back to a position ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_log_may_end_at_any_of_its_positions(data: Path, file: Path) -> None:
    head = await position(data)
    for until in (1, 2, *range(3, head, 5), head):
        new = data.with_name(f"until-{until}")
        ran = await restored(file, new, "--until", str(until), "--json")
        assert (ran.code, ran.json["position"] >= until, await verified(new)) == (0, True, True)
        assert await position(new) == ran.json["position"]


async def test_an_index_without_documents_that_were_deleted_later_says_so(data: Path) -> None:
    async with libraries.organism(data) as o:
        await o.tenant.library.replace("y", texts(c="a street of shops"), None, By())
        until = o.log.head
        await o.tenant.library.patch("x", "a", "the tower was closed", None, By())
        await o.tenant.library.append("y", texts(d="a bridge over water"), None, By())
    file, new = data.with_name("backup"), data.with_name("new")
    assert (await organism("log", "backup", file, "--data", data)).code == 0
    ran = await restored(file, new, "--until", str(until))
    assert (ran.code, "The library does not go back" in ran.err) == (0, True)
    async with libraries.organism(new) as o:
        with pytest.raises(LibraryDamaged):
            await o.tenant.library.document("x", "a")
        assert (await o.inject("greeter", {"name": "Eve"}, wait=True)).replies
        assert await content(o.tenant.library, "y") == {"c": "a street of shops"}


async def test_no_position_is_taken_that_the_log_cannot_end_at(tmp_path: Path) -> None:
    async with libraries.organism(tmp_path / "data") as o:
        thread = (await o.inject("greeter", {"name": "Dan"}, wait=True)).thread_id
        until = o.log.head
        await o.log.erase(thread, o.log.last_at)
        erased = await o.until(ContentErased)
    file = tmp_path / "backup"
    assert (await organism("log", "backup", file, "--data", tmp_path / "data")).code == 0
    for said, code, words in (
        (f"was erased at position {erased.position}", 1, (str(until),)),
        (f"The log ends at position {await position(tmp_path / 'data')}", 1, ("100000",)),
        ("valid integer", 2, ("soon",)),
        ("Invalid value for '--until'", 2, ("0",)),
        ("holds no log of tenant acme", 5, ("1", "--tenant", "acme")),
    ):
        ran = await restored(file, tmp_path / "new", "--until", *words)
        assert (ran.code, said in ran.err) == (code, True), ran.err
    assert (await restored(file, tmp_path / "new", "--until", str(erased.position))).code == 0


# ── wrong input ──────────────────────────────────────────────────────────────────────────────────────────────────────

Members = dict[str, bytes]


def changed(file: Path, change: Callable[[Members], object]) -> None:
    with tarfile.open(file) as tar:
        members = {name: tar.extractfile(name).read() for name in tar.getnames()}  # type: ignore[union-attr]  # files
    change(members)
    with tarfile.open(file, "w") as tar:
        for name, text in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))


def linked(file: Path) -> None:
    with tarfile.open(file) as tar:
        members = tar.getmembers()
        texts = [tar.extractfile(member).read() for member in members]  # type: ignore[union-attr]  # files
    with tarfile.open(file, "w") as tar:
        for member, text in zip(members, texts, strict=True):
            if member.name.endswith("anchor"):
                member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
            tar.addfile(member, io.BytesIO(text))


def renamed(file: Path, old: str, new: str) -> None:
    def change(members: Members) -> None:
        found = {name.replace(old, new): text.replace(old.encode(), new.encode()) for name, text in members.items()}
        members.clear()
        members.update(found)

    changed(file, change)


def replaced(file: Path, old: bytes, new: bytes) -> None:
    whole = file.read_bytes()
    assert old in whole
    file.write_bytes(whole.replace(old, new))


FOREIGN = "is not a whole file of `organism log backup`"
DAMAGED: dict[str, tuple[Callable[[Path], object], str]] = {
    "a text": (lambda file: file.write_text("This is no backup. " * 999), "it is no tar, or was cut off"),
    "empty": (lambda file: file.write_bytes(b""), "it is no tar, or was cut off"),
    "cut in the middle": (lambda file: file.write_bytes(file.read_bytes()[:100_000]), "it is no tar, or was cut off"),
    "cut behind a file": (lambda file: changed(file, lambda members: members.popitem()), FOREIGN),
    "a file is missing": (lambda file: changed(file, lambda members: members.pop("tenants/default/anchor")), FOREIGN),
    "a file was added": (lambda file: changed(file, lambda members: members.update({"more": b""})), FOREIGN),
    "a foreign tar": (lambda file: renamed(file, "backup.json", "package.json"), FOREIGN),
    "no JSON": (lambda file: changed(file, lambda members: members.update({"backup.json": b"{"})), FOREIGN),
    "no UTF-8": (lambda file: replaced(file, b'"organism":"0', b'"organism":"\xff'), FOREIGN),
    "a path leads out": (lambda file: renamed(file, "tenants/default/anchor", "tenants/../../anchor"), FOREIGN),
    "an absolute path": (lambda file: renamed(file, "tenants/default/anchor", "/tmp/anchor"), FOREIGN),  # noqa: S108 - refused
    "a link": (linked, FOREIGN),
    "newer": (lambda file: replaced(file, b'"layout":1', b'"layout":2'), "has the layout 2; this program knows 1"),
    "a text changed": (
        lambda file: replaced(file, b"the tower stands", b"the tower stood!"),
        "library.sqlite is not as it was written",
    ),
    "an event changed": (lambda file: replaced(file, b"message_sent", b"message_lent"), "log.sqlite is not as it was"),
}


@pytest.mark.parametrize("kind", DAMAGED)
async def test_nothing_is_restored_of_a_file_that_is_no_whole_backup(data: Path, file: Path, kind: str) -> None:
    change, said = DAMAGED[kind]
    change(file)
    for target, words in ((file.with_name("new"), ()), (data, ("--force",))):
        ran = await restored(file, target, *words)
        assert (ran.code, said in ran.err, "next: " in ran.err) == (1, True, True), ran.err
    assert names(file.with_name("new")) == []
    assert names(data) == ["audit", "tenants"]
    assert names(file.parent) == ["backup", "data", "new"]
    assert await verified(data)


def forged(members: Members) -> None:
    """An event is changed, and the digest of its file too."""
    log = members["tenants/default/log.sqlite"]
    members["tenants/default/log.sqlite"] = new = log.replace(b"message_sent", b"message_lent")
    before, after = (hashlib.sha256(each).hexdigest().encode() for each in (log, new))
    members["backup.json"] = members["backup.json"].replace(before, after)


async def test_a_log_that_does_not_verify_is_not_restored_though_its_file_is_whole(file: Path) -> None:
    changed(file, forged)
    ran = await restored(file, file.with_name("new"))
    assert (ran.code, "the unit does not fit its digest" in ran.err) == (1, True)
    assert names(file.with_name("new")) == []


async def test_a_damaged_log_is_not_backed_up(data: Path) -> None:
    replaced(data / "tenants/default/log.sqlite", b"message_sent", b"message_lent")
    ran = await organism("log", "backup", data.with_name("backup"), "--data", data)
    assert (ran.code, "The log of default is damaged" in ran.err, "next: " in ran.err) == (1, True, True)
    assert names(data.parent) == ["data"]


async def test_a_library_that_cannot_be_read_is_named(data: Path) -> None:
    library = data / "tenants/default/library.sqlite"
    library.write_text("This is no database. " * 999)
    ran = await organism("log", "backup", data.with_name("backup"), "--data", data)
    assert (ran.code, f"{library} cannot be read: " in ran.err) == (1, True)
    library.unlink()
    assert (await organism("log", "backup", data.with_name("backup"), "--data", data)).code == 0
    assert (await restored(data.with_name("backup"), data.with_name("new"))).code == 0


async def test_what_cannot_be_written_or_found_is_reported_with_the_next_step(data: Path, file: Path) -> None:
    nowhere = file.parent / "nowhere"
    for said, code, words in (
        (f"{file} exists, and is not overwritten", 6, ("backup", file, "--data", data)),
        (f"{nowhere}, the folder of the backup, does not exist", 5, ("backup", nowhere / "b", "--data", data)),
        (f"{nowhere} holds no log", 5, ("backup", file.with_name("b"), "--data", nowhere)),
        (f"There is no file {nowhere}", 5, ("restore", nowhere, "--data", file.with_name("new"))),
        ("cannot be restored into", 1, ("restore", file, "--data", file / "below a file")),
    ):
        ran = await organism("log", *words)
        assert (ran.code, said in ran.err, "next: " in ran.err) == (code, True, True), ran.err
    assert names(file.parent) == ["backup", "data"]


@pytest.mark.faults
async def test_a_full_disk_leaves_no_backup_and_no_restored_log(data: Path, file: Path) -> None:
    def nearly_full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))

    target = file.with_name("other")
    for words in (("backup", target, "--data", data), ("restore", file, "--data", target)):
        process = await start_process("log", *words, preexec_fn=nearly_full)
        _, said = await process.communicate()
        assert (process.returncode, f"{words[1]} cannot be " in said.decode()) == (1, True), said
        assert "next: " in said.decode()
    assert names(target) == []

    for room_bytes in (50_000, 0):  # too little for the rows, and for what SQLite makes next to the log
        full = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (room_bytes, room_bytes))
        process = await start_process("log", "verify", "--data", data, preexec_fn=full)
        _, said = await process.communicate()
        assert (process.returncode, "could not be verified" in said.decode()) == (7, True), said

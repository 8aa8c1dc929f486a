"""``organism rag``: files become documents, once; and what is in the library is listed, found and deleted."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfWriter

from organism.bootstrap import Parts
from organism.cli.ingest import MOST_FILE_BYTES, LeftOut, bytes_of, files_in
from organism.errors import Upstream
from organism.rag.files import PIECE_CHARS, Unreadable
from organism.rag.hashed_words import Embedded, HashedWords
from tests.cli.command import REPOSITORY, Ran, on_terminal, organism
from tests.rag.reading import pieces
from tests.rag.test_isolated_reader import CIRCLE
from tests.server.served import TOKEN, Served, served

GATE = "# Berlin\n\n## Gate\n\nThe Brandenburg Gate was built in 1791.\n\n## Park\n\nThe Tiergarten is large.\n"
PAGE = "<html><head><title>no</title><style>p {}</style></head><body><h1>Ships</h1><p>2,400 a <b>year</b></p></body>"


@pytest.fixture
def words() -> HashedWords:
    return HashedWords()


@pytest.fixture
async def server(words: HashedWords) -> AsyncIterator[Served]:
    async with served(parts=Parts(embeddings=words)) as started:
        yield started


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "files"
    (place / ".git").mkdir(parents=True)
    (place / ".git" / "config").write_text("hidden")
    (place / "berlin.md").write_text(GATE)
    (place / "ships.html").write_text(PAGE)
    (place / "picture.png").write_bytes(b"\x89PNG\0")
    return place


async def rag(server: Served, *words: str | Path) -> Ran:
    return await organism("rag", *words, ORGANISM_URL=server.url, ORGANISM_TOKEN=TOKEN)


async def added(server: Served, *paths: str | Path) -> dict[str, Any]:
    ran = await rag(server, "add", "kb", *paths, "--json")
    assert ran.code == 0, ran.err
    counted: dict[str, Any] = ran.json
    return counted


@pytest.mark.parametrize("path", ["kb", "docs"], ids=["missing", "there"])
async def test_a_folder_in_the_place_of_the_index_is_refused(server: Served, path: str) -> None:
    ran = await rag(server, "add", "./docs", path)
    assert ran.code == 2
    assert "'./docs' is not an id" in ran.err
    assert (await rag(server, "list", "--json")).json == []


async def test_files_of_a_folder_become_documents_and_what_has_no_text_is_named(server: Served, folder: Path) -> None:
    ran = await rag(server, "add", "kb", folder)
    assert (ran.code, ran.out) == (0, "Files: 2; pieces sent: 2, unchanged: 0, deleted: 0.\n")
    assert "picture.png is left out: it is not UTF-8" in ran.err
    documents = (await rag(server, "docs", "kb", "--json")).json
    assert [(each["metadata"]["path"], each["text"]) for each in documents] == [
        ((folder / "berlin.md").as_posix(), GATE.strip()),
        ((folder / "ships.html").as_posix(), "Ships\n\n2,400 a year"),
    ]


async def test_what_is_there_already_is_neither_sent_nor_embedded_again(
    server: Served, words: HashedWords, folder: Path
) -> None:
    await added(server, folder)
    words.texts.clear()
    again = await added(server, folder)
    assert (again["sent"], again["unchanged"], words.texts) == (0, 2, [])


async def test_of_a_changed_file_the_old_pieces_go(server: Served, folder: Path) -> None:
    (folder / "berlin.md").write_text("\n\n".join(f"## Part {number}\n\n{'word ' * 200}" for number in range(4)))
    assert (await added(server, folder))["sent"] == 5
    (folder / "berlin.md").write_text(GATE)
    changed = await added(server, folder)
    assert (changed["sent"], changed["unchanged"], changed["deleted"]) == (1, 1, 3)
    assert len((await rag(server, "docs", "kb", "--json")).json) == 2


async def test_what_an_interrupted_ingest_has_not_sent_is_sent_by_the_next(server: Served, folder: Path) -> None:
    await added(server, folder / "berlin.md")
    rest = await added(server, folder)
    assert (rest["sent"], rest["unchanged"]) == (1, 1)


async def test_a_file_that_is_named_and_cannot_be_read_is_a_failure_and_the_others_go_on(
    server: Served, folder: Path
) -> None:
    ran = await rag(server, "add", "kb", folder / "none.txt", folder / "berlin.md")
    assert (ran.code, ran.out) == (1, "Files: 1; pieces sent: 1, unchanged: 0, deleted: 0.\n")
    assert "none.txt is left out: No such file or directory." in ran.err


async def test_a_file_that_is_named_twice_is_sent_once(server: Served, folder: Path) -> None:
    counted = await added(server, folder, folder / "berlin.md")
    assert (counted["files"], counted["sent"]) == (2, 2)


async def test_names_that_no_file_can_have_are_reported_and_the_others_go_on(server: Served, folder: Path) -> None:
    (folder / "ships.html").rename(os.fsdecode(bytes(folder) + b"/caf\xe9.txt"))
    ran = await rag(server, "add", "kb", folder, folder / ("long" * 100))
    assert (ran.code, ran.out) == (1, "Files: 1; pieces sent: 1, unchanged: 0, deleted: 0.\n")
    assert "txt is left out: its path is not 1 to 1000 bytes of printable text; rename it first." in ran.err
    assert "long is left out: File name too long." in ran.err


async def test_of_a_file_that_has_no_text_any_more_the_pieces_go(server: Served, folder: Path) -> None:
    await added(server, folder)
    (folder / "berlin.md").write_text("")
    ran = await rag(server, "add", "kb", folder)
    assert (ran.code, ran.out) == (0, "Files: 2; pieces sent: 0, unchanged: 1, deleted: 1.\n")
    assert "berlin.md has no text" in ran.err


async def test_documents_are_found_shown_and_deleted(server: Served, folder: Path) -> None:
    await added(server, folder / "berlin.md")
    found = (await rag(server, "query", "kb", "When was the Gate built?", "--json")).json
    (hit,) = found["results"]
    shown = await rag(server, "docs", "kb", hit["id"])
    assert "The Brandenburg Gate" in (await rag(server, "query", "kb", "Gate")).out
    assert "The Brandenburg Gate" in shown.out
    assert "kb" in (await rag(server, "list")).out
    assert (await rag(server, "rm", "kb", hit["id"])).out == "Deleted.\n"
    assert (await rag(server, "rm", "kb", hit["id"])).out == "There was no such document.\n"
    assert (await rag(server, "query", "kb", "Gate")).out == "Nothing was found.\n"
    assert (await rag(server, "rm", "kb")).out == "Deleted.\n"
    assert (await rag(server, "rm", "kb")).code == 5


async def test_an_index_gets_another_model(server: Served, folder: Path) -> None:
    await added(server, folder)
    ran = await rag(server, "reembed", "kb", "hashed-words")
    assert (ran.code, ran.out) == (0, "2 documents, now by the model hashed-words.\n")
    ran = await rag(server, "reembed", "kb", "none")
    assert ran.code == 1
    assert "There is no embedding model 'none'" in ran.err


async def test_on_a_terminal_nothing_of_the_progress_is_left(server: Served, folder: Path) -> None:
    shown = await on_terminal("rag", "add", "kb", folder / "berlin.md", ORGANISM_URL=server.url, ORGANISM_TOKEN=TOKEN)
    assert shown.startswith("Files: 1; pieces sent: 1")


def test_a_link_that_leads_round_in_circles_is_not_followed(folder: Path) -> None:
    (folder / "again").symlink_to(folder)
    assert [file.name for file in files_in(folder)] == ["berlin.md", "picture.png", "ships.html"]


def test_a_page_without_the_ends_of_its_head_and_body_is_read(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<html><head><title>no</title><body><h1>Ships</h1><p>2,400 a year")
    assert [piece.text for piece in pieces(tmp_path / "page.html")] == ["Ships\n\n2,400 a year"]


def test_a_huge_file_is_left_out(tmp_path: Path) -> None:
    with (tmp_path / "huge.txt").open("wb") as sparse:
        sparse.truncate(MOST_FILE_BYTES + 1)
    with pytest.raises(LeftOut, match="more than 33554432 bytes"):
        bytes_of(tmp_path / "huge.txt")


def test_a_long_text_is_cut_into_pieces_that_fit(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("Ein Satz über Größe. " * 1_000)
    found = pieces(tmp_path / "long.txt")
    assert not found[0].id.startswith("-"), "as an argument it would be an option"
    assert len(found) > 10
    assert max(len(piece.text) for piece in found) <= PIECE_CHARS
    assert len({piece.id for piece in found}) == len(found)


def test_a_pdf_that_is_encrypted_or_none_is_reported(tmp_path: Path) -> None:
    writer = PdfWriter()
    writer.add_blank_page(100, 100)
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(tmp_path / "locked.pdf")
    (tmp_path / "none.pdf").write_bytes(b"%PDF-1.7 but no more")
    for name, why in (("locked.pdf", "encrypted"), ("none.pdf", "as a PDF")):
        with pytest.raises(Unreadable, match=why):
            pieces(tmp_path / name)


async def test_a_pdf_whose_cipher_is_not_installed_is_reported(tmp_path: Path) -> None:
    writer = PdfWriter()
    writer.add_blank_page(100, 100)
    writer.encrypt("secret", algorithm="AES-256")
    writer.write(tmp_path / "locked.pdf")
    without = "import sys; sys.modules.update(cryptography=None, Crypto=None); from pathlib import Path\n"
    script = f"{without}from tests.rag.reading import pieces; pieces(Path({str(tmp_path / 'locked.pdf')!r}))"
    ran = await asyncio.create_subprocess_exec(sys.executable, "-c", script, cwd=REPOSITORY, stderr=PIPE)
    _, err = await ran.communicate()
    assert b"Unreadable: it is encrypted; decrypt it first" in err


@pytest.mark.parametrize("index", ["..", "."])
async def test_an_index_that_no_url_can_name_is_refused(server: Served, folder: Path, index: str) -> None:
    ran = await rag(server, "add", index, folder)
    assert ran.code == 1
    assert "but not `.` or `..`" in ran.err


def pdf(*pages: str) -> bytes:
    """A PDF with a line of text on each page."""
    kids = " ".join(f"{4 + 2 * at} 0 R" for at in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for at, text in enumerate(pages):
        drawn = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET"
        more = f"/Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * at} 0 R"
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] {more} >>",
            f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream",
        ]
    body, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj\n{each}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    head = (
        f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\n"
    )
    return body + f"{head}startxref\n{len(body)}\n%%EOF\n".encode()


async def test_the_pages_of_a_pdf_become_documents_that_say_which_page_they_are(server: Served, tmp_path: Path) -> None:
    (tmp_path / "gate.pdf").write_bytes(pdf("The gate was built in 1791.", "The park is large."))
    assert (await added(server, tmp_path / "gate.pdf"))["sent"] == 2
    documents = (await rag(server, "docs", "kb", "--json")).json
    assert [(each["metadata"]["page"], each["text"]) for each in documents] == [
        (1, "The gate was built in 1791."),
        (2, "The park is large."),
    ]
    (tmp_path / "gate.pdf").write_bytes(pdf("The gate was built in 1791."))
    changed = await added(server, tmp_path / "gate.pdf")
    assert (changed["sent"], changed["deleted"]) == (1, 1)


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<script>var a = '<p>no</p>';</script><p>Yes</p><script src=x></script>", "Yes"),
        ("<style>p { content: 'no' }</style><p>Yes</p><style>no", "Yes"),
        ("<SCRIPT type=module>no</SCRIPT><p>Yes<br>and more", "Yes\n\nand more"),
        ("<p>Yes</p><!-- no --><noscript>no</noscript><template><p>no</p></template>", "Yes"),
        ("<p>Caf&eacute; &amp; &#x1F600; &lt;b&gt;</p>", "Café & 😀 <b>"),
        ("<title>no</title></script></style><p>Yes", "Yes"),
    ],
)
def test_of_a_page_only_what_a_reader_sees_is_taken(tmp_path: Path, page: str, text: str) -> None:
    (tmp_path / "page.html").write_text(page)
    assert [piece.text for piece in pieces(tmp_path / "page.html")] == [text]


class Interrupting(HashedWords):
    """A model that serves so many calls; the next one waits until it is ended, and fails."""

    def __init__(self, served_calls: int) -> None:
        super().__init__()
        self.left = served_calls
        self.waits = asyncio.Event()
        self.ends = asyncio.Event()

    async def embed(self, model: str, texts: Sequence[str]) -> Embedded:
        if not self.left and texts:
            self.waits.set()
            await self.ends.wait()
            raise Upstream("The model is gone.")
        self.left -= len(texts) > 0
        return await super().embed(model, texts)


async def test_an_ingest_that_was_killed_goes_on_where_it_was_and_embeds_no_text_twice(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    for number in range(80):
        (tmp_path / "files" / f"{number:02}.txt").write_text(f"This is text {number}.")
    words = Interrupting(1)
    async with served(data=tmp_path / "data", parts=Parts(embeddings=words)) as server:
        command = [sys.executable, "-m", "organism", "rag", "add", "kb", str(tmp_path / "files")]
        named = {**os.environ, "ORGANISM_URL": server.url, "ORGANISM_TOKEN": TOKEN}
        killed = await asyncio.create_subprocess_exec(*command, cwd=REPOSITORY, env=named, stdout=PIPE, stderr=PIPE)
        await words.waits.wait()
        killed.kill()
        await killed.communicate()
        words.ends.set()
    again = HashedWords()
    async with served(data=tmp_path / "data", parts=Parts(embeddings=again)) as server:
        counted = await added(server, tmp_path / "files")
        assert (counted["files"], counted["sent"] + counted["unchanged"]) == (80, 80)
        assert counted["unchanged"] >= 1
        assert (await rag(server, "list", "--json")).json[0]["doc_count"] == 80
    assert sorted([*words.texts, *again.texts]) == sorted(f"This is text {number}." for number in range(80))


@pytest.mark.parametrize("index", ["a b", "x" * 129, "ä"])
async def test_an_index_that_cannot_be_is_refused_and_none_begins(server: Served, folder: Path, index: str) -> None:
    ran = await rag(server, "add", index, folder / "berlin.md")
    assert ran.code == 1
    assert "1 to 128 letters" in ran.err
    assert (await rag(server, "list", "--json")).json == []


async def test_files_that_cannot_be_read_are_reported_and_the_others_are_sent(server: Served, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "secret.txt").write_text("Hidden.")
    (tmp_path / "files" / "out.txt").symlink_to(tmp_path / "secret.txt")
    (tmp_path / "files" / "circle.pdf").write_bytes(CIRCLE)
    (tmp_path / "files" / "text.txt").write_text("A text.")
    (tmp_path / "files" / "\x1b.txt").write_text("Of a name that no server takes.")
    os.mkfifo(tmp_path / "files" / "fifo.txt")
    ran = await rag(server, "add", "kb", tmp_path / "files")
    assert (ran.code, ran.out) == (0, "Files: 1; pieces sent: 1, unchanged: 0, deleted: 0.\n")
    for name, why in (
        ("out.txt", "a link out"),
        ("circle.pdf", "cannot be read"),
        ("fifo.txt", "no regular file"),
        (".txt", "printable"),
    ):
        assert any(name in line and why in line for line in ran.err.splitlines()), ran.err

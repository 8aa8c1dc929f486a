"""A search by words finds words that stand inside a sentence without spaces, in old indices too."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

from organism.rag import store
from organism.rag.library import By, Library
from organism.rag.store import Expected, Store
from organism.sqlite.driver import Pysqlite
from tests.cli.command import organism as command
from tests.rag.layouts import make_third
from tests.rag.libraries import hits, organism, texts

SENTENCES = {
    "chinese": "北京图书馆的历史很长。",
    "japanese": "私は東京都に住んでいて、猫が好きです。",
    "katakana": "ｶﾞﾗｽのﾃｰﾌﾞﾙを買う",
    "mixed": "Pythonの使い方を学ぶ",
    "korean": "서울에서 친구를 만났습니다.",
    "thai": "ฉันไปกรุงเทพเพื่อซื้อน้ำ",
    "lao": "ຂ້ອຍຢູ່ວຽງຈັນກັບຄອບຄົວ",
    "khmer": "ខ្ញុំរស់នៅភ្នំពេញជាមួយគ្រួសារ",
    "myanmar": "ကျွန်တော်ရန်ကုန်မှာနေတယ်",
    "tibetan": "ང་ལྷ་ས་ལ་སྡོད་",
    "rare": "彼は𠮷野家と𩸽を愛する",
    "variant": "葛\U000e0100飾区の地図",
    "wide": "新しいＬＩＮＵＸの本",
    "squared": "全部で㌔五百円㈱",
}
QUESTIONS = {
    "图书馆": "chinese",
    "历史": "chinese",
    "東京": "japanese",
    "東京都": "japanese",
    "猫": "japanese",
    "ガラス": "katakana",
    "ﾃｰﾌﾞﾙ": "katakana",
    "テーブル": "katakana",
    "python": "mixed",
    "使い方": "mixed",
    "Pythonの使い方": "mixed",
    "서울": "korean",
    "친구": "korean",
    "\u1109\u1165\u110b\u116e\u11af": "korean",
    "กรุงเทพ": "thai",
    "น้ำ": "thai",
    "ວຽງຈັນ": "lao",
    "ភ្នំពេញ": "khmer",
    "ရန်ကုန်": "myanmar",
    "ལྷ་ས": "tibetan",
    "𠮷野家": "rare",
    "𩸽": "rare",
    "葛飾": "variant",
    "linux": "wide",
    "キロ": "squared",
}


@asynccontextmanager
async def filled(data: Path | None) -> AsyncIterator[Library]:
    async with organism(data) as o:
        await o.tenant.library.replace("x", texts(**SENTENCES), None, By())
        yield o.tenant.library


async def best_by_words(library: Library) -> dict[str, str]:
    """What a search by words finds first for each question."""
    found = {asked: await hits(library, "x", asked, "keyword") for asked in QUESTIONS}
    return {asked: next(iter(each), "") for asked, each in found.items()}


async def test_a_word_inside_a_sentence_without_spaces_is_found() -> None:
    async with filled(None) as library:
        assert await best_by_words(library) == QUESTIONS


async def test_what_has_none_of_the_pairs_is_not_found_and_texts_stay_as_they_were() -> None:
    async with filled(None) as library:
        assert await hits(library, "x", "大阪", "keyword") == {}
        assert await hits(library, "x", "00006771", "keyword") == {}
        for name, text in SENTENCES.items():
            assert (await library.document("x", name)).text == text
        await library.patch("x", "japanese", "京都の猫", None, By())
        await library.delete_document("x", "chinese", By())
        assert (*await hits(library, "x", "東京", "keyword"),) == ()
        assert (*await hits(library, "x", "图书馆", "keyword"),) == ()
        assert (*await hits(library, "x", "京都", "keyword"),) == ("japanese",)


def turn_into_third(data: Path) -> None:
    with closing(Pysqlite().connect(str(data / "tenants/default/library.sqlite"))) as connection:
        make_third(connection)


async def doctor_says(data: Path) -> str:
    """What ``organism doctor`` says of the library."""
    checks = (await command("doctor", "--json", "--port", "0", "--data", data)).json["checks"]
    summary: str = next(each["summary"] for each in checks if each["check"] == "library")
    return summary


async def test_an_index_of_an_earlier_version_is_indexed_again_while_it_is_searched(tmp_path: Path) -> None:
    async with filled(tmp_path):
        pass
    turn_into_third(tmp_path)
    assert f"{len(SENTENCES)} documents" in await doctor_says(tmp_path)
    async with organism(tmp_path) as o:
        library = o.tenant.library
        assert await hits(library, "x", "Python", "vector")
        while await best_by_words(library) != QUESTIONS:
            assert (await library.document("x", "mixed")).text == SENTENCES["mixed"]
        await library.delete_document("x", "chinese", By())
        assert await hits(library, "x", "图书馆", "keyword") == {}
    assert "indexed again" not in await doctor_says(tmp_path)
    assert (await command("log", "verify", "--data", tmp_path)).err == ""


async def test_a_death_while_an_index_is_indexed_again_leaves_the_rest_to_the_next_start(tmp_path: Path) -> None:
    many = {f"n{number}": f"第{number}章の図書館" for number in range(300)}
    async with organism(tmp_path) as o:
        await o.tenant.library.replace("x", texts(**dict(list(many.items())[:256])), None, By())
        await o.tenant.library.append("x", texts(**dict(list(many.items())[256:])), None, By())
        digests = await o.tenant.library.digests("x", list(many))
        generation = (await o.tenant.library.index("x")).private.generation
    turn_into_third(tmp_path)
    dying = Store(tmp_path / "tenants/default/library.sqlite", Pysqlite())
    expected = {"x": Expected(generation, "plain", digests)}
    await dying.write(store.open_tables, expected, b"a key")
    assert await dying.write(store.make_words, 0) == 256
    await dying.close()
    assert "44 documents" in await doctor_says(tmp_path)
    async with organism(tmp_path) as o:
        while next(iter(await hits(o.tenant.library, "x", "299章", "keyword"))) != "n299":
            pass


async def test_words_that_somebody_exchanged_in_the_file_are_made_again_at_a_start(tmp_path: Path) -> None:
    async with filled(tmp_path):
        pass
    with closing(Pysqlite().connect(str(tmp_path / "tenants/default/library.sqlite"))) as connection:
        connection.execute("UPDATE documents SET words = 'nothing'")
    async with organism(tmp_path) as o:
        while await best_by_words(o.tenant.library) != QUESTIONS:
            pass

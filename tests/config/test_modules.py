from __future__ import annotations

import asyncio
import gc
import os
import py_compile
import sys
import weakref
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_type_hints

import pytest

from organism.config.settings import Listener, Settings, diff
from tests.config.place import GREETER, HEAD, Place

SAYING = """
from dataclasses import dataclass

from handlers.words import WORD


@dataclass
class Greeting:
    name: str


async def greet(payload: Greeting, metadata: object) -> str:
    return f"{WORD}, {payload.name}"


async def late(payload: Greeting, metadata: object) -> str:
    from handlers.later import WORD
    import handlers.later as later
    from . import later as relative

    assert later is relative and later.WORD == WORD
    return f"{WORD}, {payload.name}"
"""


def say(listener: Listener | None) -> str:
    assert listener is not None
    assert listener.handler is not None
    answer: str = asyncio.run(listener.handler(listener.payload_class(name="Ada"), None))
    return answer


def speak(place: Place, word: str, later: str = "later") -> Settings:
    """Write what the handlers say, and load."""
    place.write("handlers/words.py", f"WORD = {word!r}\n")
    place.write("handlers/later.py", f"WORD = {later!r}\n")
    place.write("handlers/hello.py", SAYING)
    place.yaml(HEAD + GREETER + GREETER.replace("greeter", "late").replace("hello.greet", "hello.late"))
    return place.load()


def shown() -> dict[str, ModuleType]:
    return {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "handlers"}


@pytest.fixture
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Another organism in the same process, with a package ``handlers`` of its own."""
    made = Place(tmp_path_factory.mktemp("other"))
    yield made
    made.importer.close()


def test_modules_have_their_own_names_and_are_shown(place: Place) -> None:
    greeter = place.listener()
    assert greeter.payload_class.__module__ == "handlers.hello"
    assert sys.modules["handlers.hello"].Greeting is greeter.payload_class
    assert sys.modules["handlers"].hello is sys.modules["handlers.hello"]
    assert Path(str(sys.modules["handlers.hello"].__file__)) == place.folder.resolve() / "handlers" / "hello.py"


def test_a_reload_makes_every_module_anew_and_leaves_the_old_ones_as_they_are(place: Place) -> None:
    old = speak(place, "Hello")
    before = shown()
    new = speak(place, "Moin")
    assert say(old.listener("greeter")) == "Hello, Ada"
    assert say(new.listener("greeter")) == "Moin, Ada"
    assert not set(map(id, before.values())) & set(map(id, shown().values()))


def test_two_edits_of_the_same_size_in_the_same_second_are_told_apart(place: Place) -> None:
    speak(place, "one")
    file = place.folder / "handlers" / "words.py"
    times = file.stat()
    place.write("handlers/words.py", "WORD = 'two'\n")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert say(place.load().listener("greeter")) == "two, Ada"
    assert not list(place.folder.rglob("__pycache__"))


def test_a_stale_compiled_file_is_not_run(place: Place) -> None:
    speak(place, "one")
    file = place.folder / "handlers" / "words.py"
    py_compile.compile(str(file), doraise=True)
    times = file.stat()
    place.write("handlers/words.py", "WORD = 'two'\n")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert say(place.load().listener("greeter")) == "two, Ada"


def test_a_changed_module_that_a_handler_imports_updates_its_listener(place: Place) -> None:
    old = speak(place, "Hello")
    new = speak(place, "Moin")
    assert diff(old, new).updated == ("greeter", "late")
    assert old.digest != new.digest


def test_a_changed_module_that_is_imported_inside_a_function_updates_its_listener(place: Place) -> None:
    old = speak(place, "Hello", later="one")
    new = speak(place, "Hello", later="two")
    assert diff(old, new).updated == ("greeter", "late")


def test_a_module_that_nobody_imports_updates_nobody(place: Place) -> None:
    old = speak(place, "Hello")
    place.write("handlers/unused.py", "x = 1")
    new = place.load()
    assert diff(old, new).updated == ()
    assert old.digest == new.digest


def test_an_import_inside_a_function_stays_in_the_set_it_began_with(place: Place) -> None:
    old = speak(place, "Hello", later="old")
    new = speak(place, "Hello", later="new")
    assert say(old.listener("late")) == "old, Ada"
    assert say(new.listener("late")) == "new, Ada"


def test_what_functions_import_is_read_at_load_and_not_later(place: Place) -> None:
    loaded = speak(place, "Hello", later="then")
    place.write("handlers/later.py", "WORD = 'now'\n")
    assert say(loaded.listener("late")) == "then, Ada"


def test_two_organisms_with_a_package_of_the_same_name_never_mix(place: Place, other: Place) -> None:
    mine = speak(place, "Hello", later="mine")
    theirs = speak(other, "Moin", later="theirs")
    assert [say(mine.listener(name)) for name in ("greeter", "late")] == ["Hello, Ada", "mine, Ada"]
    assert [say(theirs.listener(name)) for name in ("greeter", "late")] == ["Moin, Ada", "theirs, Ada"]
    again = place.load()
    assert say(again.listener("late")) == "mine, Ada"
    assert say(theirs.listener("late")) == "theirs, Ada"


def test_closing_one_organism_leaves_the_modules_of_another(place: Place, other: Place) -> None:
    speak(place, "Hello")
    theirs = speak(other, "Moin")
    before = shown()
    place.importer.close()
    assert shown() == before
    other.importer.close()
    assert shown() == {}
    assert say(theirs.listener("late")) == "later, Ada"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("handlers/hello.py", "def greet(:"),
        ("handlers/words.py", "def word(:"),
        ("handlers/later.py", "def later(:"),
        ("handlers/words.py", "raise RuntimeError"),
        ("handlers/hello.py", "import nowhere"),
        ("organism.yaml", "organism: ["),
        ("organism.yaml", HEAD + GREETER + "    peers: [nobody]\n"),
    ],
)
def test_a_reload_with_any_fault_leaves_everything_as_it_was(place: Place, path: str, text: str) -> None:
    loaded = speak(place, "Hello")
    before = shown()
    finders = list(sys.meta_path)
    place.write(path, text)
    assert place.faults()
    assert shown() == before
    assert sys.meta_path == finders
    assert place.importer.current is loaded.modules
    assert [say(loaded.listener(name)) for name in ("greeter", "late")] == ["Hello, Ada", "later, Ada"]


def test_a_first_load_with_a_fault_leaves_no_trace(place: Place) -> None:
    place.write("handlers/hello.py", "import handlers.words\nimport nowhere")
    place.write("handlers/words.py", "")
    assert place.faults()
    assert shown() == {}


def test_a_syntax_error_in_what_only_a_function_imports_is_told_at_load(place: Place) -> None:
    speak(place, "Hello")
    place.write("handlers/later.py", "def later(:")
    assert place.faults() == {
        "5:listeners[0].payload_class": "`handlers.later` cannot be imported: "
        "handlers/later.py, line 1: SyntaxError: invalid syntax"
    }


def test_a_shared_module_that_fails_is_told_once(place: Place) -> None:
    speak(place, "Hello")
    place.write("handlers/second.py", SAYING)
    place.write("handlers/words.py", "\n\nraise RuntimeError('broken')")
    place.yaml(HEAD + GREETER + GREETER.replace("greeter", "second").replace("hello.", "second."))
    assert place.faults() == {
        "5:listeners[0].payload_class": "`handlers.hello` cannot be imported: "
        "handlers/words.py, line 3: RuntimeError: broken"
    }


def test_a_module_that_was_removed_is_gone_after_the_reload(place: Place) -> None:
    speak(place, "Hello")
    (place.folder / "handlers" / "later.py").unlink()
    new = place.load()
    assert "handlers.later" not in sys.modules
    with pytest.raises(ImportError, match=r"later"):
        say(new.listener("late"))


def test_a_handlers_module_that_was_removed_is_a_fault(place: Place) -> None:
    speak(place, "Hello")
    (place.folder / "handlers" / "hello.py").unlink()
    assert place.faults() == {
        "5:listeners[0].payload_class": "there is no module `handlers.hello`: "
        "expected handlers/hello.py beside organism.yaml"
    }


def test_an_import_that_may_fail_raises_its_own_error_where_it_stands(place: Place) -> None:
    speak(place, "Hello")
    place.write("handlers/later.py", "raise RuntimeError('not today')")
    loaded = place.load()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="not today"):
            say(loaded.listener("late"))


def test_a_module_that_failed_is_not_said_to_be_missing(place: Place) -> None:
    speak(place, "Hello")
    place.write("handlers/hello.py", SAYING.replace("from handlers.later import WORD", "from handlers import later"))
    place.write("handlers/later.py", "raise RuntimeError('not today')")
    with pytest.raises(RuntimeError, match="not today"):
        say(place.load().listener("late"))


def test_a_guarded_import_falls_back_as_it_says(place: Place) -> None:
    speak(place, "Hello")
    place.write(
        "handlers/words.py", "try:\n    from handlers.fast import WORD\nexcept ImportError:\n    WORD = 'slow'\n"
    )
    assert say(place.load().listener("greeter")) == "slow, Ada"
    place.write("handlers/fast.py", "WORD = 'fast'")
    assert say(place.load().listener("greeter")) == "fast, Ada"


def test_modules_that_import_each_other_are_loaded(place: Place) -> None:
    speak(place, "Hello")
    place.write("handlers/words.py", "import handlers.later\nWORD = 'round'\n")
    place.write(
        "handlers/later.py", "from handlers import words\n\n\ndef word():\n    return words.WORD\n\nWORD = ''\n"
    )
    assert say(place.load().listener("greeter")) == "round, Ada"


def test_what_is_for_type_checkers_alone_is_not_run(place: Place) -> None:
    speak(place, "Hello")
    place.write("handlers/words.py", "import typing\nif typing.TYPE_CHECKING:\n    import handlers.types\nWORD = 'x'\n")
    place.write("handlers/types.py", "")
    place.load()
    assert "handlers.types" not in sys.modules


def test_a_module_that_imports_by_name_while_it_loads_gets_its_own_set(place: Place) -> None:
    old = speak(place, "Hello")
    place.write("handlers/words.py", "import importlib\nWORD = importlib.import_module('handlers.later').WORD\n")
    place.write("handlers/later.py", "WORD = 'dynamic'\n")
    assert say(place.load().listener("greeter")) == "dynamic, Ada"
    assert say(old.listener("greeter")) == "Hello, Ada"


def test_annotations_as_text_are_resolved_within_their_own_set(place: Place, other: Place) -> None:
    kinds = []
    for each in (place, other):
        each.write(
            "handlers/hello.py",
            """
            from __future__ import annotations
            from dataclasses import KW_ONLY, dataclass
            from typing import ClassVar

            @dataclass
            class Greeting:
                COUNT: ClassVar[int] = 0
                inner: Inner | None
                _: KW_ONLY
                others: list[Inner]

            @dataclass
            class Inner:
                x: int

            async def greet(payload: Greeting, metadata: object): ...
            """,
        )
        kinds.append((each.listener().payload_class, sys.modules["handlers.hello"].Inner))
    for kind, inner in kinds:
        assert get_args(get_type_hints(kind)["others"]) == (inner,)
        assert [get_args(each.type)[0] for each in fields(kind)] == [inner, inner]


def test_a_package_may_be_a_mere_folder_or_a_single_file(place: Place) -> None:
    place.write("nested/deep/hello.py", SAYING.replace("handlers.words", "single").replace("handlers.later", "single"))
    place.write("single.py", "WORD = 'Hi'\n")
    place.yaml(
        HEAD.replace("[handlers]", "[nested.deep, single]") + GREETER.replace("handlers.hello", "nested.deep.hello")
    )
    assert say(place.load().listener("greeter")) == "Hi, Ada"


def test_what_lies_beside_the_file_goes_before_what_is_installed(place: Place, other: Place) -> None:
    speak(place, "beside")
    speak(other, "installed")
    other.importer.close()
    sys.path.insert(0, str(other.folder))
    try:
        assert say(place.load().listener("greeter")) == "beside, Ada"
    finally:
        sys.path.remove(str(other.folder))


def test_what_does_not_lie_beside_the_file_is_found_where_python_finds_it(place: Place, other: Place) -> None:
    speak(other, "installed")
    other.importer.close()
    place.write("here/organism.yaml", (HEAD + GREETER))
    sys.path.insert(0, str(other.folder))
    try:
        place.folder = place.folder / "here"
        assert say(place.load().listener("greeter")) == "installed, Ada"
    finally:
        sys.path.remove(str(other.folder))


def test_the_organism_itself_is_never_made_anew(place: Place) -> None:
    before = sys.modules["organism.model.agent"]
    place.yaml(
        HEAD.replace("handlers", "organism") + "  - {name: a, description: b, model: c, "
        "payload_class: organism.model.agent.Prompt}\n"
    )
    listener = place.listener("a")
    assert sys.modules["organism.model.agent"] is before
    assert listener.payload_class is before.Prompt


def test_a_reload_may_drop_a_prefix_but_never_add_one(place: Place) -> None:
    place.yaml(HEAD.replace("[handlers]", "[handlers, more]") + GREETER)
    place.load()
    place.yaml(HEAD.replace("[handlers]", "[handlers.hello]") + GREETER)
    place.load()
    place.yaml(HEAD.replace("[handlers]", "[handlers, more.inner, extra]") + GREETER)
    assert place.faults() == {
        "1:organism.imports[2]": "`extra` was not allowed when the organism started; restart it to allow another prefix"
    }


def test_a_set_that_is_not_used_after_all_gives_way_to_the_old_one(place: Place) -> None:
    old = speak(place, "Hello")
    before = shown()
    speak(place, "Moin")
    place.importer.take_back(old.modules)
    assert shown() == before
    assert place.importer.current is old.modules


def test_taking_back_a_set_takes_the_other_prefixes_of_the_new_one_away(place: Place) -> None:
    place.write("more/hello.py", SAYING.replace("handlers.words", "more.words").replace("handlers.later", "more.later"))
    place.write("more/words.py", "WORD = 'more'")
    wide = HEAD.replace("[handlers]", "[handlers, more]") + GREETER.replace("handlers.", "more.")
    place.yaml(wide)
    place.load()
    place.yaml(HEAD + GREETER)
    old = place.load()
    assert "more.hello" not in sys.modules
    place.yaml(wide)
    place.load()
    assert "more.hello" in sys.modules
    place.importer.take_back(old.modules)
    assert "more.hello" not in sys.modules
    assert "handlers.hello" in sys.modules


def test_a_set_that_nobody_holds_any_more_is_freed(place: Place) -> None:
    old: Any = speak(place, "Hello")
    gone = weakref.ref(old.modules)
    speak(place, "Moin")
    del old
    gc.collect()
    assert gone() is None

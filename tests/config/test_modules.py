from __future__ import annotations

import sys
from dataclasses import fields
from typing import get_args, get_type_hints

import pytest

from tests.config.place import GREETER, HEAD, SAYING, Place, say, shown, speak


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


def test_an_import_that_may_fail_raises_its_own_error_where_it_stands(place: Place) -> None:
    speak(place, "Hello")
    place.write("handlers/later.py", "raise RuntimeError('not today')")
    loaded = place.load()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="not today"):
            say(loaded.listener("late"))


def test_a_guarded_import_falls_back_as_it_says(place: Place) -> None:
    speak(place, "Hello")
    place.write(
        "handlers/words.py", "try:\n    from handlers.fast import WORD\nexcept ImportError:\n    WORD = 'slow'\n"
    )
    assert say(place.load().listener("greeter")) == "slow, Ada"
    place.write("handlers/fast.py", "WORD = 'fast'")
    assert say(place.load().listener("greeter")) == "fast, Ada"


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


def test_what_lies_next_to_the_file_goes_before_what_is_installed(place: Place, other: Place) -> None:
    speak(place, "beside")
    speak(other, "installed")
    other.importer.close()
    sys.path.insert(0, str(other.folder))
    try:
        assert say(place.load().listener("greeter")) == "beside, Ada"
    finally:
        sys.path.remove(str(other.folder))


def test_what_does_not_lie_next_to_the_file_is_found_where_python_finds_it(place: Place, other: Place) -> None:
    speak(other, "installed")
    other.importer.close()
    place.write("here/organism.yaml", (HEAD + GREETER))
    sys.path.insert(0, str(other.folder))
    try:
        place.folder = place.folder / "here"
        assert say(place.load().listener("greeter")) == "installed, Ada"
    finally:
        sys.path.remove(str(other.folder))


def test_the_organism_itself_is_never_made_again(place: Place) -> None:
    before = sys.modules["organism.model.agent"]
    place.yaml(
        HEAD.replace("handlers", "organism") + "  - {name: a, description: b, model: offline, "
        "payload_class: organism.model.agent.Prompt}\n"
    )
    listener = place.listener("a")
    assert sys.modules["organism.model.agent"] is before
    assert listener.payload_class is before.Prompt


def test_a_loaded_module_is_given_by_its_name_and_none_is_imported_for_it(place: Place, other: Place) -> None:
    mine, theirs = speak(place, "Hello").modules, speak(other, "Moin").modules
    place.write("handlers/unused.py", "x = 1")
    found = mine.loaded("handlers.words"), theirs.loaded("handlers.words")
    assert [module and module.WORD for module in found] == ["Hello", "Moin"]
    assert mine.loaded("handlers.unused") is None
    assert mine.loaded("os") is None

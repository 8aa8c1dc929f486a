from __future__ import annotations

import gc
import os
import sys
import weakref
from typing import Any

import pytest

from organism.config.reload import Changes, diff
from tests.config.place import GREETER, HEAD, HELLO, SAYING, Place, say, shown, speak


def test_a_reload_makes_every_module_again_and_leaves_the_old_ones_as_they_are(place: Place) -> None:
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


def test_a_syntax_error_in_what_only_a_function_imports_is_reported_at_load(place: Place) -> None:
    speak(place, "Hello")
    place.write("handlers/later.py", "def later(:")
    assert place.faults() == {
        "5:listeners[0].payload_class": "`handlers.later` cannot be imported: "
        "handlers/later.py, line 1: SyntaxError: invalid syntax"
    }


def test_a_shared_module_that_fails_is_passed_once(place: Place) -> None:
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


def test_a_reload_may_drop_a_prefix_but_never_add_one(place: Place) -> None:
    place.yaml(HEAD.replace("[handlers]", "[handlers, more]") + GREETER)
    place.load()
    place.yaml(HEAD.replace("[handlers]", "[handlers.hello]") + GREETER)
    place.load()
    place.yaml(HEAD.replace("[handlers]", "[handlers, more.inner, extra]") + GREETER)
    assert place.faults() == {
        "1:organism.imports[2]": "`extra` was not allowed when the organism started; restart it to allow another prefix"
    }


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
    place.importer.restore(old.modules)
    assert "more.hello" not in sys.modules
    assert "handlers.hello" in sys.modules


def test_a_set_that_nobody_holds_any_more_is_freed(place: Place) -> None:
    old: Any = speak(place, "Hello")
    gone = weakref.ref(old.modules)
    speak(place, "Moin")
    del old
    gc.collect()
    assert gone() is None


SHOUTER = GREETER.replace("greeter", "shouter")


def test_a_listener_is_found_by_its_name_alone(place: Place) -> None:
    loaded = place.load()
    assert loaded.listener("greeter") is loaded.listeners[0]
    assert loaded.listener("Greeter") is None


def test_a_diff_names_what_was_added_removed_and_updated(place: Place) -> None:
    place.yaml(HEAD + GREETER + SHOUTER)
    old = place.load()
    place.yaml(HEAD + SHOUTER.replace("Greets", "Shouts") + GREETER.replace("greeter", "third"))
    assert diff(old, place.load()) == Changes(added=("third",), removed=("greeter",), updated=("shouter",))


def test_the_order_of_keys_and_comments_are_no_change_of_a_listener(place: Place) -> None:
    old = place.load()
    first, *rest = GREETER.splitlines()
    place.yaml("\n".join([HEAD, "  # greets", first, *reversed(rest)]))
    new = place.load()
    assert diff(old, new) == Changes()
    assert old.digest != new.digest


def test_changed_limits_update_no_listener(place: Place) -> None:
    old = place.load()
    place.yaml("limits: {max_depth: 3}\n" + HEAD + GREETER)
    assert diff(old, place.load()) == Changes()


def test_a_changed_module_of_the_payload_class_alone_updates_its_listener(place: Place) -> None:
    place.write(
        "handlers/other.py", "from handlers.hello import Greeting\n\n\nasync def greet(payload: Greeting, m): ...\n"
    )
    place.yaml(HEAD + GREETER.replace("handlers.hello.greet", "handlers.other.greet"))
    old = place.load()
    place.write("handlers/hello.py", HELLO.replace("text: str", "text: int"))
    assert diff(old, place.load()) == Changes(updated=("greeter",))


def test_a_changed_package_updates_the_listeners_whose_modules_lie_in_it(place: Place) -> None:
    old = place.load()
    place.write("handlers/__init__.py", "x = 1\n")
    assert diff(old, place.load()) == Changes(updated=("greeter",))

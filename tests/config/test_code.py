from __future__ import annotations

from typing import Any

import pytest

from organism.model.handler import SystemError
from tests.config.place import GREETER, HEAD, HELLO, Place


def with_handler(place: Place, source: str, more: str = "") -> None:
    """Make ``greet`` of ``source`` the greeter's handler."""
    place.write("handlers/hello.py", HELLO + source)
    place.yaml(HEAD + GREETER + more)


def test_a_handler_may_receive_what_its_annotation_names(place: Place) -> None:
    with_handler(place, "async def greet(payload: Greeting | Shout | SystemError, metadata: HandlerMetadata): ...")
    accepts = place.listener().accepts
    assert {each.__name__ for each in accepts} == {"Greeting", "Shout", "SystemError"}
    assert SystemError in accepts


@pytest.mark.parametrize(
    "annotation",
    [
        "Greeting", '"Greeting"', "Union[Greeting, SystemError]", "Annotated[Greeting, 1]", "Wanted",
        "Outer.Inner | Greeting",
    ],
)  # fmt: skip
def test_an_annotation_may_be_written_in_any_of_pythons_ways(place: Place, annotation: str) -> None:
    with_handler(
        place,
        f"""
from typing import Annotated, Union


class Outer:
    @dataclass
    class Inner:
        x: int


Wanted = Greeting | SystemError


async def greet(payload: {annotation}, metadata): ...
""",
    )
    greeter = place.listener()
    assert greeter.payload_class in greeter.accepts


def test_only_the_first_annotation_has_to_resolve_at_run_time(place: Place) -> None:
    place.write(
        "handlers/hello.py",
        "from __future__ import annotations\nfrom typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from organism import HandlerMetadata as Meta\n"
        + HELLO.replace("payload: Greeting, metadata: HandlerMetadata", "payload: Greeting, metadata: Meta"),
    )
    greeter = place.listener()
    assert greeter.accepts == {greeter.payload_class}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def greet(payload: Greeting, metadata): ...", "expected an `async def`, came a plain `def`; write"),
        ("async def greet(payload: Greeting, metadata):\n    yield 1", "`greet` has a `yield` in it"),
        ("class greet: ...", "expected an `async def`, came a class"),
        ("greet = 5", "expected an `async def`, came an object of the class int"),
        ("greet = None", "`handlers.hello.greet` is None"),
        ("async def greet(payload: Greeting): ...", "expected the parameters (payload, metadata), came `greet("),
        ("async def greet(): ...", "expected the parameters (payload, metadata), came `greet()`"),
        (
            "async def greet(payload: Greeting, m, more): ...",
            "expected the parameters (payload, metadata), came `greet",
        ),
        (
            "async def greet(payload: Greeting, *, m): ...",
            "expected the parameters (payload, metadata), came `greet(pa",
        ),
        ("async def greet(*both: Greeting): ...", "expected the parameters (payload, metadata), came `greet(*both)`"),
        ("async def greet(payload, metadata): ...", "the parameter `payload` of `greet` has no annotation"),
        ('async def greet(payload: "Nobody", metadata): ...', "the annotation `payload: 'Nobody'` does not resolve"),
        ("async def greet(payload: Shout, metadata): ...", "expected an annotation that names the payload_class"),
        ("async def greet(payload: Greeting | int, metadata): ...", "the annotation of `payload` names int; expected"),
        ("async def greet(payload: Greeting | None, metadata): ...", "the annotation of `payload` names NoneType"),
        ("async def greet(payload: object, metadata): ...", "the annotation of `payload` names object; expected"),
        (
            "async def greet(payload: Greeting, m): ...\ngreet.__wrapped__ = greet",
            "its signature cannot be read: Value",
        ),
    ],
)
def test_what_cannot_handle_is_refused(place: Place, source: str, message: str) -> None:
    with_handler(place, source)
    ((where, what),) = place.faults().items()
    assert where == "6:listeners[0].handler"
    assert what.startswith(message)


def test_a_blocking_listener_takes_a_plain_function(place: Place) -> None:
    place.yaml(HEAD + GREETER.replace("hello.greet", "hello.slow") + "    blocking: true\n")
    greeter = place.listener()
    assert greeter.blocking
    assert greeter.handler_path == "handlers.hello.slow"


def test_a_blocking_listener_refuses_a_coroutine(place: Place) -> None:
    faults = place.faults(HEAD + GREETER + "    blocking: true\n")
    assert faults == {
        "6:listeners[0].handler": "expected a plain `def greet` for `blocking: true`, came an `async def`; "
        "remove one of the two"
    }


def test_a_wrapped_handler_is_judged_by_what_is_called_and_read_by_what_it_wraps(place: Place) -> None:
    with_handler(
        place,
        """
import functools


def logged(handler):
    @functools.wraps(handler)
    async def call(*both):
        return await handler(*both)

    return call


greet = logged(greet)
""",
    )
    greeter = place.listener()
    assert greeter.accepts == {greeter.payload_class}
    with_handler(place, "from functools import wraps\ngreet = wraps(greet)(lambda *both: None)")
    (what,) = place.faults().values()
    assert what.startswith("expected an `async def`, came a plain `def`")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("handlers.hello.Gretting", "`handlers.hello` has no `Gretting`; did you mean `Greeting`?"),
        ("handlers.hello.greet", "expected a dataclass, came a function: `handlers.hello.greet`"),
        ("handlers.hello.HandlerMetadata", "expected a dataclass, came a class without `@dataclass`"),
        ("handlers.hullo.Greeting", "there is no module `handlers.hullo`: expected handlers/hullo.py next to"),
        ("handlers.Greeting", "`handlers` has no `Greeting`"),
        ("os.path.join", "`os.path.join` is not below a prefix of organism.imports (handlers); add its prefix"),
        ("handlersx.Greeting", "`handlersx.Greeting` is not below a prefix of organism.imports (handlers)"),
        ("Greeting", "expected a dotted path such as `handlers.hello.greet`; came"),
        ("handlers..Greeting", "expected a dotted path"),
        (".hello.Greeting", "expected a dotted path"),
        ("handlers/hello.Greeting", "expected a dotted path"),
        ("handlers.hello.Greeting()", "expected a dotted path"),
    ],
)
def test_a_payload_class_that_is_none_is_refused(place: Place, path: str, message: str) -> None:
    ((where, what),) = place.faults(HEAD + GREETER.replace("handlers.hello.Greeting", f'"{path}"')).items()
    assert where == "5:listeners[0].payload_class"
    assert what.startswith(message)


def test_a_class_without_a_schema_is_refused_once_with_each_reason(place: Place) -> None:
    place.check_payload = lambda payload_class: (
        ["`name` is a set", "`x` is a lock"] if payload_class.__name__ == "Shout" else []
    )
    place.write("handlers/hello.py", HELLO.replace("payload: Greeting,", "payload: Greeting | Shout,"))
    place.yaml(HEAD + GREETER.replace("Greeting", "Shout"))
    with pytest.raises(Exception, match="2 faults") as refused:
        place.load()
    details: tuple[Any, ...] = refused.value.details  # type: ignore[attr-defined]  # it is ConfigInvalid
    assert [fault.message for fault in details] == [
        "`Shout` cannot be a payload: `name` is a set",
        "`Shout` cannot be a payload: `x` is a lock",
    ]


def test_a_reply_without_a_schema_is_refused_at_the_handler(place: Place) -> None:
    place.check_payload = lambda payload_class: ["it has a set"] if payload_class.__name__ == "Shout" else []
    with_handler(place, "async def greet(payload: Greeting | Shout, metadata): ...")
    assert place.faults() == {"6:listeners[0].handler": "`Shout` cannot be a payload: it has a set"}


def test_a_check_that_raises_is_a_fault_and_no_crash(place: Place) -> None:
    def check(payload_class: type) -> list[str]:
        raise RuntimeError(f"cannot read {payload_class.__name__}")

    place.check_payload = check
    ((where, what),) = place.faults().items()
    assert where == "5:listeners[0].payload_class"
    assert what == "`Greeting` cannot be a payload: RuntimeError: cannot read Greeting"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import nowhere", "handlers/hello.py, line 1: ModuleNotFoundError: No module named 'nowhere'"),
        ("x = 1\nraise ValueError('a\\nb')", "handlers/hello.py, line 2: ValueError: a b"),
        ("import sys\nsys.exit(3)", "handlers/hello.py, line 2: SystemExit: 3"),
        ("x = (1", "handlers/hello.py, line 1: SyntaxError: '(' was never closed"),
        ("return 1", "handlers/hello.py, line 1: SyntaxError: 'return' outside function"),
        ("x = 1\0", "SyntaxError: source code string cannot contain null bytes"),
        ("from handlers import nobody", "handlers/hello.py, line 1: ImportError: cannot import name 'nobody'"),
        ("from ....x import y", "handlers/hello.py, line 1: ImportError: attempted relative import beyond top-level"),
        ("open(__file__ + '.x')", "FileNotFoundError: [Errno 2] No such file or directory: 'handlers/hello.py.x'"),
    ],
)
def test_a_module_that_fails_is_passed_once_with_its_own_file_and_line(place: Place, source: str, message: str) -> None:
    place.write("handlers/hello.py", source)
    ((where, what),) = place.faults().items()
    assert where == "5:listeners[0].payload_class"
    assert what.startswith("`handlers.hello` cannot be imported: ")
    assert message in what
    assert str(place.folder) not in what


def test_a_module_next_to_the_file_that_no_prefix_names_is_pointed_at(place: Place) -> None:
    place.write("shared.py", "x = 1")
    place.write("handlers/hello.py", "import shared")
    (what,) = place.faults().values()
    assert what.endswith("shared lies next to organism.yaml: add it to organism.imports")


def test_without_prefixes_no_code_may_be_named(place: Place) -> None:
    faults = place.faults("organism: {name: hello}\nlisteners:\n" + GREETER)
    assert faults["6:listeners[0].handler"] == (
        "`handlers.hello.greet` is not below a prefix of organism.imports (none so far); add its prefix"
    )


def test_a_wrong_prefix_is_reported_alone_and_not_again_for_each_path(place: Place) -> None:
    assert list(place.faults("organism: {name: hello, imports: [sys]}\nlisteners:\n" + GREETER)) == [
        "1:organism.imports[0]"
    ]


def test_nothing_is_imported_that_no_prefix_allows(place: Place) -> None:
    place.write("evil.py", "raise AssertionError('imported')")
    faults = place.faults(HEAD + GREETER.replace("handlers.hello", "evil"))
    assert list(faults) == ["5:listeners[0].payload_class", "6:listeners[0].handler"]
    assert all("is not below a prefix" in what for what in faults.values())

"""Finds the code that organism.yaml names: dotted paths become payload classes and handlers, or faults."""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from types import FunctionType, SimpleNamespace
from typing import Any, cast

from organism.config.check import Section
from organism.config.faults import near
from organism.config.foreign_code import attempt, one_line
from organism.config.modules import ModuleSet, is_below
from organism.config.settings import Handler

_UNIONS = (typing.Union, types.UnionType)
CheckPayload = Callable[[type], list[str]]
"""Gives the reasons why a dataclass cannot become a schema; an empty list if it can."""


@dataclass(frozen=True, slots=True)
class Named:
    """A dotted path with the section and the key that name it."""

    path: str
    section: Section
    key: str

    @property
    def module(self) -> str:
        """All but the last part."""
        return self.path.rpartition(".")[0]

    @property
    def attribute(self) -> str:
        """The last part."""
        return self.path.rpartition(".")[2]

    def add(self, message: str) -> None:
        """Note a fault at the key."""
        self.section.add(message, self.key)


class Code:
    """Finds the code of one load. A cause that several keys share is reported once, at the first of them.

    ``prefixes`` is None if they have a fault: then nothing is looked up or reported.
    """

    def __init__(self, modules: ModuleSet, prefixes: tuple[str, ...] | None, check_payload: CheckPayload) -> None:
        self._modules = modules
        self._prefixes = prefixes
        self._check_payload = check_payload
        self._reported: set[str] = set()
        self._first_named: dict[str, Named] = {}
        self._is_sound: dict[type, bool] = {}

    def payload_class(self, named: Named) -> type | None:
        """The dataclass of that path, if a schema can be made of it."""
        found = self._find(named)
        if found is None:
            return None
        if not is_payload(found):
            kind = "a class without `@dataclass`" if isinstance(found, type) else f"a {type(found).__name__}"
            named.add(f"expected a dataclass, came {kind}: `{named.path}`")
            return None
        return cast("type", found) if self._has_schema(named, found) else None

    def handler(self, named: Named, kind: type | None, *, blocking: bool) -> tuple[Handler, frozenset[type]] | None:
        """The function of that path and the classes that it accepts; ``kind``, if known, must be one of them."""
        found = self._find(named)
        if found is None:
            return None
        read = attempt(partial(accepted_by, found, blocking=blocking))
        if isinstance(read.error, BadHandler):
            for message in read.error.args:
                named.add(message)
        elif read.error is not None:
            named.add(f"its signature cannot be read: {self._in_short(read.error)}")
        accepts = read.result or frozenset()
        sound = [self._has_schema(named, each) for each in sorted(accepts, key=attrgetter("__name__"))]
        if accepts and kind is not None and kind not in accepts:
            names = ", ".join(sorted(each.__name__ for each in accepts))
            named.add(f"expected an annotation that names the payload_class, `{kind.__name__}`; came {names}")
            return None
        return (cast("Handler", found), accepts) if accepts and all(sound) else None

    def version(self, *named: Named) -> bytes:
        """The digest of the code behind these paths, with what it imports below the prefixes."""
        return self._modules.sources.fingerprint({each.module for each in named})

    def digest(self) -> bytes:
        """The digest of all the code that was named."""
        return self._modules.sources.fingerprint(self._first_named)

    def complete(self) -> None:
        """Complete the set of modules. One that is not Python is a fault, even if nothing has run it yet."""
        for module, error in self._modules.complete(self._first_named).items():
            if isinstance(error, SyntaxError):
                self._cannot_import(self._reaches(module), module, error)

    def _find(self, named: Named) -> Any:
        """What the path names; None after a fault."""
        if self._prefixes is None:
            return None
        if not any(is_below(named.module, prefix) for prefix in self._prefixes):
            allowed = ", ".join(self._prefixes) or "none so far"
            named.add(f"`{named.path}` is not below a prefix of organism.imports ({allowed}); add its prefix")
            return None
        self._first_named.setdefault(named.module, named)
        outcome = self._modules.load(named.module)
        if outcome.result is None:
            self._cannot_import(named, named.module, outcome.error)
            return None
        found = attempt(partial(getattr, outcome.result, named.attribute))
        if found.error is not None:
            hint = near(named.attribute, list(vars(outcome.result)))
            named.add(f"`{named.module}` has no `{named.attribute}`{hint}")
        elif found.result is None:
            named.add(f"`{named.path}` is None")
        return found.result

    def _has_schema(self, named: Named, kind: type) -> bool:
        if kind not in self._is_sound:
            checked = attempt(partial(self._check_payload, kind))
            wrong = [self._in_short(checked.error)] if checked.error is not None else checked.result or []
            for message in wrong:
                named.add(f"`{kind.__name__}` cannot be a payload: {message}")
            self._is_sound[kind] = not wrong
        return self._is_sound[kind]

    def _cannot_import(self, named: Named, module: str, error: BaseException | None) -> None:
        missing = error.name or "" if isinstance(error, ModuleNotFoundError) else ""
        if missing and is_below(module, missing):
            cause = message = (
                f"there is no module `{missing}`: expected {missing.replace('.', '/')}.py next to organism.yaml"
            )
        else:
            cause = self._in_short(error)
            message = f"`{module}` cannot be imported: {cause}{self._hint(missing)}"
        if cause not in self._reported:
            self._reported.add(cause)
            named.add(message)

    def _hint(self, missing: str) -> str:
        folder, top = self._modules.sources.folder, missing.partition(".")[0]
        is_there = bool(top) and ((folder / f"{top}.py").is_file() or (folder / top).is_dir())
        return f"; {top} lies next to organism.yaml: add it to organism.imports" if is_there else ""

    def _in_short(self, error: BaseException | None) -> str:
        return one_line(error, self._modules.sources.folder) if error is not None else ""

    def _reaches(self, module: str) -> Named:
        """The first key whose module imports this one."""
        closure = self._modules.sources.closure
        names = (root for root in self._first_named if any(each.name == module for each in closure([root])))
        return self._first_named[next(names)]


# ── signatures of handlers ───────────────────────────────────────────────────────────────────────────────────────────


class BadHandler(TypeError):
    """It cannot be a handler; the arguments say why."""


def accepted_by(handler: object, *, blocking: bool) -> frozenset[type]:
    """The classes that the annotation of the handler's payload names: one dataclass or a union of dataclasses.

    Raises ``BadHandler`` if it is no ``async def (payload: …, metadata)``, or a plain ``def`` if ``blocking``.
    """
    if not isinstance(handler, FunctionType):
        wanted = "a plain `def`" if blocking else "an `async def`"
        kind = "a class" if isinstance(handler, type) else f"an object of the class {type(handler).__name__}"
        raise BadHandler(f"expected {wanted}, came {kind}")
    parameters = list(inspect.signature(handler).parameters.values())
    wrong = [each for each in (_wrong_kind(handler, blocking), _wrong_parameters(handler, parameters)) if each]
    if wrong:
        raise BadHandler(*wrong)
    first = parameters[0]
    if first.annotation is inspect.Parameter.empty:
        how = f"write `{first.name}: YourPayload`: the annotation says what it may receive"
        raise BadHandler(f"the parameter `{first.name}` of `{handler.__name__}` has no annotation; {how}")
    names = SimpleNamespace(__annotations__={"payload": first.annotation})
    resolved = attempt(partial(typing.get_type_hints, names, inspect.unwrap(handler).__globals__))
    if resolved.result is None:
        raise BadHandler(f"the annotation `{first}` does not resolve at run time: {resolved.error}")
    hint = resolved.result["payload"]
    members = typing.get_args(hint) if typing.get_origin(hint) in _UNIONS else (hint,)
    named = (each.__name__ if isinstance(each, type) else str(each) for each in members if not is_payload(each))
    how = "expected dataclasses, such as `Greeting | SystemError`"
    if wrong := [f"the annotation of `{first.name}` names {each}; {how}" for each in named]:
        raise BadHandler(*wrong)
    return frozenset(members)


def _wrong_kind(handler: FunctionType, blocking: bool) -> str | None:  # noqa: FBT001 - its caller has a keyword for it
    name = handler.__name__
    if inspect.isasyncgenfunction(handler) or inspect.isgeneratorfunction(handler):
        return f"`{name}` has a `yield` in it; a handler answers with `return`, once"
    is_async = inspect.iscoroutinefunction(handler)
    if blocking and is_async:
        return f"expected a plain `def {name}` for `blocking: true`, came an `async def`; remove one of the two"
    if not blocking and not is_async:
        how = f"write `async def {name}`, or set `blocking: true` to run it in a thread of its own"
        return f"expected an `async def`, came a plain `def`; {how}"
    return None


def _wrong_parameters(handler: FunctionType, parameters: list[inspect.Parameter]) -> str | None:
    by_position = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    takes_two = attempt(partial(inspect.signature(handler).bind, None, None)).error is None
    if takes_two and len(by_position) > 1:
        return None
    names = ", ".join(str(each).partition(":")[0].partition("=")[0].strip() for each in parameters)
    return f"expected the parameters (payload, metadata), came `{handler.__name__}({names})`"


def is_payload(value: object) -> bool:
    """Whether it is a dataclass (not an instance of one)."""
    return isinstance(value, type) and dataclasses.is_dataclass(value)

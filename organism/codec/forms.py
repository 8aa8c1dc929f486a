"""Dataclass ⇄ XML and dataclass ⇄ JSON, by closures compiled once a class, at registration: four for each shape.

What is written to XML is canonical (exclusive C14N: no empty-element tags, the escapes that C14N names, ``xsi``
declared where it is used). What is read from XML is an element *that the XSD has accepted*. Neither tracks where it
is: when one raises, ``faults`` walks again and says where. JSON is written of payloads that the codec made, and read
from anyone: every fault is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice, takewhile
from operator import attrgetter, call
from typing import Any, NamedTuple, TypeVar

from lxml.etree import _Element

from organism.codec.faults import NIL, carried_fault, refused_by_class
from organism.codec.lexical import (
    JSON_KINDS,
    LEXICAL,
    NATIVE,
    XSD_TRUE,
    Unfit,
    attribute,
    checker,
    closing,
    escaped,
    length_checker,
    opening,
)
from organism.codec.limits import MAX_FAULTS, XSI, came, shown
from organism.codec.shape import (
    FREE,
    Items,
    Kind,
    Maybe,
    Nested,
    Options,
    Payload,
    Record,
    Scalar,
    Shape,
    Table,
    Variant,
)
from organism.errors import Fault, pointer

Place = tuple["Place", str | int] | None
"""Where a JSON value stands: the place of its owner and the key in it. Only a fault makes a JSON pointer of it."""
Write = Callable[[Any], str]
Read = Callable[[_Element], Any]
ToJson = Callable[[Any], Any]
FromJson = Callable[[Any, Place, list[Fault]], Any]

_XSI_DECLARED = attribute("xmlns:xsi", XSI)
_NIL_MARK = attribute("xsi:nil", "true")
_UNREAD = object()
_Item = TypeVar("_Item")


class Form(NamedTuple):
    """How values of one shape are written and read.

    ``write`` returns what stands between an element's tags; it raises ``Unfit`` for a wrong value, AttributeError for a
    missing one, RecursionError for one that contains itself. ``read`` returns the value of a valid element; it raises
    what a ``__post_init__`` raises, ``Unfit`` where a pattern does not match, and ValueError where Python's range is
    narrower than the XSD's. ``to_json`` returns what ``orjson`` can write. ``from_json`` adds to the faults; after one
    its result means nothing.
    """

    write: Write
    read: Read
    to_json: ToJson
    from_json: FromJson


class Forms:
    """The forms of a payload: each record's is compiled once."""

    def __init__(self, payload: Payload) -> None:
        self._by_class: dict[type, Form] = {}
        for cls, record in reversed(payload.records.items()):
            self._by_class[cls] = self._record(record)

    def _of_class(self, cls: type) -> Form:
        """The form of a record; one that is not compiled yet is looked up when it is called."""
        return self._by_class.get(cls) or Form(*(self._later(cls, name) for name in Form._fields))

    def _later(self, cls: type, name: str) -> Callable[..., Any]:
        def call_later(*arguments: Any) -> Any:
            return getattr(self._by_class[cls], name)(*arguments)

        return call_later

    def of(self, shape: Shape) -> Form:  # noqa: PLR0911 - one a shape
        """The form of a shape."""
        match shape:
            case Scalar():
                return _scalar(shape)
            case Options():
                return _options(shape)
            case Maybe(inner):
                return _maybe(self.of(inner))
            case Items():
                return _items(shape, self.of(shape.item))
            case Table():
                return _table(shape, self.of(shape.value))
            case Nested(cls):
                return self._of_class(cls)
            case Variant(classes):
                return self._variant(classes)

    def _record(self, record: Record) -> Form:
        cls, fields = record.cls, record.fields
        names = [field.name for field in fields]
        forms = [self.of(field.shape) for field in fields]
        elements = [
            _element(field.name, field.shape, form, nil=field.nil) for field, form in zip(fields, forms, strict=True)
        ]
        template = "".join(element for element, _, _ in elements)
        writes, reads = [write for _, write, _ in elements], [read for _, _, read in elements]
        to_jsons = [form.to_json for form in forms]
        make = _maker(record)
        values_of: ToJson = (
            attrgetter(*names) if len(names) > 1 else lambda value: tuple([getattr(value, name) for name in names])
        )

        def write(value: Any) -> str:
            if type(value) is not cls:
                _not_a(cls.__name__, value)
            return template % tuple(map(call, writes, values_of(value)))

        def read(element: _Element) -> Any:
            if len(element) == len(reads):  # the XSD holds their order
                return make(*map(call, reads, element))
            present = {child.tag: child for child in element}
            return make(
                *(
                    read(present[field.name]) if field.name in present else field.absent()  # type: ignore[misc]  # only those may be missing
                    for read, field in zip(reads, fields, strict=True)
                )
            )

        return Form(
            write,
            read,
            lambda value: dict(zip(names, map(call, to_jsons, values_of(value)), strict=True)),
            _record_from_json(record, [form.from_json for form in forms]),
        )

    def _variant(self, classes: tuple[type, ...]) -> Form:
        forms = {cls: self._of_class(cls) for cls in classes}
        named = {cls.__name__: form for cls, form in forms.items()}
        elements = {cls: (f"{opening(cls.__name__)}%s{closing(cls.__name__)}", forms[cls].write) for cls in classes}
        reads = {name: form.read for name, form in named.items()}

        def write(value: Any) -> str:
            if type(value) not in elements:
                _not_a(" or ".join(named), value)
            element, content = elements[type(value)]
            return element % content(value)

        def from_json(value: Any, at: Place, faults: list[Fault]) -> Any:
            name = next(iter(value)) if isinstance(value, dict) and len(value) == 1 else None
            if name not in named:
                listed = " or ".join(f'{{"{name}": {{…}}}}' for name in named)
                return _other(faults, at, listed, value)
            return named[name].from_json(value[name], (at, name), faults)

        return Form(
            write,
            lambda element: reads[element[0].tag](element[0]),
            lambda value: {type(value).__name__: forms[type(value)].to_json(value)},
            from_json,
        )


def _record_from_json(record: Record, from_jsons: list[FromJson]) -> FromJson:
    make = _maker(record)
    fields = {field.name: (read, field.absent) for field, read in zip(record.fields, from_jsons, strict=True)}
    listed = ", ".join(fields) or "none"

    def from_json(value: Any, at: Place, faults: list[Fault]) -> Any:
        if not isinstance(value, dict):
            return _other(faults, at, f"an object with the fields {listed}", value)
        before = len(faults)
        for name in islice((str(name) for name in value if name not in fields), MAX_FAULTS):
            _wrong(faults, (at, name), f"this field is not known; known are {listed}")
        values = []
        try:
            for name, (read, absent) in fields.items():
                if name in value:
                    values.append(read(value[name], (at, name), faults))
                elif absent is not None:
                    values.append(absent())
                else:
                    _wrong(faults, (at, name), "this field is missing")
            return make(*values) if len(faults) == before else _UNREAD
        except RecursionError:
            raise
        except BaseException as error:  # noqa: BLE001 - the class's own code: an exit that it asks for is a refusal too
            return _wrong(faults, at, refused_by_class(error))

    return from_json


def _element(name: str, shape: Shape, form: Form, *, nil: bool) -> tuple[str, Write, Read]:
    """An element's template, what fills its place, and its reader; ``nil`` says whether ``xsi:nil`` may stand here."""
    element, content, read = f"{opening(name)}%s{closing(name)}", form.write, form.read
    if not isinstance(shape, Maybe):
        return element, content, read
    absent = opening(name, _XSI_DECLARED + _NIL_MARK) + closing(name) if nil else ""

    def write_maybe(value: Any) -> str:
        return absent if value is None else element % content(value)

    def read_maybe(found: _Element) -> Any:
        return None if found.get(NIL, "").strip() in XSD_TRUE else read(found)

    return "%s", write_maybe, read_maybe if nil else read


def _scalar(shape: Scalar) -> Form:
    kind, is_text, is_free = shape.kind, shape.kind is Kind.STR, shape.facets == FREE
    (text_of, value_of, from_value), check = LEXICAL[kind], checker(shape)

    def from_json(value: Any, at: Place, faults: list[Fault]) -> Any:
        try:
            taken = from_value(value)
        except Unfit as error:
            unfit = value if isinstance(value, Unfit) else error
            for step in unfit.steps:
                at = at, step
            return _wrong(faults, at, str(unfit))
        message = (carried_fault(taken) if is_text else None) or (None if is_free else check(taken))
        return _wrong(faults, at, message) if message else taken

    read_text = _text_reader(shape) if is_text else value_of

    def read(element: _Element) -> Any:
        return read_text(element.text or "")

    if kind in JSON_KINDS:
        return Form(lambda value: escaped(text_of(value)), read, from_value, from_json)
    return Form(_text if is_text else text_of, read, _same if kind in NATIVE else text_of, from_json)


def _text_reader(shape: Scalar) -> Callable[[str], str]:
    """A function that returns the text if its pattern matches: the XSD does not check it (adr/0051)."""
    check = checker(shape)

    def read(text: str) -> str:
        if message := check(text):
            raise Unfit(message)
        return text

    return read if shape.facets.pattern else str


def _options(shape: Options) -> Form:
    wanted = shape.enum or type(shape.values[0])
    members = dict(zip(shape.values, shape.enum or shape.values, strict=True))
    texts = {member: escaped(str(value)) for value, member in members.items()}
    json_type: type = int if shape.numeric else str

    def write(value: Any) -> str:
        text = texts.get(value) if type(value) is wanted else None
        return _not_a(wanted.__name__, value) if text is None else text

    def from_json(value: Any, at: Place, faults: list[Fault]) -> Any:
        if type(value) is json_type and value in members:
            return members[value]
        return _other(faults, at, f"one of {', '.join(map(shown, members))}", value)

    return Form(
        write,
        lambda element: members[json_type(element.text or "")],
        attrgetter("value") if shape.enum else _same,
        from_json,
    )


def _maybe(form: Form) -> Form:
    """As ``form``, or null in JSON; ``_element`` knows the form of None in XML."""
    return form._replace(
        to_json=lambda value: None if value is None else form.to_json(value),
        from_json=lambda value, at, faults: None if value is None else form.from_json(value, at, faults),
    )


def _items(shape: Items, form: Form) -> Form:
    element, content, read = _element("item", shape.item, form, nil=True)
    check_length = length_checker(shape.facets, "items")

    def write(items: Any) -> str:
        if type(items) is not list:
            _not_a("list", items)
        return "".join([element % content(item) for item in items])

    def from_json(value: Any, at: Place, faults: list[Fault]) -> Any:
        if not isinstance(value, list):
            return _other(faults, at, "a list", value)
        if message := check_length(len(value)):
            _wrong(faults, at, message)
        return [form.from_json(item, (at, index), faults) for index, item in _while_right(enumerate(value), faults)]

    return Form(
        write,
        lambda element: [read(child) for child in element],
        lambda value: [form.to_json(each) for each in value],
        from_json,
    )


def _table(shape: Table, form: Form) -> Form:
    is_optional, check_length = isinstance(shape.value, Maybe), length_checker(shape.facets, "items")
    read_one, key_form, end = _element("item", shape.value, form, nil=True)[2], _scalar(shape.key), closing("item")
    read_key = _text_reader(shape.key)

    def write(table: Any) -> str:
        if type(table) is not dict:
            _not_a("dict", table)
        items: list[str] = []
        for key, value in table.items():
            key_text = attribute("key", LEXICAL[Kind.STR].text(key))
            if is_optional and value is None:
                items += (opening("item", _XSI_DECLARED + key_text + _NIL_MARK), end)
            else:
                items += (opening("item", key_text), form.write(value), end)
        return "".join(items)

    def read(element: _Element) -> dict[str, Any]:
        table = {read_key(child.get("key", "")): read_one(child) for child in element}
        if len(table) < len(element):
            raise Unfit("a key stands twice in a dict")
        return table

    def from_json(value: Any, at: Place, faults: list[Fault]) -> Any:
        if not isinstance(value, dict):
            return _other(faults, at, "an object", value)
        if message := check_length(len(value)):
            _wrong(faults, at, message)
        return {
            key_form.from_json(key, (at, key), faults): form.from_json(item, (at, key), faults)
            for key, item in _while_right(value.items(), faults)
        }

    return Form(write, read, lambda value: {key: form.to_json(each) for key, each in value.items()}, from_json)


def _while_right(items: Iterable[_Item], faults: list[Fault]) -> Iterator[_Item]:
    """The items up to the first with a fault: refusing a long list costs no more than a short one."""
    before = len(faults)
    return takewhile(lambda _: len(faults) == before, items)


def _maker(record: Record) -> Callable[..., Any]:
    """A function from the values of all fields, in order, to the object."""
    cls = record.cls
    names = [field.name for field in record.fields]
    if any(field.keyword for field in record.fields):
        return lambda *values: cls(**dict(zip(names, values, strict=True)))
    return cls


def _text(value: Any) -> str:
    return escaped(value if type(value) is str else LEXICAL[Kind.STR].text(value))


def _same(value: Any) -> Any:
    return value


def _not_a(name: str, value: object) -> str:
    raise Unfit(f"expected {name}, came {type(value).__name__}")


def _wrong(faults: list[Fault], at: Place, message: str) -> object:
    faults.append(Fault(_pointer(at), message))
    return _UNREAD


def _other(faults: list[Fault], at: Place, expected: str, value: object) -> object:
    """Note that something else came; an ``Unfit`` itself says what."""
    return _wrong(faults, at, str(value) if isinstance(value, Unfit) else f"expected {expected}, came {came(value)}")


def _pointer(at: Place) -> str:
    return "" if at is None else pointer(_pointer(at[0]), at[1])

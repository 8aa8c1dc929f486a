"""Dataclass ⇄ XML by closures compiled once a class, at registration.

``writer`` gives a function from a payload to its element as canonical text (exclusive C14N: no empty-element tags, the
escapes that C14N names, ``xsi`` declared where it is used). ``reader`` gives one from an element *that the XSD has
accepted* to a fresh payload. Neither tracks where it is: when one raises, ``explain`` walks again and says where.

Closures, not generated source: they take 2 µs of ``Codec.seal``, and generated source could win one of them at most,
for code that no reader and no tool can see.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter, call
from typing import Any

from lxml.etree import _Element

from organism.codec.lexical import TEXT_OF, VALUE_OF, Unfit, attribute, closing, escaped, opening
from organism.codec.limits import XSI
from organism.codec.shape import (
    Field,
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
    inner,
)

NIL = f"{{{XSI}}}nil"

Write = Callable[[Any], str]
Read = Callable[[_Element], Any]


def later(by_class: dict[type, Callable[..., Any]], cls: type) -> Callable[..., Any]:
    """The function for ``cls``, looked up when called: a record may refer to one that is compiled after it."""

    def call_later(*arguments: Any) -> Any:
        return by_class[cls](*arguments)

    return call_later


_XSI_DECLARED = attribute("xmlns:xsi", XSI)
_NIL_MARK = attribute("xsi:nil", "true")


# ── dataclass → XML ──────────────────────────────────────────────────────────────────────────────────────────────────


def writer(payload: Payload) -> Write:
    """A function from a payload to what stands between its root's tags.

    It raises ``Unfit`` for a wrong value, AttributeError for a missing one, RecursionError for one that holds itself.
    """
    return _Writers(payload).of(payload.root.cls)


class _Writers:
    """The writers of a payload's records: each record is one template with a place for each field."""

    def __init__(self, payload: Payload) -> None:
        self._by_class: dict[type, Write] = {}
        for cls, record in reversed(payload.records.items()):
            self._by_class[cls] = self._record(record)

    def of(self, cls: type) -> Write:
        """The writer of a record; one that is not compiled yet is looked up when it is called."""
        return self._by_class.get(cls) or later(self._by_class, cls)

    def _record(self, record: Record) -> Write:
        cls, name = record.cls, record.name
        elements = [self._field(field) for field in record.fields]
        template = "".join(element for element, _ in elements)
        writes = [write for _, write in elements]
        values_of = getter(record)

        def write(value: Any) -> str:
            if type(value) is not cls:
                _not_a(name, value)
            return template % tuple(map(call, writes, values_of(value)))

        return write

    def _field(self, field: Field) -> tuple[str, Write]:
        return self._element(field.name, field.shape, nil=_nil_element(field.name) if field.nil else "")

    def _element(self, name: str, shape: Shape, *, nil: str) -> tuple[str, Write]:
        """The element's template and what fills its place; ``nil`` is what None becomes, where None may be."""
        if not isinstance(shape, Maybe):
            return f"{opening(name)}%s{closing(name)}", self._content(shape)
        element, content = self._element(name, shape.inner, nil="")
        return "%s", lambda value: nil if value is None else element % content(value)

    def _content(self, shape: Shape) -> Write:
        match shape:
            case Scalar(kind):
                return _text if kind is Kind.STR else TEXT_OF[kind]
            case Options():
                return _option_writer(shape)
            case Items(item):
                return _items_writer(*self._element("item", item, nil=_nil_element("item")))
            case Table(_, value):
                return self._table(value)
            case Nested(cls):
                return self.of(cls)
            case Variant(classes):
                return self._variant(classes)
            case _:
                raise AssertionError(shape)  # a Maybe is taken apart by _element

    def _table(self, value_shape: Shape) -> Write:
        content = self._content(inner(value_shape))
        optional = isinstance(value_shape, Maybe)
        end = closing("item")

        def write(table: Any) -> str:
            if type(table) is not dict:
                _not_a("dict", table)
            items: list[str] = []
            for key, value in table.items():
                key_text = attribute("key", TEXT_OF[Kind.STR](key))
                if optional and value is None:
                    items += (opening("item", _XSI_DECLARED + key_text + _NIL_MARK), end)
                else:
                    items += (opening("item", key_text), content(value), end)
            return "".join(items)

        return write

    def _variant(self, classes: tuple[type, ...]) -> Write:
        tags = {cls: (opening(cls.__name__), closing(cls.__name__)) for cls in classes}

        def write(value: Any) -> str:
            cls = type(value)
            if cls not in tags:
                _not_a(" or ".join(known.__name__ for known in tags), value)
            start, end = tags[cls]
            return start + self._by_class[cls](value) + end

        return write


def _nil_element(name: str) -> str:
    return opening(name, _XSI_DECLARED + _NIL_MARK) + closing(name)


def _text(value: Any) -> str:
    return escaped(value if type(value) is str else TEXT_OF[Kind.STR](value))


def _items_writer(element: str, content: Write) -> Write:
    def write(items: Any) -> str:
        if type(items) is not list:
            _not_a("list", items)
        return "".join([element % content(item) for item in items])

    return write


def _option_writer(shape: Options) -> Write:
    wanted = shape.enum or type(shape.values[0])
    members = shape.enum or shape.values
    texts = {member: escaped(str(value)) for member, value in zip(members, shape.values, strict=True)}

    def write(value: Any) -> str:
        text = texts.get(value) if type(value) is wanted else None
        if text is None:
            _not_a(wanted.__name__, value)
        return text or ""

    return write


def _not_a(name: str, value: object) -> str:
    raise Unfit(f"expected {name}, came {type(value).__name__}")


# ── XML → dataclass ──────────────────────────────────────────────────────────────────────────────────────────────────


def reader(payload: Payload) -> Read:
    """A function from a valid element to a payload.

    It raises what a ``__post_init__`` raises, and ValueError where Python's range is narrower than the XSD's.
    """
    return _Readers(payload).of(payload.root.cls)


class _Readers:
    """As ``_Writers``, the other way."""

    def __init__(self, payload: Payload) -> None:
        self._by_class: dict[type, Read] = {}
        for cls, record in reversed(payload.records.items()):
            self._by_class[cls] = self._record(record)

    def of(self, cls: type) -> Read:
        return self._by_class.get(cls) or later(self._by_class, cls)

    def _record(self, record: Record) -> Read:
        fields = record.fields
        reads = [self._value(field.shape, nil=field.nil) for field in fields]
        make = maker(record)

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

        return read

    def _value(self, shape: Shape, *, nil: bool) -> Read:
        """``nil`` says whether ``xsi:nil`` may stand here."""
        if not isinstance(shape, Maybe):
            return self._content(shape)
        content = self._content(shape.inner)
        return (lambda element: None if _is_nil(element) else content(element)) if nil else content

    def _content(self, shape: Shape) -> Read:
        match shape:
            case Scalar(kind):
                return _scalar_reader(kind)
            case Options():
                return _option_reader(shape)
            case Items(item):
                one = self._value(item, nil=True)
                return lambda element: [one(child) for child in element]
            case Table(_, value):
                return _table_reader(self._value(value, nil=True))
            case Nested(cls):
                return self.of(cls)
            case Variant(classes):
                named = {cls.__name__: cls for cls in classes}
                return lambda element: self._by_class[named[element[0].tag]](element[0])
            case _:
                raise AssertionError(shape)  # a Maybe is taken apart by _value


def getter(record: Record) -> Callable[[Any], tuple[Any, ...]]:
    """A function from an object to the values of all its fields, in order."""
    names = [field.name for field in record.fields]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple([getattr(value, name) for name in names])


def maker(record: Record) -> Callable[..., Any]:
    """A function from the values of all fields, in order, to the object."""
    cls = record.cls
    names = [field.name for field in record.fields]
    if any(field.keyword for field in record.fields):
        return lambda *values: cls(**dict(zip(names, values, strict=True)))
    return cls


def _is_nil(element: _Element) -> bool:
    return element.get(NIL, "").strip() in {"true", "1"}


def _scalar_reader(kind: Kind) -> Read:
    if kind is Kind.STR:
        return lambda element: element.text or ""
    value_of = VALUE_OF[kind]
    return lambda element: value_of(element.text or "")


def _option_reader(shape: Options) -> Read:
    members = dict(zip(shape.values, shape.enum or shape.values, strict=True))
    if shape.numeric:
        return lambda element: members[int(element.text or "")]
    return lambda element: members[element.text or ""]


def _table_reader(one: Read) -> Read:
    def read(element: _Element) -> dict[str, Any]:
        table = {str(child.get("key")): one(child) for child in element}
        if len(table) < len(element):
            raise Unfit("a key stands twice in a dict")
        return table

    return read

"""Dataclass ⇄ XML by closures compiled once a class, at registration.

``writer`` gives a function from a payload to its element as canonical text (exclusive C14N: no empty-element tags, the
escapes that C14N names, ``xsi`` declared where it is used). ``reader`` gives one from an element *that the XSD has
accepted* to a fresh payload. Neither tracks where it is: when one raises, ``explain`` walks again and says where.

Closures, not generated source: they take 2 µs of ``Codec.seal``, and generated source could win one of them at most,
for code that no reader and no tool can see.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from lxml.etree import _Element

from organism.codec.lexical import TEXT_OF, VALUE_OF, Unfit
from organism.codec.limits import XSI
from organism.codec.markup import attribute, closing, escaped, opening
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


def later(by_class: dict[type, Callable[[Any], Any]], cls: type) -> Callable[[Any], Any]:
    """The function for ``cls``, looked up when called: a record may refer to one that is compiled after it."""

    def call(value: Any) -> Any:
        return by_class[cls](value)

    return call


_XSI_DECLARED = attribute("xmlns:xsi", XSI)
_NIL_MARK = attribute("xsi:nil", "true")


# ── dataclass → XML ──────────────────────────────────────────────────────────────────────────────────────────────────


def writer(payload: Payload) -> Write:
    """A function from a payload to what stands between its root's tags.

    It raises ``Unfit`` for a wrong value, AttributeError for a missing one, RecursionError for one that holds itself.
    """
    return _Writers(payload).of(payload.root.cls)


class _Writers:
    """The writers of a payload's records."""

    def __init__(self, payload: Payload) -> None:
        self._by_class: dict[type, Write] = {}
        for cls, record in payload.records.items():
            self._by_class[cls] = self._record(record)

    def of(self, cls: type) -> Write:
        return self._by_class[cls]

    def _record(self, record: Record) -> Write:
        cls, name = record.cls, record.name
        elements = [self._field(field) for field in record.fields]
        if not elements:
            return lambda value: "" if type(value) is cls else _not_a(name, value)
        if len(elements) == 1:
            get_one, only = attrgetter(record.fields[0].name), elements[0]
            return lambda value: only(get_one(value)) if type(value) is cls else _not_a(name, value)
        get = attrgetter(*(field.name for field in record.fields))

        def write(value: Any) -> str:
            if type(value) is not cls:
                _not_a(name, value)
            return "".join([element(item) for element, item in zip(elements, get(value), strict=False)])

        return write

    def _field(self, field: Field) -> Write:
        return self._element(field.name, field.shape, nil=_nil_element(field.name) if field.nil else "")

    def _element(self, name: str, shape: Shape, *, nil: str) -> Write:
        """``nil`` is what None becomes, where None may be."""
        start, end = opening(name), closing(name)
        if isinstance(shape, Maybe):
            present = self._element(name, shape.inner, nil="")
            return lambda value: nil if value is None else present(value)
        if _is_text(shape):
            return _text_element(start, end)
        content = self._content(shape)
        return lambda value: start + content(value) + end

    def _content(self, shape: Shape) -> Write:
        match shape:
            case Scalar(kind):
                return TEXT_OF[kind]
            case Options():
                return _option_writer(shape)
            case Items(item):
                return _items_writer(self._element("item", item, nil=_nil_element("item")))
            case Table(_, value):
                return self._table(value)
            case Nested(cls):
                return later(self._by_class, cls)
            case Variant(classes):
                return self._variant(classes)
            case _:
                raise AssertionError(shape)  # a Maybe is taken apart by _element

    def _table(self, value_shape: Shape) -> Write:
        inside = inner(value_shape)
        content = _text if _is_text(inside) else self._content(inside)
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
    return escaped(TEXT_OF[Kind.STR](value))


def _text_element(start: str, end: str) -> Write:
    text_of = TEXT_OF[Kind.STR]

    def write(value: Any) -> str:
        text = value if type(value) is str else text_of(value)
        return start + escaped(text) + end

    return write


def _items_writer(element: Write) -> Write:
    def write(items: Any) -> str:
        if type(items) is not list:
            _not_a("list", items)
        return "".join([element(item) for item in items])

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
        for cls, record in payload.records.items():
            self._by_class[cls] = self._record(record)

    def of(self, cls: type) -> Read:
        return self._by_class[cls]

    def _record(self, record: Record) -> Read:
        fields = record.fields
        count = len(fields)
        readers = [self._value(field.shape, nil=field.nil) for field in fields]
        make = maker(record)
        if all(field.absent is None and _is_text(field.shape) for field in fields):
            return lambda element: make([child.text or "" for child in element])

        def read(element: _Element) -> Any:
            if len(element) == count:  # the XSD holds their order
                return make([one(child) for one, child in zip(readers, element, strict=False)])
            present = {child.tag: child for child in element}
            return make(
                [
                    one(present[field.name]) if field.name in present else field.absent()  # type: ignore[misc]  # only those may be missing
                    for one, field in zip(readers, fields, strict=True)
                ]
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
                return later(self._by_class, cls)
            case Variant(classes):
                named = {cls.__name__: cls for cls in classes}
                return lambda element: self._by_class[named[element[0].tag]](element[0])
            case _:
                raise AssertionError(shape)  # a Maybe is taken apart by _value


def maker(record: Record) -> Callable[[Sequence[Any]], Any]:
    """A function from the values of all fields, in order, to the object."""
    cls = record.cls
    names = [field.name for field in record.fields]
    if any(field.keyword for field in record.fields):
        return lambda values: cls(**dict(zip(names, values, strict=True)))
    return lambda values: cls(*values)


def _is_text(shape: Shape) -> bool:
    return isinstance(shape, Scalar) and shape.kind is Kind.STR


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

"""Canonical XML as text: tags, and values as they stand between them."""

from __future__ import annotations

_END = "</"


def escaped(text: str) -> str:
    """``text`` as canonical XML writes it between tags."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#xD;")


def escaped_in_attribute(text: str) -> str:
    """``text`` as canonical XML writes it in an attribute."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return text.replace("\t", "&#x9;").replace("\n", "&#xA;").replace("\r", "&#xD;")


def opening(name: str, attributes: str = "") -> str:
    """The start tag."""
    return "<" + name + attributes + ">"


def attribute(name: str, value: str) -> str:
    """An attribute, or the declaration of a namespace, as a start tag holds it."""
    return " " + name + '="' + escaped_in_attribute(value) + '"'


def closing(name: str) -> str:
    """The end tag."""
    return _END + name + ">"

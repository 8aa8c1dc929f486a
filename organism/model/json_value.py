"""JSON of any shape as the type of a payload's field."""

from __future__ import annotations

from typing import Annotated, Any, Final


class JsonMark:
    """A note of an annotation: the values are JSON, whatever their shape."""


_MARK: Final = JsonMark()

Json = Annotated[Any, _MARK]
"""Any JSON value: None, true or false, a number, a text, or a list or dict of them."""
JsonObject = Annotated[dict[str, Any], _MARK]
"""A JSON object: a dict whose values are any JSON."""

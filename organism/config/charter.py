"""``organism.charter``: the file with what every prompt of the turn loop begins with.

``true``, the default, is ``prompts/charter.md`` beside organism.yaml, else the one that ships with the organism;
``false`` is none; a path is that file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from organism.config.check import came
from organism.config.faults import Faults
from organism.config.settings import Charter
from organism.config.text import lies_within, read_text
from organism.config.yaml import Node

CHARTER_FILE: Final = "prompts/charter.md"
_PLACE: Final = ("organism", "charter")


def read_charter(root: Node, folder: Path, faults: Faults) -> Charter:
    """The charter of an organism.yaml in ``folder``; all faults are noted."""
    node = root.nearest(_PLACE)
    written = _written(root)
    if written is False:
        return Charter(written=False, text="")
    name = CHARTER_FILE if written is True else written
    if not isinstance(name, str) or not name.strip():
        expected = f"expected the path of a file such as `{CHARTER_FILE}`, or false for none"
        faults.add(node.line, _PLACE, f"{expected}; came {came(written)}")
    elif not lies_within(folder / name, folder):
        faults.add(node.line, _PLACE, f"expected a file beside organism.yaml or below; `{name}` leads elsewhere")
    elif (folder / name).is_file():
        return Charter(written=written, text=_text(folder, name, faults))
    elif written is not True:
        faults.add(node.line, _PLACE, f"there is no file `{name}` beside organism.yaml")
    return Charter()


def _written(root: Node) -> Any:
    section = root.plain().get("organism") if isinstance(root.value, dict) else None
    return section.get("charter", True) if isinstance(section, dict) else True


def _text(folder: Path, name: str, faults: Faults) -> str:
    own = faults.of(name)
    text = read_text(folder / name, own, if_missing="see that it may be read", if_large="shorten it")
    if own.are_none and not text.strip():
        own.add(1, (), "the file is empty; write what every prompt begins with, or set `organism.charter: false`")
    return text

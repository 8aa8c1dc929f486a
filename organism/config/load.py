"""organism.yaml → settings: all of it is checked, and all that is wrong is told at once.

The way: read the text (S16), hold each section against its table, import the modules that it names as one new set,
check the code. Settings are made only if nothing was wrong anywhere; else ``ConfigInvalid`` carries every fault with
its line and key, and what was loaded before stays as it was (G12).
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from organism.config.agents import read_agent_files
from organism.config.check import came, held
from organism.config.code import CheckPayload, Code
from organism.config.faults import Faults
from organism.config.listeners import Beside, names_used, read_listeners
from organism.config.models import read_models, served_models
from organism.config.modules import Importer
from organism.config.sections import EmbeddingSection, OrganismSection, Root
from organism.config.settings import Charter, Limits, Retry, Settings
from organism.config.shipped import Ship, nothing_shipped
from organism.config.text import lies_within, read_text
from organism.config.tool_settings import Tools
from organism.config.tools import read_tools
from organism.config.yaml import Node, read_yaml
from organism.errors import ConfigInvalid

CHARTER_FILE: Final = "prompts/charter.md"

_CHARTER: Final = ("organism", "charter")
Kind = TypeVar("Kind")


def load(
    path: Path,
    *,
    check_payload: CheckPayload,
    imports: Importer | None = None,
    ship: Ship = nothing_shipped,
    bundled: Path | None = None,
) -> Settings:
    """Read the file and the files of agents, and import what they name.

    ``check_payload`` says what keeps a dataclass from becoming a schema. ``imports`` is the organism's importer, the
    same at each reload; without one the load stands for itself. ``ship`` gives the shipped tools, ``bundled`` is
    the folder of the agents that are served where there are none. Raises ``ConfigInvalid`` with all faults, in the
    order of their lines, each with the pointer ``organism.yaml:LINE:KEY``. Must not run in two threads at the same
    time.
    """
    faults = Faults(path.name)
    text, root = _read(path, faults)
    importer = imports or Importer()
    folder = path.parent.resolve()
    sections = held(Root, root, (), faults)
    for name in sections.embeddings:
        held(EmbeddingSection, root.nearest(("embeddings", name)), ("embeddings", name), faults)
    organism = _held(OrganismSection, root, "organism", faults)
    limits, retry = _held(Limits, root, "limits", faults), _retry(root, faults)
    tools = read_tools(_part(root, "tools"), faults)
    charter = _charter(root, folder, faults)
    prefixes = _prefixes(_part(root, "organism"), importer.allows, faults)
    files = read_agent_files(folder, bundled, faults)
    models = served_models(read_models(_part(root, "models"), folder, faults), files)
    with importer.fresh(folder, prefixes or ()) as modules:
        code = Code(modules, prefixes, check_payload, faults)
        beside = Beside(ship(tools), files, models)
        listeners = read_listeners(_part(root, "listeners"), limits, code, faults, beside)
        code.complete()
        faults.refuse_if_any()
    return Settings(
        name=organism.name,
        imports=organism.imports,
        limits=limits,
        retry=retry,
        models=models,
        embeddings=sections.embeddings,
        tools=tools,
        fx=sections.fx,
        listeners=listeners.named,
        shelf=listeners.shelf,
        off=listeners.off,
        prompts=files.prompts,
        source_text=text,
        digest=_digest(text, code.digest(), files.digest, (charter.text or "").encode()),
        folder=modules.sources.folder,
        charter=charter,
        modules=modules,
    )


def foresee(path: Path, bundled: Path | None = None) -> tuple[Tools, frozenset[str]]:
    """Of a file that names MCP servers: what it says of tools, and every name that it and the agents name.

    That is known before all else is read. What is wrong is told by ``load``; where nothing can be read is nothing.
    """
    faults = Faults(path.name)
    try:
        if "mcp" not in path.read_text("utf-8", "replace"):  # most files: so they are not read twice
            return Tools(), frozenset()
        _, root = _read(path, faults)
    except (ConfigInvalid, OSError):
        return Tools(), frozenset()
    files = read_agent_files(path.parent.resolve(), bundled, faults)
    return read_tools(_part(root, "tools"), faults), names_used(_part(root, "listeners"), files)


def _digest(text: str, *others: bytes) -> str:
    """Of all that was read."""
    return hashlib.sha256(text.encode() + b"\0" + b"".join(others)).hexdigest()


def _read(path: Path, faults: Faults) -> tuple[str, Node]:
    """The text of the file, and what it says. Raises ``ConfigInvalid`` if there is nothing to go on with."""
    text = read_text(
        path,
        faults,
        if_missing="`organism init DIR` writes a first one",
        if_large="put long prompts into their own files",
    )
    faults.refuse_if_any()
    root = read_yaml(text, faults)
    if root is None:
        raise faults.refusal()
    return text, root


def _part(root: Node, key: str) -> Node | None:
    """The mapping or list that stands behind a key at the top; None if there is none."""
    node = root.value.get(key) if isinstance(root.value, dict) else None
    return node if node is not None and isinstance(node.value, dict | tuple) else None


def _held(kind: type[Kind], root: Node, key: str, faults: Faults) -> Kind:
    """The section behind a key at the top; one that is not there has its defaults."""
    node = _part(root, key)
    return kind() if node is None else held(kind, node, (key,), faults)


def _prefixes(organism: Node | None, allows: Callable[[str], bool], faults: Faults) -> tuple[str, ...] | None:
    """The prefixes, or None if one of them is no module that may be imported; its shape is not told here again."""
    if organism is None:
        return None
    imports = organism.nearest(("imports",))
    if imports is organism:
        return ()
    prefixes = imports.plain() if isinstance(imports.value, tuple) else [None]
    for index, prefix in enumerate(prefixes):
        wrong = _wrong_prefix(prefix, allows) if isinstance(prefix, str) else None
        if wrong:
            faults.add(imports.nearest((index,)).line, ("organism", "imports", index), wrong)
        if wrong or not isinstance(prefix, str):
            return None
    return tuple(prefixes)


def _wrong_prefix(prefix: str, allows: Callable[[str], bool]) -> str | None:
    if prefix.partition(".")[0] in sys.stdlib_module_names:
        return f"`{prefix}` is a module of Python itself; name the package of your handlers"
    if not allows(prefix):
        return f"`{prefix}` was not allowed when the organism started; restart it to allow another prefix"
    return None


def _retry(root: Node, faults: Faults) -> Retry:
    retry = _held(Retry, root, "retry", faults)
    if retry.max_delay_s < retry.base_delay_s:
        line = root.nearest(("retry", "max_delay_s")).line
        expected = f"expected at least base_delay_s ({retry.base_delay_s:g})"
        faults.add(line, ("retry", "max_delay_s"), f"{expected}, came {retry.max_delay_s:g}")
    return retry


def _charter(root: Node, folder: Path, faults: Faults) -> Charter:
    """What every prompt of the turn loop begins with.

    ``true``, the default, is ``prompts/charter.md`` beside organism.yaml, else the one that ships with the organism;
    ``false`` is none; a path is that file.
    """
    node = root.nearest(_CHARTER)
    written = _written(root)
    if written is False:
        return Charter(written=False, text="")
    name = CHARTER_FILE if written is True else written
    if not isinstance(name, str) or not name.strip():
        expected = f"expected the path of a file such as `{CHARTER_FILE}`, or false for none"
        faults.add(node.line, _CHARTER, f"{expected}; came {came(written)}")
    elif not lies_within(folder / name, folder):
        faults.add(node.line, _CHARTER, f"expected a file beside organism.yaml or below; `{name}` leads elsewhere")
    elif (folder / name).is_file():
        return Charter(written=written, text=_charter_text(folder, name, faults))
    elif written is not True:
        faults.add(node.line, _CHARTER, f"there is no file `{name}` beside organism.yaml")
    return Charter()


def _written(root: Node) -> Any:
    section = root.plain().get("organism") if isinstance(root.value, dict) else None
    return section.get("charter", True) if isinstance(section, dict) else True


def _charter_text(folder: Path, name: str, faults: Faults) -> str:
    own = faults.of(name)
    text = read_text(folder / name, own, if_missing="see that it may be read", if_large="shorten it")
    if own.are_none and not text.strip():
        own.add(1, (), "the file is empty; write what every prompt begins with, or set `organism.charter: false`")
    return text

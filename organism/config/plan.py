"""What organism.yaml says apart from its listeners: the sections that need no code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from organism.config.charter import read_charter
from organism.config.check import held
from organism.config.faults import Faults
from organism.config.models import read_models
from organism.config.sections import EmbeddingSection, OrganismSection, Root
from organism.config.settings import Charter, Limits, Model, Retry
from organism.config.tool_settings import Tools
from organism.config.tools import read_tools
from organism.config.yaml import Node


@dataclass(frozen=True, slots=True)
class Plan:
    """The checked sections. ``prefixes`` is None if they are in doubt: then no code can be looked for."""

    sections: Root
    organism: OrganismSection
    limits: Limits
    retry: Retry
    models: Mapping[str, Model]
    tools: Tools
    charter: Charter
    prefixes: tuple[str, ...] | None


def read_plan(root: Node, folder: Path, allows: Callable[[str], bool], faults: Faults) -> Plan:
    """Read and check them; ``allows`` says whether the running organism may import below a prefix (S16)."""
    sections = held(Root, root, (), faults)
    for name in sections.embeddings:
        held(EmbeddingSection, root.nearest(("embeddings", name)), ("embeddings", name), faults)
    retry = _retry(part(root, "retry"), faults)
    limits = part(root, "limits")
    organism = part(root, "organism")
    return Plan(
        sections=sections,
        organism=held(OrganismSection, organism, ("organism",), faults) if organism else OrganismSection(),
        limits=held(Limits, limits, ("limits",), faults) if limits else Limits(),
        retry=retry,
        models=read_models(part(root, "models"), folder, faults),
        tools=read_tools(part(root, "tools"), faults),
        charter=read_charter(root, folder, faults),
        prefixes=_prefixes(organism, allows, faults) if organism else None,
    )


def part(root: Node, key: str) -> Node | None:
    """The mapping or list that stands behind a key at the top; None if there is none."""
    node = root.value.get(key) if isinstance(root.value, dict) else None
    return node if node is not None and isinstance(node.value, dict | tuple) else None


def _prefixes(organism: Node, allows: Callable[[str], bool], faults: Faults) -> tuple[str, ...] | None:
    """The prefixes, or None if one of them is no module that may be imported; its shape is not told here again."""
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


def _retry(node: Node | None, faults: Faults) -> Retry:
    retry = held(Retry, node, ("retry",), faults) if node else Retry()
    if node and retry.max_delay_s < retry.base_delay_s:
        line = node.nearest(("max_delay_s",)).line
        expected = f"expected at least base_delay_s ({retry.base_delay_s:g})"
        faults.add(line, ("retry", "max_delay_s"), f"{expected}, came {retry.max_delay_s:g}")
    return retry

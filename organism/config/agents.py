"""Reads the files of agents: ``config/agents/{name}.yaml`` and ``{name}/{version}.json``, next to organism.yaml.

Without that folder the bundled agents are served.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from organism.config.check import Section
from organism.config.faults import Faults, lies_within, read_text
from organism.config.prompts import (
    PROMPT_FOLDER,
    BadPrompt,
    PromptConfig,
    PromptKey,
    is_prompt_name,
    read_prompt,
)
from organism.config.settings import AgentSettings
from organism.config.yaml import read_yaml

MAX_FILES: Final = 1000
_EXPECTED: Final = "a mapping with `name`, `model`, `description` and `system_prompt`"


@dataclass(frozen=True, slots=True)
class AgentEntry:
    """One agent with its file. ``is_bundled``: it came with the organism."""

    agent: AgentSettings
    file: Section
    is_bundled: bool = False


@dataclass(frozen=True, slots=True)
class AgentFiles:
    """What the files say: agents and prompts by name, and the digest of all that was read."""

    agents: Mapping[str, AgentEntry] = field(default_factory=dict)
    prompts: Mapping[PromptKey, PromptConfig] = field(default_factory=dict)
    digest: bytes = b""


def read_agent_files(folder: Path, bundled: Path | None, faults: Faults) -> AgentFiles:
    """Read those in ``folder``, which has organism.yaml, or the bundled ones; all faults are noted."""
    place = folder / PROMPT_FOLDER
    if place.exists() and not lies_within(place, folder):
        faults.of(PROMPT_FOLDER).add(1, (), "expected a folder below that of organism.yaml; a link leads elsewhere")
        return AgentFiles()
    if place.is_dir():
        return _Reader(place, folder, faults).read()
    if place.exists():
        faults.of(PROMPT_FOLDER).add(1, (), "expected a folder with the files of agents, came a file")
    return _Reader(bundled, bundled, faults, is_bundled=True).read() if bundled is not None else AgentFiles()


class _Reader:
    """Reads one folder, in the order of names. No link leads it out of ``root``."""

    def __init__(self, folder: Path, root: Path, faults: Faults, *, is_bundled: bool = False) -> None:
        self._folder = folder
        self._root = root
        self._faults = faults
        self._is_bundled = is_bundled
        self._agents: dict[str, AgentEntry] = {}
        self._prompts: dict[PromptKey, PromptConfig] = {}
        self._digest = hashlib.sha256()

    def read(self) -> AgentFiles:
        """All of them."""
        for count, path in enumerate(self._files()):
            file = path.relative_to(self._folder).as_posix()
            faults = self._faults.of(f"{PROMPT_FOLDER}/{file}")
            if count >= MAX_FILES:
                faults.add(1, (), f"expected at most {MAX_FILES} files of agents, came more")
                break
            if not path.is_file():
                faults.add(1, (), "expected a file, came something else or a link to nothing")
            elif not lies_within(path, self._root):
                faults.add(1, (), "expected a file below the folder of organism.yaml; a link leads elsewhere")
            if not faults.are_none:
                continue
            text = read_text(path, faults, if_missing="see that it may be read", if_large="shorten it")
            self._digest.update(f"{file}:{len(text)}:{text}".encode())
            if faults.are_none:
                read = self._prompt if path.suffix == ".json" else self._agent
                read(text, path, faults)
        return AgentFiles(self._agents, self._prompts, self._digest.digest())

    def _files(self) -> Iterator[Path]:
        """The files of agents and prompts. A misplaced one is a fault; what is hidden or of another kind is not."""
        for path in self._within(self._folder):
            if path.is_dir():
                yield from (each for each in self._within(path) if each.suffix == ".json")
            elif path.suffix == ".yaml":
                yield path
            elif path.suffix in {".yml", ".json"}:
                where = f"{path.stem}.yaml" if path.suffix == ".yml" else f"{path.stem}/v1.json"
                faults = self._faults.of(f"{PROMPT_FOLDER}/{path.name}")
                faults.add(1, (), f"this file would not be read: expected it at {PROMPT_FOLDER}/{where}")

    def _within(self, folder: Path) -> list[Path]:
        try:
            return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
        except OSError as error:
            where = PROMPT_FOLDER if folder == self._folder else f"{PROMPT_FOLDER}/{folder.name}"
            self._faults.of(where).add(1, (), f"the folder cannot be read: {error.strerror}")
            return []

    def _prompt(self, text: str, path: Path, faults: Faults) -> None:
        name, version = key = path.parent.name, path.stem
        if not is_prompt_name(name) or not is_prompt_name(version):
            faults.add(1, (), "expected names of letters, digits, `_`, `.` and `-` for the folder and the file")
            return
        try:
            self._prompts[key] = read_prompt(text, name, version)
        except BadPrompt as error:
            for fault in error.faults:
                faults.at(fault.pointer, fault.message)

    def _agent(self, text: str, path: Path, faults: Faults) -> None:
        node = read_yaml(text, faults, _EXPECTED)
        if node is None:
            return
        file = Section(node, (), faults)
        agent = file.record(AgentSettings)
        if not isinstance(node.value, dict):
            return
        if agent.name and agent.name != path.stem:
            file.add(f"expected `{path.stem}`, as the file is called, came `{agent.name}`", "name")
        self._agents[path.stem] = AgentEntry(agent, file, self._is_bundled)

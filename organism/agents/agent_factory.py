"""From the name and the version of an agent to its prompt, by a file of configuration (AgentStack)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from organism.agents.agent_prompt import AgentPrompt, AgentPromptInputError
from organism.config.faults import MAX_FILE_BYTES, lies_within
from organism.config.prompts import SERVED, BadPrompt, PromptConfig, is_prompt_name, prompt_path, read_prompt
from organism.errors import ConfigInvalid, Fault


class UnknownAgentConfigError(LookupError):
    """There is no configuration of that name and version."""


class AgentFactory:
    """Makes prompts of ``config/agents/{name}/{version}.json``. A new agent or version is a new file."""

    @classmethod
    def create(cls, agent_name: str, version: str, input_payload: Mapping[str, Any]) -> AgentPrompt:
        """The prompt from the organism's files, outside of organisms from the working directory; checks the payload.

        Raises ``UnknownAgentConfigError``, ``ConfigInvalid`` with every fault of it, or ``AgentPromptInputError``.
        """
        if not is_prompt_name(agent_name) or not is_prompt_name(version):
            expected = "expected names of letters, digits, `_`, `.` and `-`, such as A2 and v1"
            raise UnknownAgentConfigError(f"{expected}; came {agent_name!r} and {version!r}")
        served = SERVED.get()
        config = _read(agent_name, version) if served is None else served.get((agent_name, version))
        if config is None:
            raise UnknownAgentConfigError(f"There is no {prompt_path(agent_name, version)}; a reload reads new files.")
        check_payload(config, input_payload)
        return cls.prompt_of(config)

    @classmethod
    def prompt_of(cls, config: PromptConfig) -> AgentPrompt:
        return AgentPrompt(**{each.name: getattr(config, each.name) for each in fields(AgentPrompt)})


def _read(name: str, version: str) -> PromptConfig:
    path = prompt_path(name, version)
    if not lies_within(Path(path), Path()):
        raise UnknownAgentConfigError(f"{path} is a link that leads out of the working directory.")
    try:
        with Path(path).open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UnknownAgentConfigError(f"{Path.cwd() / path} cannot be read: {error.strerror}.") from None
    if len(raw) > MAX_FILE_BYTES:
        raise _invalid(path, [Fault("", f"expected at most {MAX_FILE_BYTES} bytes, came more")])
    try:
        return read_prompt(raw.decode("utf-8-sig"), name, version)
    except UnicodeDecodeError as error:
        raise _invalid(path, [Fault("", f"expected UTF-8, came the byte 0x{raw[error.start]:02x}")]) from None
    except BadPrompt as error:
        raise _invalid(path, error.faults) from None


def _invalid(path: str, faults: list[Fault]) -> ConfigInvalid:
    return ConfigInvalid(f"{path} is not valid.", details=tuple(faults))


def check_payload(config: PromptConfig, payload: Mapping[str, Any]) -> None:
    """Raise ``AgentPromptInputError`` if a key is missing that the configuration requires."""
    if not isinstance(payload, Mapping):
        raise AgentPromptInputError(f"Expected input_payload as a dict, came a {type(payload).__name__}.")
    missing = [key for key in config.input_keys if key not in payload]
    if missing:
        who = f"{config.agent_name}@{config.version}"
        raise AgentPromptInputError(f"{who} expects {', '.join(config.input_keys)}; missing: {', '.join(missing)}.")

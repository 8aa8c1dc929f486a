"""What the documentation names in backticks exists: files, commands and the words of the program."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache

import pytest

from tests.house.tree import Source, read_repository

FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
QUOTED = re.compile(r"`([^`\n]+)`")
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")
PATH = re.compile(r"(?:[\w.-]+/)+[\w.-]+\.(?:py|md|sql|sh|ts|yaml|svelte|xsd|toml)\b")
COMMAND = re.compile(r"(?<!from )\borganism ([a-z][a-z-]+)")
EXAMPLES = frozenset(
    {"courier", "parcel", "test_parcel", "server__tool", "files__read_file", "files__write_file", "COPY"}
    | {"_SECRET", "_PASSWORD", "OTEL_BSP_", "OTEL_EXPORTER_", "thought_"}
)
"""Names that a reader makes up, and beginnings and ends of names."""
OTHERS = frozenset({"uuid7", "opentelemetry-exporter-otlp-proto-http", "proto", "ssh", "NORMAL", "onmessage"})
"""Names of other programs and libraries, which nothing here uses."""
MADE_UP_FILES = frozenset({"handlers/parcel.py", "config/agents/clerk.yaml", "config/tokens.yaml"})
"""Files that the reader makes, or the program."""


@cache
def words() -> frozenset[str]:
    """Every word of the repository's own files and of their names, the documentation left out."""
    sources = read_repository()
    texts = [source.text for source in sources if not source.path.endswith(".md")]
    paths = [source.path for source in sources]
    return EXAMPLES | OTHERS | {word for text in (*texts, *paths) for word in WORD.findall(text)}


@cache
def commands() -> frozenset[str]:
    """The words of the program's own help."""
    told = subprocess.run([sys.executable, "-m", "organism", "--help"], capture_output=True, check=True)
    return frozenset(re.findall(r"[a-z][a-z-]+", told.stdout.decode()))


def pages() -> list[Source]:
    return [page for page in read_repository() if page.path.endswith(".md") and page.path != "CHANGELOG.md"]


def unknown(quoted: str) -> Iterator[str]:
    """What of a text in backticks does not exist."""
    yield from (word for word in WORD.findall(quoted) if word not in words())
    files = [f"/{source.path}" for source in read_repository()] if "/" in quoted else []
    for path in PATH.findall(quoted):
        if path not in MADE_UP_FILES and not any(name.endswith(f"/{path}") for name in files):
            yield path
    yield from (f"organism {command}" for command in COMMAND.findall(quoted) if command not in commands())


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.path)
def test_what_a_page_names_exists(page: Source) -> None:
    text = FENCED.sub("", page.text)
    assert {quoted: missing for quoted in QUOTED.findall(text) if (missing := [*unknown(quoted)])} == {}


@pytest.mark.parametrize("quoted", ["Pump" + "AndDump", "organism/pump/nowhere.py", "organism dance"])
def test_what_does_not_exist_is_found(quoted: str) -> None:
    assert [*unknown(quoted)]

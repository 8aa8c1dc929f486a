"""The organism.yaml that ships, and its handlers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from organism.agents import BUNDLED_AGENTS
from organism.codec import PayloadSchema
from organism.config.load import load
from organism.config.modules import Importer
from organism.config.settings import Limits, Retry, Settings
from organism.tools.toolbox import static_tools

SHIPPED = Path(__file__).parents[2] / "organism.yaml"


def has_schema(payload_class: type) -> list[str]:
    """The codec's own word; a class that it cannot take raises."""
    return [] if PayloadSchema.of(payload_class).xsd else ["it has no XSD"]


@pytest.fixture
def hello() -> Iterator[Settings]:
    importer = Importer()
    yield load(SHIPPED, check_payload=has_schema, imports=importer, ship=static_tools("1"))
    importer.close()


def test_the_shipped_file_shows_the_defaults_as_they_are(hello: Settings) -> None:
    assert (hello.name, hello.imports) == ("hello-world", ("handlers",))
    assert hello.limits == Limits()
    assert hello.retry == Retry()


def test_its_listeners_are_those_of_the_hello_organism_the_agents_and_their_tools(hello: Settings) -> None:
    wiring = {each.name: (each.is_agent, each.peers, each.payload_class.__name__) for each in hello.listeners}
    assert wiring == {
        "greeter": (True, ("shouter",), "Greeting"),
        "shouter": (False, ("response-handler",), "GreetingResponse"),
        "response-handler": (False, ("console",), "ShoutedResponse"),
        "prompt-shaper": (True, (), "PromptDraft"),
        "summarizer": (True, (), "Summarize"),
        **dict.fromkeys((path.stem for path in BUNDLED_AGENTS.glob("*.yaml")), (True, (), "Prompt")),
        "calculator": (False, (), "Calculator"),
        "current_datetime": (False, (), "CurrentDatetime"),
        "wikipedia_search": (False, (), "WikipediaSearch"),
        "wikipedia_summary": (False, (), "WikipediaSummary"),
        "rag_query": (False, (), "RagQuery"),
        "rag_index_list": (False, (), "RagIndexList"),
        "library": (True, ("rag_query",), "LibraryQuery"),
    }


def test_its_models_are_the_offline_one_until_others_are_configured(hello: Settings) -> None:
    models = {name: model.provider for name, model in hello.models.items()}
    assert models == dict.fromkeys(("gpt-4.1-mini", "llama-4-scout", "claude-opus-4.7"), "offline")


def test_its_agents_are_the_bundled_ones() -> None:
    own = {path.name: path.read_bytes() for path in (SHIPPED.parent / "config/agents").glob("*.yaml")}
    assert own == {path.name: path.read_bytes() for path in BUNDLED_AGENTS.glob("*.yaml")}

"""What of the configuration is shown: what is listed, and nothing secret."""

from __future__ import annotations

import json
from dataclasses import fields
from hashlib import sha256

import orjson
import pytest

from organism.config import shown
from organism.config.listeners import ListenerSection
from organism.config.load import EmbeddingSection
from organism.config.settings import AgentSettings, Budget, Limits, Model, Price, Retry, Spend
from organism.model.redact import NAMED
from tests.config.place import GREETER, HEAD, Place

SERVICES = """
models:
  fast: {provider: openai, base_url: "https://models.example:8443/v1", api_key_env: FAST_KEY,
         price: {input_usd_per_million: 0.5}}
embeddings:
  small: {provider: builtin, base_url: "https://[canary-broken"}
  large: {provider: openai, model: m, dim: 8, base_url: "https://canary-user:canary-word@models.example:8443/v1?key=canary-query"}
tools:
  http_fetch: {hosts: [a.example]}
"""


@pytest.mark.parametrize(
    "record", [ListenerSection, Model, AgentSettings, EmbeddingSection, Price, Budget, Spend, Limits, Retry]
)
def test_no_key_that_is_shown_may_hold_a_secret(record: type) -> None:
    assert {field.name for field in fields(record) if NAMED.search(field.name)} <= {"max_tokens", "tokens"}


def test_nothing_secret_is_shown_wherever_it_was_written(place: Place) -> None:
    place.yaml(HEAD.replace("listeners:", SERVICES + "listeners:") + GREETER)
    settings = shown.shown_settings(place.load())
    assert b"canary" not in orjson.dumps(settings)
    assert settings["models"]["fast"] == {
        "provider": "openai",
        "base_url": "https://models.example:8443/v1",
        "model": "fast",
        "api_key_env": "FAST_KEY",
        "context_window": 8192,
        "price": {"input_usd_per_million": 0.5, "output_usd_per_million": 0.0},
        "max_concurrent": 20,
        "rate_limit_tpm": 0,
        "fallback": [],
        "timeout_s": 120.0,
    }
    assert settings["embeddings"]["large"]["base_url"] == "https://models.example:8443/v1"
    assert settings["embeddings"]["small"] == {"provider": "builtin", "base_url": ""}
    assert settings["tools"] == {
        "http_fetch": {"hosts": ["a.example"], "timeout_s": 20.0, "max_bytes": 1048576, "max_redirects": 5},
        "wikipedia": {"base_url": "https://en.wikipedia.org", "timeout_s": 10.0},
    }


def test_what_is_left_out_is_shown_as_it_is_in_force(place: Place) -> None:
    settings = shown.shown_settings(place.load())
    (listener,) = settings["listeners"]
    assert settings["limits"]["max_depth"] == 50
    assert "max_concurrent_per_agent" not in settings["limits"]  # it depends on the listener, which says it
    assert settings["retry"]["attempts"] == 3
    assert (listener["max_concurrent"], listener["timeout_s"], listener["max_payload_bytes"]) == (64, 30.0, 262144)


def test_models_that_are_shown_can_be_loaded_again_and_are_the_same(place: Place) -> None:
    place.write("scripts/play.yaml", "")
    models = """
models:
  played: {provider: scripted, script: scripts/play.yaml, fallback: [fast]}
  fast: {provider: openai, base_url: "https://models.example/v1", price: {input_usd_per_million: 0.1}}
"""
    place.yaml(HEAD.replace("listeners:", models + "listeners:") + GREETER)
    first = place.load()
    place.write("organism.yaml", json.dumps(shown.shown_settings(first)))
    assert place.load().models == first.models


def test_a_section_is_shown_as_it_was_written(place: Place) -> None:
    place.yaml(HEAD + GREETER + "    prompt: Be kind.\n    budget: {run: {tokens: 5}}\n")
    (listener,) = place.load().listeners
    section = shown.shown_section(listener, with_prompt=True)
    assert section == dict(listener.section)


def test_a_prompt_is_shown_by_its_digest_to_those_who_may_not_read_it(place: Place) -> None:
    place.yaml(HEAD + GREETER + "    prompt: Be kind.\n")
    (listener,) = place.load().listeners
    section = shown.shown_section(listener, with_prompt=False)
    assert section["prompt"] == f"sha256:{sha256(b'Be kind.').hexdigest()}"

"""Which values of environment and configuration are live secrets (S30)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from organism.config.load import load
from organism.config.modules import Importer
from organism.config.settings import Model, Settings
from organism.config.shown import live_secrets
from organism.config.tools import Tools
from organism.tools.toolbox import static_tools

HELLO = Path(__file__).parents[2] / "organism.yaml"


@pytest.fixture(scope="module")
def settings() -> Settings:
    """Those of the hello organism."""
    return load(HELLO, check_payload=lambda _: [], imports=Importer(), ship=static_tools("1"))


@pytest.mark.parametrize(
    "name",
    ["ORGANISM_TOKEN", "OPENAI_API_KEY", "DB_PASSWORD", "client_secret", "AWS_SECRET_ACCESS_KEY", "SESSION_COOKIE"],
)
def test_a_variable_that_is_named_as_secrets_are_is_one(settings: Settings, name: str) -> None:
    assert live_secrets(settings, {name: " canary-1 "}) == {"canary-1"}


@pytest.mark.parametrize(
    "name", ["HOME", "TOKENIZERS_PARALLELISM", "SSL_KEY_FILE", "KEYBOARD", "PASSENGER", "ORGANISM_URL"]
)
def test_any_other_is_none(settings: Settings, name: str) -> None:
    assert live_secrets(settings, {name: "canary-1"}) == frozenset()


def test_a_variable_that_a_model_takes_its_key_from_is_one_whatever_its_name(settings: Settings) -> None:
    named = replace(settings, models={"m": Model(provider="openai", model="m", api_key_env="PLAIN")})
    named = replace(named, embeddings={"e": {"provider": "openai", "api_key_env": "SIMPLE"}})
    environment = {"PLAIN": "canary-1", "SIMPLE": "canary-2", "OTHER": "canary-3"}
    assert live_secrets(named, environment) == {"canary-1", "canary-2"}


def test_fields_that_are_named_as_secrets_are_and_credentials_in_addresses_are_secrets(settings: Settings) -> None:
    embeddings = {"m": {"base_url": "https://me:canary-1@models.example/v1", "headers": {"Authorization": "canary-2"}}}
    tools = {
        "t": {
            "deep": [{"api_key": "canary-3"}],
            "address": "https://canary-4@x",
            "plain": "https://x/y",
            "bad": "http://[",
        }
    }
    named = replace(settings, embeddings=embeddings, tools=Tools(section=tools))
    assert live_secrets(named, {}) == {"canary-1", "canary-2", "canary-3", "canary-4"}

"""``models`` of organism.yaml: what is read, and what is refused."""

from __future__ import annotations

from decimal import Decimal

import pytest

from organism.config.settings import Model, Price
from tests.config.place import Place

HEAD = "organism: {name: hello}\nmodels:\n"


def loaded(place: Place, text: str) -> dict[str, Model]:
    place.yaml(HEAD + text)
    return dict(place.load().models)


def test_every_key_of_a_model_is_taken(place: Place) -> None:
    models = loaded(
        place,
        """\
  gpt-4.1-mini: {provider: openai, model: gpt-4.1-mini-2025, base_url: "http://[::1]:8080/v1", api_key_env: OPENAI_KEY,
    context_window: 1000000, price: {input_usd_per_million: 0.15, output_usd_per_million: 1}, max_concurrent: 4,
    rate_limit_tpm: 100, fallback: [tiny], timeout_s: 7.5}
  tiny: {provider: offline}
""",
    )
    assert models["gpt-4.1-mini"] == Model(
        provider="openai",
        model="gpt-4.1-mini-2025",
        base_url="http://[::1]:8080/v1",
        api_key_env="OPENAI_KEY",
        context_window=1_000_000,
        price=Price(Decimal("0.15"), Decimal(1)),
        max_concurrent=4,
        rate_limit_tpm=100,
        fallback=("tiny",),
        timeout_s=7.5,
    )


def test_a_model_that_names_its_provider_alone_has_the_defaults(place: Place) -> None:
    model = loaded(place, "  tiny: {provider: offline}")["tiny"]
    assert model == Model(provider="offline", model="tiny")
    assert (model.base_url, model.api_key_env, model.script, model.fallback) == (None, None, None, ())
    assert (model.context_window, model.max_concurrent, model.rate_limit_tpm) == (8192, 20, 0)
    assert (model.price, model.timeout_s) == (Price(Decimal(0), Decimal(0)), 120.0)


def test_the_older_name_of_the_offline_model_is_read(place: Place) -> None:
    assert loaded(place, "  tiny: {provider: builtin}")["tiny"] == Model(provider="offline", model="tiny")


def test_a_script_lies_next_to_the_file(place: Place) -> None:
    place.write("scripts/play.yaml", "")
    model = loaded(place, "  a: {provider: scripted, script: scripts/play.yaml}")["a"]
    assert model.script == place.folder.resolve() / "scripts/play.yaml"


@pytest.mark.parametrize(
    "name", ["ft:gpt-4.1-mini-2025-04-14:personal:a2-promptshaper-v1:XXXX", "meta-llama/Llama-4", "3", "größe"]
)
def test_a_model_may_be_called_what_others_call_it(place: Place, name: str) -> None:
    assert loaded(place, f'  "{name}": {{provider: offline}}')[name].model == name


@pytest.mark.parametrize(
    ("section", "key", "message"),
    [
        ("{}", "provider", "`provider` is missing"),
        ("{provider: groq}", "provider", "expected 'openai', 'anthropic', 'offline', 'scripted' or 'local'"),
        ("{provider: replay}", "provider", "expected 'openai', 'anthropic', 'offline', 'scripted' or 'local'"),
        ("{provider: offline, price: {usd: 1}}", "price.usd", "unknown key `usd`"),
        ("{provider: offline, price: {input_usd_per_million: -0.1}}", "price.input_usd_per_million", "expected at le"),
        ("{provider: offline, fallback: [b]}", "fallback", "there is no model `b`"),
        ("{provider: offline, fallback: [a]}", "fallback", "this leads in a circle: a → a"),
        ("{provider: offline, context_window: 0}", "context_window", "expected at least 1"),
        ("{provider: offline, timeout_s: 0}", "timeout_s", "expected more than 0"),
        ("{provider: offline, max_concurrent: -1}", "max_concurrent", "expected at least 0"),
        ("{provider: offline, rate_limit_tpm: -1}", "rate_limit_tpm", "expected at least 0"),
        ("{provider: offline, timeout: 3}", "timeout", "unknown key `timeout`; did you mean `timeout_s`?"),
        ("{provider: scripted}", "script", "`script` is missing: name the YAML file with the answers"),
        ("{provider: scripted, script: no.yaml}", "script", "there is no file `no.yaml` next to organism.yaml"),
        ("{provider: scripted, script: /etc/hostname}", "script", "expected a file next to organism.yaml or below"),
        ("{provider: scripted, script: ../x.yaml}", "script", "expected a file next to organism.yaml or below"),
        ("{provider: offline, script: organism.yaml}", "script", "a model of the provider `offline` has no script"),
    ],
)
def test_each_wrong_key_of_a_model_is_refused(place: Place, section: str, key: str, message: str) -> None:
    faults = place.faults(f"{HEAD}  a: {section}")
    (where, what) = next(iter(faults.items()))
    assert len(faults) == 1
    assert where == f"3:models.a.{key}"
    assert what.startswith(message)


@pytest.mark.parametrize(
    "url",
    [
        "https://me:canary@models.example/v1", "https://canary@models.example/v1", "https://@models.example/canary",
        "https://models.example/v1?key=canary", "https://models.example/v1#canary", "ftp://models.example/canary",
        "file:///canary", "models.example/canary", "https:///canary", "https://[canary/v1",
        "https://models.example:99999/canary", "https://models.example:0/canary",
        "https://models.example:port/canary", "https://models.example/ca nary", "https://models.example/canary\\n",
        "javascript:canary", "//models.example/canary",
    ],
)  # fmt: skip
def test_an_address_is_http_without_credentials_and_a_wrong_one_is_not_told_again(place: Place, url: str) -> None:
    faults = place.faults(f'{HEAD}  a: {{provider: openai, base_url: "{url}"}}')
    assert list(faults) == ["3:models.a.base_url"]
    assert faults["3:models.a.base_url"].startswith("expected an address such as `https://models.example/v1`")
    assert "canary" not in str(faults)


@pytest.mark.parametrize("key", ["sk-canary0123", "sk_canary", "Bearer canary", "canary", "${CANARY}", "1CANARY"])
def test_a_key_in_place_of_its_variables_name_is_refused_and_not_reported_again(place: Place, key: str) -> None:
    faults = place.faults(f'{HEAD}  a: {{provider: openai, api_key_env: "{key}"}}')
    assert list(faults) == ["3:models.a.api_key_env"]
    assert "never the key itself" in faults["3:models.a.api_key_env"]
    assert key not in str(faults)


@pytest.mark.parametrize("name", ["a b", "", "a\\tb", "a" * 201])
def test_a_models_name_has_no_spaces_and_an_end(place: Place, name: str) -> None:
    (message,) = place.faults(f'{HEAD}  "{name}": {{provider: offline}}').values()
    assert message == "expected a name of at most 200 characters without spaces"


def test_each_circle_of_fallbacks_is_passed_once(place: Place) -> None:
    faults = place.faults(
        HEAD
        + """\
  a: {provider: offline, fallback: [b, d]}
  b: {provider: offline, fallback: [c]}
  c: {provider: offline, fallback: [b, d]}
  d: {provider: offline}
  e: {provider: offline, fallback: [a]}
"""
    )
    assert faults == {"5:models.c.fallback": "this leads in a circle: c → b → c"}


@pytest.mark.thorough
def test_a_long_way_of_fallbacks_is_walked_in_no_time(place: Place) -> None:
    ways = "".join(f"  m{at}: {{provider: offline, fallback: [m{at + 1}]}}\n" for at in range(3000))
    assert len(loaded(place, f"{ways}  m3000: {{provider: offline}}")) == 3001

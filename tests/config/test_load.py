from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from organism.config.faults import MAX_FILE_BYTES
from organism.config.load import load
from organism.config.tools import Tools
from organism.errors import ConfigInvalid
from tests.config.place import Place, takes_all

MINIMAL = "organism: {name: hello}\n"


def test_what_is_left_out_has_the_defaults_of_the_table(place: Place) -> None:
    place.yaml(MINIMAL)
    loaded = place.load()
    assert asdict(loaded.limits) == {
        "max_concurrent_handlers": 256,
        "max_concurrent_per_agent": None,
        "max_blocking_threads": 20,
        "max_queue_per_agent": 10000,
        "max_open_per_thread": 10000,
        "max_depth": 50,
        "max_steps_per_handling": 10000,
        "max_payload_bytes": 262144,
        "handler_timeout_s": 30,
        "ask_timeout_s": 30,
        "approval_expires_s": 86400,
        "max_tokens_per_thread": 100000,
        "pause_after_failures": 0,
    }
    assert asdict(loaded.retry) == {"attempts": 3, "base_delay_s": 0.2, "max_delay_s": 10}
    assert (loaded.embeddings, loaded.fx, loaded.listeners, loaded.prompts) == ({}, {}, (), {})
    assert loaded.tools == Tools()


def test_each_limit_can_be_given(place: Place) -> None:
    given_limits = {key: index + 100 for index, key in enumerate(asdict(place.load().limits))}
    lines = "".join(f"  {key}: {value}\n" for key, value in given_limits.items())
    place.yaml(f"{MINIMAL}retry: {{attempts: 9, base_delay_s: 1, max_delay_s: 1.5}}\nlimits:\n{lines}")
    loaded = place.load()
    assert asdict(loaded.limits) == given_limits
    assert asdict(loaded.retry) == {"attempts": 9, "base_delay_s": 1, "max_delay_s": 1.5}


def test_raw_sections_are_given_as_they_stand(place: Place) -> None:
    place.yaml(
        MINIMAL
        + """
embeddings:
  nomic: {provider: openai, model: nomic, base_url: "http://y", api_key_env: KEY, dim: 768, batch: 16, default: true}
fx: {eur_per_usd: 0.92}
"""
    )
    loaded = place.load()
    assert loaded.embeddings["nomic"]["dim"] == 768
    assert loaded.fx == {"eur_per_usd": 0.92}


@pytest.mark.parametrize(
    ("text", "place_of_fault", "message"),
    [
        ("[]", "1", "expected a mapping, came a list"),
        ("listeners: []", "1:organism", "`organism` is missing"),
        ("organism: hello", "1:organism", 'expected a mapping, came "hello" (text)'),
        ("organism:", "1:organism", "expected a mapping, came nothing"),
        ("organism: {}", "1:organism.name", "`name` is missing"),
        ("organism: {name: no}\nlisteners:", "2:listeners", "expected a list, came nothing"),
        ("organism: {name: true}", "1:organism.name", "expected text, came true (a boolean); put it in quotes"),
        ('organism: {name: "a\\nb"}', "1:organism.name", 'expected one line of text; came "a\\nb" (text)'),
        ("organism: {name: x, imports: handlers}", "1:organism.imports", 'expected a list, came "handlers" (text)'),
        ("organism: {name: x, imports: [a, b.]}", "1:organism.imports[1]", "expected the name of a module"),
        ("organism: {name: x, imports: [os.path]}", "1:organism.imports[0]", "`os.path` is a module of Python itself"),
        ("limit: {}", "2:limit", "unknown key `limit`; did you mean `limits`?"),
        (
            "zebra: {}",
            "2:zebra",
            "unknown key `zebra`; known here: embeddings, fx, limits, listeners, models, organism",
        ),
        ("limits: 3", "2:limits", "expected a mapping, came 3 (a number)"),
        ("limits:\n  max_depht: 3", "3:limits.max_depht", "unknown key `max_depht`; did you mean `max_depth`?"),
        ("limits: {max_depth: 0}", "2:limits.max_depth", "expected at least 1, came 0 (a number)"),
        ("limits: {max_depth: 5.5}", "2:limits.max_depth", "expected a whole number, came 5.5 (a number)"),
        ("limits: {max_depth: true}", "2:limits.max_depth", "expected a whole number, came true (a boolean)"),
        ("limits: {max_depth: '5'}", "2:limits.max_depth", 'expected a whole number, came "5" (text)'),
        ("limits: {max_payload_bytes: 99999999}", "2:limits.max_payload_bytes", "expected at most 16777216, came"),
        ("limits: {handler_timeout_s: 0}", "2:limits.handler_timeout_s", "expected more than 0, came 0 (a number)"),
        ("limits: {ask_timeout_s: 30s}", "2:limits.ask_timeout_s", 'expected a number, came "30s" (text)'),
        ("limits: {approval_expires_s: -1}", "2:limits.approval_expires_s", "expected more than 0"),
        ("limits: {pause_after_failures: -1}", "2:limits.pause_after_failures", "expected at least 0, came -1"),
        ("retry: {attempts: 0}", "2:retry.attempts", "expected at least 1, came 0"),
        ("retry: {base_delay_s: -0.1}", "2:retry.base_delay_s", "expected at least 0, came -0.1"),
        ("retry: {base_delay_s: 11}", "2:retry.max_delay_s", "expected at least base_delay_s (11), came 10"),
        ("models: []", "2:models", "expected a mapping, came a list"),
        ("models: {a: offline}", "2:models.a", 'expected a mapping, came "offline" (text)'),
        ("embeddings: {a: {provider: builtin, dim: -1}}", "2:embeddings.a.dim", "expected at least 1, came -1"),
        ("embeddings: {a: {provider: builtin, dims: 1}}", "2:embeddings.a.dims", "unknown key `dims`; did you mean"),
        (
            "embeddings: {a: {provider: openai, model: m, dim: 8, base_url: 'https://[x'}}",
            "2:embeddings.a.base_url",
            "expected an address such as https://models.example/v1",
        ),
        ("embeddings: {a: {provider: openai, model: m}}", "2:embeddings.a.dim", "`dim` is missing"),
        ("embeddings: {a: {provider: builtin, dim: 7}}", "2:embeddings.a.dim", "the built-in model gives 512 numbers"),
        (
            "embeddings: {a: {provider: builtin, default: true}, b: {provider: builtin, default: true}}",
            "2:embeddings.b.default",
            "another one is the default already",
        ),
        ("tools: {http_fetch: []}", "2:tools.http_fetch", "expected a mapping, came a list"),
        ("fx: {eur_per_usd: much}", "2:fx.eur_per_usd", 'expected a number, came "much" (text)'),
        ("listeners: {greeter: {}}", "2:listeners", "expected a list, came a mapping"),
        ("listeners: [greeter]", "2:listeners[0]", 'expected a mapping, came "greeter" (text)'),
    ],
)
def test_each_wrong_section_is_refused_with_line_and_key(
    place: Place, text: str, place_of_fault: str, message: str
) -> None:
    is_whole = text.startswith(("organism", "[", "listeners: []"))
    ((where, what),) = place.faults(text if is_whole else MINIMAL + text).items()
    assert where == place_of_fault
    assert what.startswith(message)


def test_all_faults_of_a_file_are_reported_at_once_in_the_order_of_their_lines(place: Place) -> None:
    faults = place.faults("""\
organism: {name: hello, imports: [handlers]}
limits: {max_depth: 0, depth: 3}
retry: {attempts: many}
models: {a: {}}
listeners:
  - name: console
    description: " "
    payload_class: handlers.hello.Nothing
    handler: handlers.nowhere.greet
    peers: [nobody, 3]
    timeout_s: -1
  - name: greeter
    handler: handlers.hello.slow
    unknown: 1
    description: Greets
    payload_class: handlers.hello.Greeting
""")
    assert list(faults) == [
        "2:limits.max_depth",
        "2:limits.depth",
        "3:retry.attempts",
        "4:models.a.provider",
        "6:listeners[0].name",
        "7:listeners[0].description",
        "8:listeners[0].payload_class",
        "9:listeners[0].handler",
        "10:listeners[0].peers[1]",
        "10:listeners[0].peers[0]",
        "11:listeners[0].timeout_s",
        "13:listeners[1].handler",
        "14:listeners[1].unknown",
    ]


def test_the_refusal_carries_the_code_and_counts_its_faults(place: Place) -> None:
    place.yaml("organism: {}\nlimit: 1")
    with pytest.raises(ConfigInvalid, match=r"organism.yaml is not valid: 2 faults") as refused:
        place.load()
    assert refused.value.code == "config_invalid"
    assert refused.value.param == "organism.yaml:1:organism.name"


def test_a_missing_file_is_a_fault_with_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        load(tmp_path / "absent.yaml", check_payload=takes_all)
    (fault,) = refused.value.details
    assert fault.pointer == "absent.yaml:1"
    assert fault.message == "the file cannot be read: No such file or directory; `organism init DIR` writes a first one"


def test_a_file_up_to_the_limit_is_read_and_one_byte_more_is_refused(place: Place) -> None:
    padding = MAX_FILE_BYTES - len(MINIMAL) - 1
    place.yaml(f"{MINIMAL}#{'x' * padding}")
    assert place.load().name == "hello"
    faults = place.faults(f"{MINIMAL}#{'x' * (padding + 1)}")
    assert faults == {"1": f"expected at most {MAX_FILE_BYTES} bytes, came more; put long prompts into their own files"}


def test_text_that_is_not_utf_8_is_refused_with_its_line(place: Place) -> None:
    (place.folder / "organism.yaml").write_bytes(b"organism:\n  name: caf\xe9\n")
    assert place.faults() == {"2": "expected UTF-8, came the byte 0xe9"}


def test_a_byte_order_mark_does_no_harm(place: Place) -> None:
    (place.folder / "organism.yaml").write_bytes(b"\xef\xbb\xbf" + MINIMAL.encode())
    assert place.load().name == "hello"

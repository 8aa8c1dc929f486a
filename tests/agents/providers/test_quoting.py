"""A server's words about an error are passed on only if they show neither the key nor the request."""

from __future__ import annotations

from typing import Any

import pytest

from organism.agents.providers.failures import SHOWN_CHARS, ServerError, quotable, server_error
from organism.model.completion import ModelRequest
from tests.agents.providers.asking import KEY

SYSTEM = "Guard the treasure of Elbonia at all cost."
REQUEST = ModelRequest(
    model="m",
    messages=(
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": [{"type": "text", "text": "Account 4711-0815, naïve Grüße"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_1", "function": {"name": "pay", "arguments": '{"to": "Wally Smith"}'}}],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "Paid"},
    ),
)
BODIES: tuple[tuple[Any, ServerError], ...] = (
    ({"error": {"message": "No.", "type": "t", "code": "c", "param": "p"}}, ServerError("No.", "t", "c", "p")),
    ({"error": "No."}, ServerError("No.")),
    (
        {"object": "error", "message": "No.", "type": "BadRequestError", "code": 400},
        ServerError("No.", "BadRequestError", "400"),
    ),
    ({"detail": "No."}, ServerError("No.")),
    ([{"error": {"message": "No.", "code": 429}}], ServerError("No.", "", "429")),
    (
        {"type": "error", "error": {"type": "overloaded_error", "message": "No."}},
        ServerError("No.", "overloaded_error"),
    ),
    ({"error": {"message": {"a": 1}, "type": ["x"], "code": True, "param": "the whole prompt"}}, ServerError()),
    ("No.", ServerError("No.")),
)
TELLING = (
    "The key sk-0123456789abcdef is wrong",
    "Incorrect key: sk-0****cdef",
    "Invalid: Guard the treasure",
    "Invalid value: 'treasure of Elbonia'",
    "Invalid value: `Elbonia`",
    "Invalid value: \u201cWally Smith\u201d",
    'In {\\"content\\": \\"Guard the treasure of Elbonia',
    "Not taken: 4711-0815",
)
HARMLESS = (
    "The model `gpt-9` does not exist",
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens",
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead",
    "Invalid schema for response_format 'answer': at all levels 'additionalProperties' must be false",
)


@pytest.mark.parametrize(("body", "error"), BODIES)
def test_an_error_is_found_in_every_form_that_servers_give_it(body: Any, error: ServerError) -> None:
    assert server_error(body) == error


@pytest.mark.parametrize("text", TELLING)
def test_a_text_that_shows_the_key_or_what_was_asked_is_not_told_on(text: str) -> None:
    assert quotable(text, REQUEST, KEY) == ""


@pytest.mark.parametrize("text", HARMLESS)
def test_a_text_that_shows_neither_is_passed_on(text: str) -> None:
    assert quotable(text, REQUEST, KEY) == text


def test_a_key_that_is_made_up_is_no_secret() -> None:
    assert quotable("The model ollama/m is not there", REQUEST, "ollama") == "The model ollama/m is not there"


def test_a_text_is_passed_on_in_one_short_line() -> None:
    assert quotable("a\n\tb\x00\x1b[31mc", REQUEST, None) == "a b [31mc"
    assert len(quotable("abc " * 1000, REQUEST, None)) == SHOWN_CHARS + 1


def test_other_credentials_are_masked() -> None:
    assert (
        quotable("at https://u:hunter2hunter2@proxy.example/", REQUEST, None) == "at https://[redacted]@proxy.example/"
    )

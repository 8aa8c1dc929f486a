"""Which fault a status is, how long it asks to wait, and what the error says."""

from __future__ import annotations

import json
import ssl
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from organism.agents.provider import Fault, ProviderError
from organism.agents.providers.wire.access import Access
from organism.agents.providers.wire.faults import Faults, Refused, retry_after_s
from tests.agents.providers.wire.reading import FAULTS, KEY, NOW, PROMPT, REQUEST

STATUSES: tuple[tuple[int, Fault], ...] = (
    (301, "rejected"),
    (307, "rejected"),
    (400, "rejected"),
    (401, "unauthorized"),
    (402, "rejected"),
    (403, "unauthorized"),
    (404, "rejected"),
    (405, "rejected"),
    (408, "timeout"),
    (409, "unavailable"),
    (413, "rejected"),
    (418, "rejected"),
    (422, "rejected"),
    (425, "unavailable"),
    (429, "rate_limited"),
    (451, "rejected"),
    (500, "unavailable"),
    (501, "unavailable"),
    (502, "unavailable"),
    (503, "unavailable"),
    (504, "timeout"),
    (524, "timeout"),
    (529, "unavailable"),
    (599, "unavailable"),
)
SPRING = datetime.fromtimestamp(NOW, UTC)
WAITS: tuple[tuple[dict[str, str], float | None], ...] = (
    ({"retry-after": "3"}, 3.0),
    ({"retry-after": "0.5"}, 0.5),
    ({"retry-after": " 3 "}, 3.0),
    ({"retry-after": "0"}, 0.0),
    ({"retry-after": "-3"}, 0.0),
    ({"retry-after": format_datetime(SPRING + timedelta(seconds=90), usegmt=True)}, 90.0),
    ({"retry-after": format_datetime(SPRING - timedelta(seconds=90), usegmt=True)}, 0.0),
    ({"retry-after": "Friday, 15-Jan-27 08:01:30 GMT"}, 90.0),
    ({"retry-after-ms": "250"}, 0.25),
    ({"retry-after-ms": "250", "retry-after": "3"}, 0.25),
    ({"retry-after-ms": "soon", "retry-after": "3"}, 3.0),
    ({}, None),
    ({"retry-after": ""}, None),
    ({"retry-after": "soon"}, None),
    ({"retry-after": "inf"}, None),
    ({"retry-after": "nan"}, None),
    ({"retry-after": "Fri, 99 Jan 2027 08:00:00 GMT"}, None),
)


def refused(status: int, error: Any = None, **headers: str) -> ProviderError:
    body = json.dumps({"error": error}).encode()
    return FAULTS.refused(Refused(status, {k.replace("_", "-"): v for k, v in headers.items()}, body))


@pytest.mark.parametrize(("status", "fault"), STATUSES)
def test_each_status_is_a_fault(status: int, fault: Fault) -> None:
    assert refused(status).fault == fault


@pytest.mark.parametrize(("headers", "seconds"), WAITS)
def test_the_time_to_wait_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers, NOW) == seconds


def test_an_account_without_credit_is_not_asked_again() -> None:
    error = refused(429, {"code": "insufficient_quota", "message": "You exceeded your quota."}, retry_after="3")
    assert (error.fault, error.retry_after_s) == ("rejected", None)
    assert str(error) == (
        "models.example refused the request (429, insufficient_quota): You exceeded your quota."
        " The account has no credit left."
    )


def test_a_wait_is_told_with_what_may_be_tried_again_alone() -> None:
    assert refused(503, retry_after="3").retry_after_s == 3
    assert refused(429, retry_after="3").retry_after_s == 3
    assert refused(400, retry_after="3").retry_after_s is None
    assert refused(401, retry_after="3").retry_after_s is None


def test_a_key_that_is_not_taken_is_told_with_its_variable_and_nothing_of_the_servers_words() -> None:
    error = refused(401, {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"})
    assert str(error) == (
        "models.example does not take the key (401): set the variable MODELS_KEY to a valid one and start again."
    )


def test_a_server_that_wants_a_key_where_there_is_none_says_how_to_give_one() -> None:
    faults = Faults(Access("http://127.0.0.1:11434/v1"), REQUEST, lambda: NOW)
    assert str(faults.refused(Refused(401, {}, b""))) == (
        "127.0.0.1:11434 wants a key (401): put it into a variable and name that by `api_key_env`."
    )


def test_a_model_that_is_not_there_is_named_with_what_else_may_be_wrong() -> None:
    assert str(refused(404)) == (
        "models.example refused the request (404). Is there a model `m`, and does `base_url` lead to the API"
        " (as …/v1 does)?"
    )


def test_a_redirect_is_told_with_what_to_do() -> None:
    assert str(refused(307)).endswith("Set `base_url` to the address that it leads to.")


def test_no_error_holds_the_prompt_the_key_or_a_credential_of_the_address() -> None:
    access = Access(f"https://user:{KEY}@models.example/v1?key={KEY}", KEY, "MODELS_KEY")
    faults = Faults(access, REQUEST, lambda: NOW)
    body = json.dumps({"error": {"message": f"Bad: {PROMPT} {KEY}", "type": KEY, "code": PROMPT}}).encode()
    errors = [faults.refused(Refused(status, {}, body)) for status, _ in STATUSES]
    errors += [faults.unreachable(OSError(KEY)), faults.late("did not go on", 1), faults.cut(), faults.hung_up()]
    errors += [faults.malformed("what is no JSON"), faults.unsendable()]
    told = "\n".join(f"{error!r} {error}" for error in errors)
    assert KEY not in told
    assert PROMPT not in told


def test_a_certificate_that_is_not_trusted_is_called_that() -> None:
    error = ConnectionError()
    error.__cause__ = ssl.SSLCertVerificationError()
    assert "certificate" in str(FAULTS.unreachable(error))

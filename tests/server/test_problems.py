"""The one shape of errors, and their table."""

from __future__ import annotations

import orjson

from organism.errors import Fault, InvalidField, MethodNotAllowed, MissingAuthorization, Stopping
from organism.server import problems


def test_a_problem_names_every_fault_and_the_request() -> None:
    error = InvalidField("Two.", details=(Fault("/a", "is bad"), Fault("/b", "too")))
    assert orjson.loads(problems.body(error, "req-1")) == {
        "error": {
            "type": "invalid_request_error",
            "code": "invalid_field",
            "message": "Two.",
            "param": "/a",
            "details": [{"param": "/a", "message": "is bad"}, {"param": "/b", "message": "too"}],
            "request_id": "req-1",
        }
    }


def test_statuses_bring_the_headers_that_they_ask_for() -> None:
    assert problems.headers(MissingAuthorization()) == [(b"www-authenticate", b"Bearer")]
    assert problems.headers(Stopping()) == [(b"retry-after", b"1")]
    assert problems.headers(MethodNotAllowed(details=(Fault("method", "GET, POST"),))) == [(b"allow", b"GET, POST")]


def test_the_table_has_each_code_once_with_what_to_do() -> None:
    table = problems.table()
    codes = [entry["code"] for entry in table["entries"]]
    assert codes == sorted(set(codes))
    assert table["count"] == len(codes)
    assert {"invalid_json", "thread_killed", "log_unavailable", "not_found", "config_invalid"} <= set(codes)
    assert all(entry["description"] and entry["remediation"] and entry["title"] for entry in table["entries"])


def test_an_entry_is_complete() -> None:
    (entry,) = [entry for entry in problems.table()["entries"] if entry["code"] == "thread_killed"]
    assert entry == {
        "code": "thread_killed",
        "type": "conflict",
        "http_status": 409,
        "title": "Thread killed",
        "description": "The thread was killed; nothing can be sent into it.",
        "remediation": "Inject without `thread_id` to begin a new thread.",
        "typical_param": "/thread_id",
    }

"""The one shape of errors, and their table."""

from __future__ import annotations

import orjson

from organism.errors import Fault, InvalidField, MethodNotAllowed, MissingAuthorization, Stopping
from organism.server.http import problems


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
    assert problems.headers(MissingAuthorization()) == {"www-authenticate": "Bearer"}
    assert problems.headers(Stopping()) == {"retry-after": "1"}
    assert problems.headers(MethodNotAllowed(details=(Fault("method", "GET, POST"),))) == {"allow": "GET, POST"}


CODES = {
    400: """invalid_json invalid_payload missing_field invalid_field unknown_field bad_position credential_in_url
            model_not_in_allowlist recursion_depth_exceeded session_agent_mismatch tenant_config_key_readonly""",
    401: "missing_authorization invalid_authorization",
    403: "forbidden",
    404: "not_found",
    406: "not_acceptable force_not_supported",
    409: """thread_killed stale_position request_in_progress already_resolved session_busy session_compact_conflict
            preview_stale confirm_mismatch confirm_expired confirm_used""",
    413: "body_too_large payload_too_large message_too_large",
    415: "unsupported_media_type",
    422: "idempotency_key_reused config_invalid",
    429: "rate_limit_exceeded too_many_failures budget_exhausted",
    502: "upstream_error",
    504: "upstream_timeout",
    503: "mailbox_full log_unavailable commit_unknown stopping",
}


def test_the_table_has_each_code_once_with_its_status_and_what_to_do() -> None:
    table = problems.table()
    listed = {entry["code"]: entry["http_status"] for entry in table["entries"]}
    promised = {code: status for status, codes in CODES.items() for code in codes.split()}
    assert promised.items() <= listed.items()
    assert [entry["code"] for entry in table["entries"]] == sorted(listed)
    assert table["count"] == len(listed)
    assert all(entry["description"] and entry["remediation"] and entry["title"] for entry in table["entries"])


def test_a_clients_own_names_are_cut_and_what_is_said_of_them_stays() -> None:
    name = "n" * 100_000
    details = tuple(Fault(f"/{name}", f"{name} is not known here; known is a") for _ in range(1000))
    error = orjson.loads(problems.body(InvalidField(f"The field {name!r} is not known here.", details=details), "r"))[
        "error"
    ]
    assert error["message"].startswith("The field 'nnn")
    assert error["message"].endswith("n… is not known here.")
    assert error["param"] == f"/{'n' * 198}…"
    assert len(error["details"]) == 20
    assert {len(fault["param"]) for fault in error["details"]} == {200}
    assert error["details"][0]["message"].endswith("… is not known here; known is a")

"""Every error that Organism shows to a person or a program, as one tree.

    OrganismError
    ├── InvalidRequest          400
    │   ├── InvalidJson, InvalidPayload, MissingField, InvalidField, UnknownField, BadPosition, CredentialInUrl
    │   └── ModelNotInAllowlist, RecursionDepthExceeded, SessionAgentMismatch, TenantConfigKeyReadonly
    ├── NotAuthenticated        401  (MissingAuthorization, InvalidAuthorization)
    ├── Forbidden               403
    ├── NotFound                404
    ├── NotAcceptable           406  (ForceNotSupported)
    ├── Conflict                409
    │   ├── ThreadKilled, StalePosition, RequestInProgress, AlreadyResolved
    │   └── SessionBusy, SessionCompactConflict, PreviewStale, ConfirmMismatch, ConfirmExpired, ConfirmUsed
    ├── TooLarge                413  (BodyTooLarge, PayloadTooLarge)
    ├── UnsupportedMediaType    415
    ├── Unprocessable           422  (IdempotencyKeyReused, ConfigInvalid)
    ├── RateLimitExceeded       429  (TooManyFailures, BudgetExhausted)
    ├── Upstream                502  (UpstreamTimeout 504)
    ├── Unavailable             503  (MailboxFull, LogUnavailable, CommitUnknown, Stopping)
    └── Internal                500  (HandlingFailed, LogDamaged, ContentDamaged, LogHeld, Fenced)

The class carries the stable ``code``, the HTTP ``status`` and the wire ``type``; its docstring is the default
message. What belongs to one occurrence (which field, which position) comes with the instance: ``param`` is a JSON
pointer or a header name, ``details`` lists every fault when there are several.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong.

    Where (a JSON pointer, ``headers.x`` or ``file:line:key``) and what was expected and came.
    """

    pointer: str
    message: str


class OrganismError(Exception):
    """Something went wrong."""

    code: ClassVar[str] = "internal_error"
    status: ClassVar[int] = 500
    type: ClassVar[str] = "internal_error"
    remediation: ClassVar[str] = "Try again; if it happens again, look for the request id in the server's log."

    def __init__(self, message: str = "", *, param: str | None = None, details: tuple[Fault, ...] = ()) -> None:
        self.message = message or (type(self).__doc__ or "").strip().split("\n")[0]
        self.param = param if param is not None or not details else details[0].pointer
        self.details = details
        super().__init__(self.message)


class InvalidRequest(OrganismError):
    """The request is not valid."""

    code, status, type = "invalid_field", 400, "invalid_request_error"
    remediation = "Correct what `param` and `details` name, then send it again."


class InvalidJson(InvalidRequest):
    """The body is not valid JSON."""

    code = "invalid_json"


class InvalidPayload(InvalidRequest):
    """The payload does not fit the receiver's schema."""

    code = "invalid_payload"
    remediation = "GET /api/v1/agents/{name}/schema shows what the receiver takes."


class MissingField(InvalidRequest):
    """A field that must be there is missing."""

    code = "missing_field"


class InvalidField(InvalidRequest):
    """A field has a value that is not allowed."""

    code = "invalid_field"


class UnknownField(InvalidRequest):
    """A field is not known here."""

    code = "unknown_field"


class BadPosition(InvalidRequest):
    """The position is not one of this log."""

    code = "bad_position"
    remediation = "Read the head from GET /api/v1/organism, or connect without `since` for a fresh snapshot."


class CredentialInUrl(InvalidRequest):
    """A credential must not stand in a URL."""

    code = "credential_in_url"
    remediation = "Send it in the Authorization header; it may be in logs now, so make a new one."


class ModelNotInAllowlist(InvalidRequest):
    """The token may not use this model."""

    code = "model_not_in_allowlist"
    remediation = "Name one of the models that the token allows."


class RecursionDepthExceeded(InvalidRequest):
    """The call comes from too deep in a chain of calls."""

    code = "recursion_depth_exceeded"
    remediation = "Look for agents that call each other without an end; `limits.max_depth` is the bound."


class SessionAgentMismatch(InvalidRequest):
    """The session belongs to another agent."""

    code = "session_agent_mismatch"
    remediation = "Begin a session of its own with this agent."


class TenantConfigKeyReadonly(InvalidRequest):
    """This key of the tenant's configuration cannot be changed here."""

    code = "tenant_config_key_readonly"
    remediation = "The operator changes it in the server's files."


class NotAuthenticated(OrganismError):
    """The token is missing or not valid."""

    code, status, type = "invalid_authorization", 401, "authentication_error"
    remediation = "Send `Authorization: Bearer TOKEN`; the local server keeps its token in DATA/token."


class MissingAuthorization(NotAuthenticated):
    """No token was sent."""

    code = "missing_authorization"


class InvalidAuthorization(NotAuthenticated):
    """The token is not valid."""


class Forbidden(OrganismError):
    """The token does not allow this."""

    code, status, type = "forbidden", 403, "permission_denied"
    remediation = "Use a token with the scope that is named."


class NotFound(OrganismError):
    """There is nothing here by that name."""

    code, status, type = "not_found", 404, "not_found"
    remediation = "Check the id or name; lists show what there is."


class MethodNotAllowed(OrganismError):
    """This route does not take that method."""

    code, status, type = "method_not_allowed", 405, "invalid_request_error"
    remediation = "The Allow header names the methods it takes."


class NotAcceptable(OrganismError):
    """The answer does not come in the form that was asked for, ``requested``; ``supported`` are what there is."""

    code, status, type = "not_acceptable", 406, "invalid_request_error"
    remediation = "Accept one of the forms that the message names, or ask for none."

    def __init__(self, message: str = "", *, param: str | None = None, **forms: Any) -> None:
        super().__init__(message, param=param)
        self.requested: str = forms.get("requested", "")
        self.supported: tuple[str, ...] = forms.get("supported", ())


class ForceNotSupported(NotAcceptable):
    """This cannot be forced: it does not take over a turn that runs."""

    code = "force_not_supported"
    remediation = "Send it without `force`."


class Conflict(OrganismError):
    """What was asked does not fit the present state."""

    code, status, type = "conflict", 409, "conflict"
    remediation = "Look at the object as it is now, then decide again."


class ThreadKilled(Conflict):
    """The thread was killed; nothing can be sent into it."""

    code = "thread_killed"
    remediation = "Inject without `thread_id` to begin a new thread."


class StalePosition(Conflict):
    """The decision rests on a state that has changed since."""

    code = "stale_position"


class RequestInProgress(Conflict):
    """The first request with this idempotency key is still running."""

    code = "request_in_progress"
    remediation = "Wait a moment and send the same request again."


class AlreadyResolved(Conflict):
    """It has been resolved already."""

    code = "already_resolved"


class SessionBusy(Conflict):
    """The session is in the middle of a turn."""

    code = "session_busy"
    remediation = "Wait for the turn's end, then send it again."


class SessionCompactConflict(Conflict):
    """The session changed while it was compacted."""

    code = "session_compact_conflict"


class PreviewStale(Conflict):
    """What was previewed has changed since."""

    code = "preview_stale"
    remediation = "Preview it anew and confirm what it shows now."


class ConfirmMismatch(Conflict):
    """The confirmation was given for another act."""

    code = "confirm_mismatch"
    remediation = "Preview this very act and confirm with the token of that preview."


class ConfirmExpired(Conflict):
    """The confirmation has expired."""

    code = "confirm_expired"
    remediation = "Preview it anew and confirm within the time that it names."


class ConfirmUsed(Conflict):
    """The confirmation was used already."""

    code = "confirm_used"
    remediation = "What it confirmed was done; preview it anew to do it once more."


class BodyTooLarge(OrganismError):
    """The body is larger than this route takes."""

    code, status, type = "body_too_large", 413, "invalid_request_error"
    remediation = "Send less at a time."


class PayloadTooLarge(BodyTooLarge):
    """The payload is larger than the receiver takes."""

    code = "payload_too_large"


class UnsupportedMediaType(OrganismError):
    """The Content-Type is not one that this route takes."""

    code, status, type = "unsupported_media_type", 415, "invalid_request_error"
    remediation = "Send `Content-Type: application/json`."


class IdempotencyKeyReused(OrganismError):
    """The idempotency key was used with another body."""

    code, status, type = "idempotency_key_reused", 422, "invalid_request_error"
    remediation = "Use a new key for a new request."


class ConfigInvalid(OrganismError):
    """The configuration is not valid."""

    code, status, type = "config_invalid", 422, "invalid_request_error"
    remediation = "Correct each fault in `details`; what was running goes on as it was."


class RateLimitExceeded(OrganismError):
    """Too many requests."""

    code, status, type = "rate_limit_exceeded", 429, "rate_limit_exceeded"
    remediation = "Wait as long as Retry-After says."

    def __init__(self, message: str = "", *, param: str | None = None, retry_after_s: int = 1) -> None:
        super().__init__(message, param=param)
        self.retry_after_s = retry_after_s


class TooManyFailures(RateLimitExceeded):
    """Too many failed attempts to authenticate."""

    code = "too_many_failures"


class BudgetExhausted(RateLimitExceeded):
    """The budget is used up."""

    code = "budget_exhausted"
    remediation = "Wait for the budget's next period, or raise it."


class Upstream(OrganismError):
    """A service that this one asks answered with an error."""

    code, status, type = "upstream_error", 502, "upstream_error"
    remediation = "Try again later; the server's log names the service."


class UpstreamTimeout(Upstream):
    """A service that this one asks did not answer in time."""

    code, status = "upstream_timeout", 504


class HandlingFailed(OrganismError):
    """The handling of the message failed for good."""

    code = "handling_failed"
    remediation = "Look at the thread's dead letter for the reason; mend it, then replay it."


class Unavailable(OrganismError):
    """The organism cannot do this now."""

    code, status, type = "log_unavailable", 503, "internal_error"
    remediation = "Try again shortly, with the same idempotency key."


class MailboxFull(Unavailable):
    """The receiver's mailbox is full."""

    code = "mailbox_full"


class LogUnavailable(Unavailable):
    """The log takes no writes now; reads go on."""

    code = "log_unavailable"
    remediation = "Free disk space or mend the disk; the server recovers by itself. Then try again with the same key."


class CommitUnknown(Unavailable):
    """It is not known whether this was written."""

    code = "commit_unknown"
    remediation = "Send the same request with the same Idempotency-Key: it is done at most once."


class Stopping(Unavailable):
    """The organism is stopping."""

    code = "stopping"


class LogDamaged(OrganismError):
    """The log is damaged."""

    code = "log_damaged"
    remediation = "Run `organism log verify`, then restore a backup; nothing was overwritten."


class ContentDamaged(LogDamaged):
    """The content of an event is not there as it was written, and was not erased."""

    code = "content_damaged"
    remediation = "Run `organism log verify` to see all that is damaged, then restore a backup; the rest can be read."


class LogHeld(OrganismError):
    """Another process holds this data directory."""

    code = "log_held"
    remediation = "Stop the other process, or serve another --data directory."


class Fenced(OrganismError):
    """A newer process has taken over this log."""

    code = "fenced"
    remediation = "This process must stop; the newer one goes on."

"""Every error that Organism shows to a person or a program, as one tree.

The class carries the stable ``code``, the HTTP ``status`` and the wire ``type``, which it inherits or names; its
docstring is the default message. What belongs to one occurrence (which field, which position) comes with the instance:
``param`` is a JSON pointer or a header name, ``details`` lists every fault when there are several.
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


MAX_POINTER_CHARS = 500


def pointer(place: str, step: str | int) -> str:
    """The JSON pointer (RFC 6901) of what stands at ``step``, a key or an index, in what stands at ``place``.

    It grows to a length: keys are a client's, and a long one would be copied for each value below it.
    """
    if len(place) > MAX_POINTER_CHARS:
        return place
    return f"{place}/{str(step)[:MAX_POINTER_CHARS].replace('~', '~0').replace('/', '~1')}"


class OrganismError(Exception):
    """Something went wrong."""

    code: ClassVar[str] = "internal_error"
    status: ClassVar[int] = 500
    type: ClassVar[str] = "internal_error"
    remediation: ClassVar[str] = "Try again; if it happens again, look for the request id in the server's log."
    is_final: bool = False
    """The same request would fail again, however long one waits."""

    def __init_subclass__(
        cls,
        *,
        code: str = "",
        status: int = 0,
        type: str = "",  # noqa: A002 - as on the wire
        is_final: bool | None = None,
    ) -> None:
        cls.code, cls.status, cls.type = code or cls.code, status or cls.status, type or cls.type
        cls.is_final = cls.is_final if is_final is None else is_final

    def __init__(self, message: str = "", *, param: str | None = None, details: tuple[Fault, ...] = ()) -> None:
        self.message = message or (type(self).__doc__ or "").strip().split("\n")[0]
        self.param = param if param is not None or not details else details[0].pointer
        self.details = details
        super().__init__(self.message)


class InvalidRequest(OrganismError, code="invalid_field", status=400, type="invalid_request_error", is_final=True):
    """The request is not valid."""

    remediation = "Correct what is named, then send it again."


class InvalidJson(InvalidRequest, code="invalid_json"):
    """The body is not valid JSON."""


class InvalidPayload(InvalidRequest, code="invalid_payload"):
    """The payload does not fit the receiver's schema."""

    remediation = "GET /api/v1/agents/{name}/schema, or `organism agents NAME --schema`, shows what the receiver takes."


class MissingField(InvalidRequest, code="missing_field"):
    """A field that must be there is missing."""


class InvalidField(InvalidRequest, code="invalid_field"):
    """A field has a value that is not allowed."""


class UnknownField(InvalidRequest, code="unknown_field"):
    """A field is not known here."""


class BadPosition(InvalidRequest, code="bad_position"):
    """The position is not one of this log."""

    remediation = "Read the head from GET /api/v1/organism or `organism status`, or connect without `since`."


class CredentialInUrl(InvalidRequest, code="credential_in_url"):
    """A credential must not stand in a URL."""

    remediation = "Send it in the Authorization header; it may be in logs now, so make a new one."


class ModelNotInAllowlist(InvalidRequest, code="model_not_in_allowlist"):
    """The token may not use this model."""

    remediation = "Name one of the models that the token allows."


class ContextLengthExceeded(InvalidRequest, code="context_length_exceeded"):
    """The conversation is longer than the model takes."""

    remediation = "Send less of it, or ask a model with a larger window."


class UpstreamRefused(InvalidRequest, code="upstream_refused"):
    """The model's provider refused the request."""

    remediation = "Correct what the provider names, or ask another model."


class LeakRefused(InvalidRequest, code="leak_refused"):
    """The request holds a live secret of this installation."""

    remediation = "Take it out of the functions, or of the answer's schema."


class RecursionDepthExceeded(InvalidRequest, code="recursion_depth_exceeded"):
    """The call comes from too deep in a chain of calls."""

    remediation = "Look for agents that call each other without an end; `limits.max_depth` is the bound."


class SessionAgentMismatch(InvalidRequest, code="session_agent_mismatch"):
    """The session belongs to another agent."""

    remediation = "Begin a session of its own with this agent."


class TenantConfigKeyReadonly(InvalidRequest, code="tenant_config_key_readonly"):
    """This key of the tenant's configuration cannot be changed here."""

    remediation = "The operator changes it in the server's files."


class NotAuthenticated(
    OrganismError, code="invalid_authorization", status=401, type="authentication_error", is_final=True
):
    """The token is missing or not valid."""

    remediation = "Send `Authorization: Bearer TOKEN`; the local server keeps its token in DATA/token."


class MissingAuthorization(NotAuthenticated, code="missing_authorization"):
    """No token was sent."""


class InvalidAuthorization(NotAuthenticated):
    """The token is not valid."""


class Forbidden(OrganismError, code="forbidden", status=403, type="permission_denied", is_final=True):
    """The token does not allow this."""

    remediation = "Use a token with the scope that is named."


class NotFound(OrganismError, code="not_found", status=404, type="not_found", is_final=True):
    """There is nothing here by that name."""

    remediation = "Check the id or name; lists, such as `organism agents`, show what there is."


class ModelNotFound(NotFound, code="model_not_found"):
    """There is no such model for this token."""

    remediation = "GET /v1/models lists the models that the token may use."


class MethodNotAllowed(
    OrganismError, code="method_not_allowed", status=405, type="invalid_request_error", is_final=True
):
    """This route does not take that method."""

    remediation = "The Allow header names the methods it takes."


class NotAcceptable(OrganismError, code="not_acceptable", status=406, type="invalid_request_error", is_final=True):
    """The answer does not come in the form that was asked for, ``requested``; ``supported`` are what there is."""

    remediation = "Accept one of the forms that the message names, or ask for none."

    def __init__(self, message: str = "", *, param: str | None = None, **forms: Any) -> None:
        super().__init__(message, param=param)
        self.requested: str = forms.get("requested", "")
        self.supported: tuple[str, ...] = forms.get("supported", ())


class ForceNotSupported(NotAcceptable, code="force_not_supported"):
    """This cannot be forced: it does not take over a turn that runs."""

    remediation = "Send it without `force`."


class Conflict(OrganismError, code="conflict", status=409, type="conflict", is_final=True):
    """What was asked does not fit the present state."""

    remediation = "Look at the object as it is now, then decide again."


class ThreadKilled(Conflict, code="thread_killed"):
    """The thread was killed; nothing can be sent into it."""

    remediation = "Inject without `thread_id` to begin a new thread."


class StalePosition(Conflict, code="stale_position"):
    """The decision rests on a state that has changed since."""


class RequestInProgress(Conflict, code="request_in_progress", is_final=False):
    """The first request with this idempotency key is still running."""

    remediation = "Wait briefly and send the same request again."


class AlreadyResolved(Conflict, code="already_resolved"):
    """It has been resolved already.

    ``resolved`` says by whom, when and how, if that is known.
    """

    def __init__(self, message: str = "", *, param: str | None = None, resolved: object = None) -> None:
        super().__init__(message, param=param)
        self.resolved = resolved


class SessionBusy(Conflict, code="session_busy", is_final=False):
    """The session is in the middle of a turn."""

    remediation = "Wait for the turn's end, then send it again."


class SessionCompactConflict(Conflict, code="session_compact_conflict"):
    """The session changed while it was compacted."""


class PreviewStale(Conflict, code="preview_stale"):
    """What was previewed has changed since."""

    remediation = "Preview it again and confirm what it shows now."


class ConfirmMismatch(Conflict, code="confirm_mismatch"):
    """The confirmation was given for another act."""

    remediation = "Preview this very act and confirm with the token of that preview."


class ConfirmExpired(Conflict, code="confirm_expired"):
    """The confirmation has expired."""

    remediation = "Preview it again and confirm within the time that it names."


class ConfirmUsed(Conflict, code="confirm_used"):
    """The confirmation was used already."""

    remediation = "What it confirmed was done; preview it again to do it once more."


class BodyTooLarge(OrganismError, code="body_too_large", status=413, type="invalid_request_error", is_final=True):
    """The body is larger than this route takes."""

    remediation = "Send less at a time."


class PayloadTooLarge(BodyTooLarge, code="payload_too_large"):
    """The payload is larger than the receiver takes."""


class MessageTooLarge(BodyTooLarge, code="message_too_large"):
    """The message is larger than the agent's model takes."""

    remediation = "Send it in parts, or as a document to an index; a model with a larger `context_window` takes more."


class FileUnreadable(OrganismError, code="file_unreadable", status=400, type="invalid_request_error", is_final=True):
    """The file has no text that can be read; `details` says why. Nothing was changed."""

    remediation = "Send a text, Markdown, HTML or PDF file that opens elsewhere too, or divide it."


class UnsupportedMediaType(
    OrganismError, code="unsupported_media_type", status=415, type="invalid_request_error", is_final=True
):
    """The Content-Type is not one that this route takes."""

    remediation = "Send `Content-Type: application/json`."


class IdempotencyKeyReused(
    OrganismError, code="idempotency_key_reused", status=422, type="invalid_request_error", is_final=True
):
    """The idempotency key was used with another body."""

    remediation = "Use a new key for a new request."


class ConfigInvalid(OrganismError, code="config_invalid", status=422, type="invalid_request_error", is_final=True):
    """The configuration is not valid."""

    remediation = "Correct each fault; what was running goes on as it was."


class ToolFailed(OrganismError, code="tool_error", status=422, type="upstream_error", is_final=True):
    """The tool was called, and says that it could not do it."""

    remediation = "Read the tool's own words; the same call most likely fails again."


class RateLimitExceeded(OrganismError, code="rate_limit_exceeded", status=429, type="rate_limit_exceeded"):
    """Too many requests."""

    remediation = "Wait as long as Retry-After says."

    def __init__(self, message: str = "", *, param: str | None = None, retry_after_s: int = 1) -> None:
        super().__init__(message, param=param)
        self.retry_after_s = retry_after_s


class TooManyFailures(RateLimitExceeded, code="too_many_failures"):
    """Too many failed attempts to authenticate."""


class BudgetExhausted(RateLimitExceeded, code="budget_exhausted", is_final=True):
    """The budget is used up."""

    remediation = "Wait for the budget's next period, or raise it."


class Upstream(OrganismError, code="upstream_error", status=502, type="upstream_error"):
    """A service that this one asks answered with an error."""

    remediation = "Correct what the message names, else try again later; the server's log names the service."


class UpstreamTimeout(Upstream, code="upstream_timeout", status=504):
    """A service that this one asks did not answer in time."""


class HandlingFailed(OrganismError, code="handling_failed", is_final=True):
    """The handling of the message failed for good."""

    remediation = "Look at the thread's dead letter for the reason; correct it, then replay it."


class Unavailable(OrganismError, code="log_unavailable", status=503, type="internal_error"):
    """The organism cannot do this now."""

    remediation = "Try again shortly, with the same idempotency key."


class MailboxFull(Unavailable, code="mailbox_full"):
    """The receiver's mailbox is full."""


class Paused(Unavailable, code="paused", is_final=True):
    """What this needs is paused, and nothing was accepted."""

    remediation = (
        "Resume what is named. A turn waits if it is sent with `organism chat --wait`, with `wait` in its body, "
        "or on `/v1` with the header `SPASS-Wait: true`."
    )


class Overloaded(Unavailable, code="overloaded"):
    """The requests that are under way take all the memory that there is for them."""

    remediation = "Send it again as soon as Retry-After says; requests of a few kilobytes are taken all the time."


class LogUnavailable(Unavailable, code="log_unavailable"):
    """The log takes no writes now; reads go on."""

    remediation = "Free disk space or repair the disk; the server recovers by itself. Then try again with the same key."


class CommitUnknown(Unavailable, code="commit_unknown"):
    """It is not known whether this was written."""

    remediation = "Send the same request with the same Idempotency-Key: it is done at most once."


class Stopping(Unavailable, code="stopping"):
    """The organism is stopping."""


class LibraryUnavailable(Unavailable, code="library_unavailable"):
    """The library's file cannot be used now."""

    remediation = "Free disk space or repair the disk, then send it again; nothing was changed."


class LibraryDamaged(OrganismError, code="library_damaged", is_final=True):
    """The library's file is damaged."""

    remediation = "Stop the server, put a backup of the library in its place or move it away, then ingest again."


class LogDamaged(OrganismError, code="log_damaged", is_final=True):
    """The log is damaged."""

    remediation = "Run `organism log verify`, then restore a backup; nothing was overwritten."


class ContentDamaged(LogDamaged, code="content_damaged"):
    """The content of an event is not there as it was written, and was not erased."""

    remediation = "Run `organism log verify` to see all that is damaged, then restore a backup; the rest can be read."


class LogHeld(OrganismError, code="log_held"):
    """Another process holds this data directory."""

    remediation = "Stop the other process, or serve another --data directory."


class Fenced(OrganismError, code="fenced"):
    """A newer process has taken over this log."""

    remediation = "This process must stop; the newer one goes on."

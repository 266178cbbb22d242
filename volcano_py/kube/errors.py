"""Errors of requests to the API server, as types; exceptions of the HTTP library stop here.

Every request ends in its answer or in one :class:`ApiError`. The class says what happened, the fields hold what the
server said, and :attr:`ApiError.maybe_applied` says whether a write may have taken effect without an answer.
"""

import asyncio
import ssl
from collections.abc import Mapping
from urllib.parse import unquote

import aiohttp
import msgspec

from volcano_py.api.answers import Status, StatusDetails
from volcano_py.kube.connections import (
    ConnectionCut,
    NoAnswerInTime,
    NoConnection,
    NoConnectionInTime,
    RequestFailed,
    Withheld,
)
from volcano_py.kube.resource import target_of

_STATUS = msgspec.json.Decoder(Status)
_TERMINATING = "NamespaceTerminating"  # reason of a cause
_MAX_FOREIGN_TEXT = 300  # bytes shown of a body that is not a Status, such as a proxy's page


class ApiError(Exception):
    """A request failed; the message names verb, resource, object and what the server said."""

    def __init__(
        self,
        verb: str,
        path: str,
        message: str,
        *,
        status: int = 0,
        reason: str = "",
        details: StatusDetails | None = None,
        retry_after_s: float | None = None,
        maybe_applied: bool = False,
    ) -> None:
        self.verb = verb
        self.path = path
        self.server_message = message
        self.status = status
        """HTTP status, or 0 when there was no answer."""
        self.reason = reason
        self.details = details
        self.retry_after_s = retry_after_s
        self.maybe_applied = maybe_applied
        """True when a write may have taken effect: the request went out and no clear answer came back."""
        words = " ".join(str(part) for part in (status or "", reason) if part)
        super().__init__(f"{verb} {target_of(path)}: {message}" + (f" ({words})" if words else ""))


class BadRequest(ApiError):
    """400: the request itself is wrong."""


class Unauthorized(ApiError):
    """401: the server does not know who is asking."""


class Forbidden(ApiError):
    """403: RBAC or an admission plugin refuses."""


class NamespaceTerminating(Forbidden):
    """403 that RBAC cannot change: the namespace is being deleted and accepts no new objects."""


class NotFound(ApiError):
    """404: no such object, or no such resource."""


class Conflict(ApiError):
    """409: the object changed meanwhile, or a precondition does not hold; read it again."""


class AlreadyExists(ApiError):
    """409 with reason AlreadyExists: an object of that name exists."""


class Gone(ApiError):
    """410: the resourceVersion or continue token is too old; list again."""


class Invalid(ApiError):
    """422: the object does not pass validation."""


class TooManyRequests(ApiError):
    """429: the server, or a disruption budget, asks to wait; ``retry_after_s`` says how long if the server did."""


class ServerError(ApiError):
    """5xx: the server failed."""


class NotServed(ServerError):
    """404 to a request about one object, which does not name this object: it says nothing about the object.

    The API server names an object that it does not have. If it does not serve the resource at present, or if a proxy
    answers in its place, nothing is named. A webhook may pass on an answer that names another object.
    """


class Timeout(ApiError):
    """No answer within the time allowed, by our own clock or the server's."""


class ConnectionFailed(ApiError):
    """The server cannot be reached, or the connection broke."""


class UnexpectedAnswer(ApiError):
    """The server's answer is not of the expected form."""


class OwnFault(ApiError):
    """No request failed: our own code raised an exception that nobody expected."""


_BY_STATUS: Mapping[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    408: Timeout,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
    504: Timeout,
}
_REMEDY: Mapping[int, str] = {
    401: "check the user's token or client certificate in the kubeconfig",
    403: "grant the verb on this resource by RBAC if it is meant to be allowed",
}


def from_answer(verb: str, path: str, status: int, body: bytes, headers: Mapping[str, str]) -> ApiError:
    """Return the error of an answer that is not a success."""
    return from_status(verb, path, _read_status(status, body), retry_after_s=_retry_after(headers))


def from_status(verb: str, path: str, said: Status, retry_after_s: float | None = None) -> ApiError:
    """Return the error of a Status object, from an answer or a watch."""
    code = said.code
    if said.reason == "AlreadyExists":
        kind: type[ApiError] = AlreadyExists
    elif said.reason == "Expired":
        kind = Gone
    elif said.details is not None and any(cause.reason == _TERMINATING for cause in said.details.causes):
        kind = NamespaceTerminating
    elif code == 404 and target_of(path).name and unquote(target_of(path).name) != _named(said):
        kind = NotServed
    else:
        kind = _BY_STATUS.get(code, ServerError if code >= 500 else ApiError)
    if retry_after_s is None and said.details is not None and said.details.retry_after_seconds > 0:
        retry_after_s = float(said.details.retry_after_seconds)
    message = said.message or said.reason or "the server gave no message"
    if code in _REMEDY and kind is not NamespaceTerminating and not _refused_by_admission(message):
        message = f"{message}; {_REMEDY[code]}"
    return kind(
        verb,
        path,
        message,
        status=code,
        reason=said.reason,
        details=said.details,
        retry_after_s=retry_after_s,
        maybe_applied=code >= 500,
    )


def _named(said: Status) -> str:
    """Return the name of the object that an answer is about, "" for none."""
    return "" if said.details is None else said.details.name


def names_another(error: ApiError, name: str) -> bool:
    """Say whether a refusal is about an object of another name, which a webhook may have looked for or created."""
    return bool(name) and error.details is not None and error.details.name not in ("", name)


def _refused_by_admission(message: str) -> bool:
    """Say whether a quota, a policy or a webhook refused the object: more rights do not help then.

    RBAC names the user who cannot do something. The plugin for owners that block deletion says what one can't set: that
    is about rights, too. Policies and webhooks speak as they like.
    """
    if "denied the request" in message or "denied request: " in message:
        return True
    return "is forbidden: " in message and 'is forbidden: User "' not in message and "can't " not in message


def is_refusal(error: ApiError) -> bool:
    """Say whether a request was refused for what it says, so that it may be accepted once other objects exist.

    Webhooks refuse with 400 or 403, admission plugins with 403, validation with 422. A namespace that ends stays so.
    """
    refused = isinstance(error, BadRequest | Forbidden | NotFound | Invalid)
    return refused and not isinstance(error, NamespaceTerminating)


def is_of_another(error: ApiError) -> bool:
    """Say whether a patch with a uid was refused because the object of that name has another uid now."""
    causes = error.details.causes if isinstance(error, Invalid) and error.details is not None else []
    return any(cause.field == "metadata.uid" for cause in causes)


def from_transport(verb: str, path: str, error: Exception, timeout_s: float, server: str) -> ApiError:
    """Return the error of a request that got no answer; the caller chains the original exception."""
    if isinstance(error, RequestFailed):
        return _from_connection(verb, path, error, timeout_s, server)
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return Timeout(verb, path, f"no connection to {server} within {timeout_s:g} s")
    if isinstance(error, asyncio.TimeoutError):
        return Timeout(verb, path, f"no answer from {server} within {timeout_s:g} s", maybe_applied=True)
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
        return _not_trusted(verb, path, error, server)
    if isinstance(error, aiohttp.ClientConnectorError):
        return ConnectionFailed(verb, path, f"cannot connect to {server}: {error.strerror or error}")
    if isinstance(error, aiohttp.ClientPayloadError):
        return ConnectionFailed(verb, path, f"{server} ended the connection within its answer", maybe_applied=True)
    return ConnectionFailed(
        verb, path, f"the connection to {server} broke: {error or type(error).__name__}", maybe_applied=True
    )


def _from_connection(verb: str, path: str, error: RequestFailed, timeout_s: float, server: str) -> ApiError:
    """Return the error of a request that failed on a connection of our own pool."""
    cause = error.__cause__
    if isinstance(error, Withheld):
        return ConnectionFailed(verb, path, f"not sent: {error}")
    if isinstance(error, NoConnectionInTime):
        return Timeout(verb, path, f"no connection to {server} within {timeout_s:g} s")
    if isinstance(error, NoAnswerInTime):
        return Timeout(verb, path, f"no answer from {server} within {timeout_s:g} s", maybe_applied=True)
    if isinstance(cause, ssl.SSLError):
        return _not_trusted(verb, path, cause, server)
    if isinstance(error, NoConnection):
        why = cause.strerror if isinstance(cause, OSError) and cause.strerror else str(error)
        return ConnectionFailed(verb, path, f"cannot connect to {server}: {why}")
    if isinstance(error, ConnectionCut) and error.within_answer:
        return ConnectionFailed(verb, path, f"{server} ended the connection within its answer", maybe_applied=True)
    message = f"the connection to {server} broke: {error}"
    return ConnectionFailed(verb, path, message, maybe_applied=error.sent)


def _not_trusted(verb: str, path: str, error: Exception, server: str) -> ConnectionFailed:
    why = f"{error}; check the cluster's certificate authority in the kubeconfig"
    return ConnectionFailed(verb, path, f"no trusted connection to {server}: {why}")


def _read_status(code: int, body: bytes) -> Status:
    """Read the Status in a body; any other body (of a proxy, of an old server) becomes its message."""
    try:
        said = _STATUS.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = body[:_MAX_FOREIGN_TEXT].decode("utf-8", "replace").strip()
        return Status(code=code, message=text)
    # The HTTP status counts, because a body may lack its code or be an object of another kind.
    return msgspec.structs.replace(said, code=code)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Read Retry-After in seconds; API servers do not use the form with a date."""
    text = headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else None

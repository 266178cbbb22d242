"""Failures as the Kubernetes API reports them: a Status object with code, reason, message and details."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from volcano_py.apiserver.objects import Obj, encode


@dataclass(frozen=True, slots=True)
class FieldError:
    """One error of one field; `reason` is the cause code, `message` the text after the field's path."""

    field: str
    reason: str
    message: str


def required(field: str, detail: str = "") -> FieldError:
    """A field that must be given."""
    return FieldError(field, "FieldValueRequired", f"Required value: {detail}" if detail else "Required value")


def invalid_value(field: str, value: object, detail: str) -> FieldError:
    """A value that breaks a rule."""
    return FieldError(field, "FieldValueInvalid", f"Invalid value: {encode(value).decode()}: {detail}")


def forbidden_field(field: str, detail: str) -> FieldError:
    """A field that may not be set or changed here."""
    return FieldError(field, "FieldValueForbidden", f"Forbidden: {detail}")


def unsupported_value(field: str, value: object, allowed: Sequence[object]) -> FieldError:
    """A value outside a closed set."""
    names = ", ".join(encode(item).decode() for item in allowed)
    text = f"Unsupported value: {encode(value).decode()}: supported values: {names}"
    return FieldError(field, "FieldValueNotSupported", text)


class StatusError(Exception):
    """A request that the server refuses; carries everything its Status object says."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Obj | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after_s = retry_after_s
        self.warnings: list[str] = []
        """Warnings of webhooks, which come with the refusal."""
        self.continue_token = ""

    def to_status(self) -> Obj:
        """The Status object of the response body."""
        status: Obj = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.continue_token} if self.continue_token else {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        details = dict(self.details) if self.details else {}
        if self.retry_after_s is not None:
            details["retryAfterSeconds"] = self.retry_after_s
        if details:
            status["details"] = details
        status["code"] = self.code
        return status


def success(details: Obj | None = None, code: int | None = None) -> Obj:
    """The Status object of a write that returns no object."""
    status: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details:
        status["details"] = details
    if code is not None:
        status["code"] = code
    return status


def details_of(group: str, plural: str, name: str) -> Obj:
    """The `details` that name an object."""
    details: Obj = {"name": name} if name else {}
    if group:
        details["group"] = group
    details["kind"] = plural
    return details


def _qualified(group: str, plural: str) -> str:
    return f"{plural}.{group}" if group else plural


def bad_request(message: str) -> StatusError:
    """400: the request cannot be understood."""
    return StatusError(400, "BadRequest", message)


def unauthorized() -> StatusError:
    """401: no token or a wrong one."""
    return StatusError(401, "Unauthorized", "Unauthorized")


def forbidden(group: str, plural: str, name: str, why: str) -> StatusError:
    """403: admission or policy says no."""
    message = f'{_qualified(group, plural)} "{name}" is forbidden: {why}'
    return StatusError(403, "Forbidden", message, details_of(group, plural, name))


def not_found(group: str, plural: str, name: str) -> StatusError:
    """404: no such object."""
    message = f'{_qualified(group, plural)} "{name}" not found'
    return StatusError(404, "NotFound", message, details_of(group, plural, name))


def no_such_resource() -> StatusError:
    """404: the path names nothing this server serves."""
    return StatusError(404, "NotFound", "the server could not find the requested resource")


def not_implemented(message: str) -> StatusError:
    """501: Kubernetes has it, this server does not."""
    return StatusError(501, "NotImplemented", message)


def method_not_allowed() -> StatusError:
    """405: the resource exists, the verb does not apply to it."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message)


def already_exists(group: str, plural: str, name: str) -> StatusError:
    """409: the name is taken."""
    message = f'{_qualified(group, plural)} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, details_of(group, plural, name))


def conflict(group: str, plural: str, name: str, why: str) -> StatusError:
    """409: the object is not in the state that the caller assumes."""
    message = f'Operation cannot be fulfilled on {_qualified(group, plural)} "{name}": {why}'
    return StatusError(409, "Conflict", message, details_of(group, plural, name))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
"""Why an update with an old resourceVersion is refused."""


def expired(message: str) -> StatusError:
    """410: the resourceVersion or continue token is older than the history kept."""
    return StatusError(410, "Expired", message)


def too_large_version(asked: int, current: int) -> StatusError:
    """504: the caller is ahead of this server."""
    details: Obj = {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return StatusError(504, "Timeout", message, details, retry_after_s=1)


def unsupported_media_type(accepted: Sequence[str]) -> StatusError:
    """415: the body's content type is not understood here."""
    message = "the body of the request was in an unknown format - accepted media types include: "
    return StatusError(415, "UnsupportedMediaType", message + ", ".join(accepted))


def invalid(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> StatusError:
    """422: the object breaks rules of its kind; every error is listed."""
    texts = [f"{error.field}: {error.message}" for error in errors]
    body = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details: Obj = {"name": name} if name else {}
    if group:
        details["group"] = group
    details["kind"] = kind
    details["causes"] = [{"reason": error.reason, "message": error.message, "field": error.field} for error in errors]
    message = f'{_qualified(group, kind)} "{name}" is invalid: {body}'
    return StatusError(422, "Invalid", message, details)

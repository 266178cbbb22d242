"""AdmissionReview as JSON: reads the question of the API server, writes the answer.

Only `admission.k8s.io/v1` is spoken. A body from which no uid can be read cannot be answered with a review.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from volcano_py.admission.contract import Request, Verdict
from volcano_py.admission.paths import Webhook

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
_OPERATIONS: Final = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})
_MOST_CAUSES: Final = 100
_MOST_WARNINGS: Final = 20
_LONGEST_WARNING: Final = 250  # Kubernetes asks for at most 256 characters
_BAD_REQUEST: Final = 400


class Malformed(Exception):
    """A body is no review that can be judged; ``uid`` is empty if it has none."""

    def __init__(self, message: str, uid: str = "") -> None:
        self.uid = uid
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Review:
    """A question of the API server."""

    uid: str
    group: str
    plural: str
    dry_run: bool
    """Whether nothing may be written on behalf of this request."""
    request: Request

    def misdirected(self, webhook: Webhook) -> str:
        """Return why this webhook cannot answer, "" if it can."""
        if (self.group, self.plural) == (webhook.group, webhook.plural):
            return ""
        found = f"{self.plural}.{self.group}" if self.group else self.plural
        return f"expect resource to be {webhook.resource}, but {webhook.path} was asked about {found}"


def read_review(body: bytes) -> Review:
    """Read a body; raise Malformed if it is no review."""
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"the body is not JSON: {error}" if body else "the body is empty") from error
    if not isinstance(document, dict):
        raise Malformed(f"the body is not an {KIND}")
    asked = document.get("request")
    if not isinstance(asked, dict):
        raise Malformed(f"the {KIND} has no request")
    uid = asked.get("uid")
    if not isinstance(uid, str) or not uid:
        raise Malformed(f"the request of the {KIND} has no uid")
    found = (document.get("apiVersion"), document.get("kind"))
    if found != (API_VERSION, KIND):
        raise Malformed(f"expected {API_VERSION}, Kind={KIND}, got {found[0]}, Kind={found[1]}", uid)
    try:
        return _review(uid, asked)
    except ValueError as error:
        raise Malformed(str(error), uid) from error


def answered(uid: str, verdict: Verdict) -> bytes:
    """Return the answer to a review."""
    response: dict[str, Any] = {"uid": uid, "allowed": verdict.allowed}
    if not verdict.allowed:
        response["status"] = _status(verdict)
    elif verdict.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(msgspec.json.encode(verdict.patch)).decode()
    hints = (refusal.hint for refusal in verdict.refusals if refusal.hint)
    if warnings := [_one_line(text) for text in dict.fromkeys((*verdict.warnings, *hints))]:
        response["warnings"] = warnings[:_MOST_WARNINGS]
    return _encoded(response)


def refused(uid: str, message: str, code: int = _BAD_REQUEST) -> bytes:
    """Return the answer to a review that no rule has judged."""
    return _encoded({"uid": uid, "allowed": False, "status": {"message": message, "code": code}})


def _encoded(response: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode({"kind": KIND, "apiVersion": API_VERSION, "response": response})


def _status(verdict: Verdict) -> dict[str, Any]:
    status: dict[str, Any] = {"message": verdict.message}
    causes = [
        {"reason": "FieldValueInvalid", "message": refusal.message, "field": refusal.field}
        for refusal in verdict.refusals[:_MOST_CAUSES]
        if refusal.field
    ]
    if causes:
        status["details"] = {"causes": causes}
    return status


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_WARNING else f"{line[: _LONGEST_WARNING - 3]}..."


def _review(uid: str, asked: Mapping[str, Any]) -> Review:
    resource = _mapping(asked, "resource")
    operation = _text(asked, "operation")
    if operation not in _OPERATIONS:
        raise ValueError(f"operation {operation!r} is none of {', '.join(sorted(_OPERATIONS))}")
    request = Request(
        operation=operation,
        namespace=_text(asked, "namespace"),
        name=_text(asked, "name"),
        object=_mapping(asked, "object"),
        old=_mapping(asked, "oldObject"),
        subresource=_text(asked, "subResource"),
    )
    if operation in ("CREATE", "UPDATE") and not request.object:
        raise ValueError(f"the request of operation {operation} has no object")
    return Review(
        uid=uid,
        group=_text(resource, "group"),
        plural=_text(resource, "resource"),
        dry_run=asked.get("dryRun") is True,
        request=request,
    )


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"field {name} of the request is not a text")
    return value


def _mapping(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = fields.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"field {name} of the request is not an object")
    return value

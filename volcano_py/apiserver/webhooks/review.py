"""AdmissionReview: encode the question, decode the answer."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from typing import Any

import msgspec

from volcano_py.apiserver.objects import Obj, decode
from volcano_py.apiserver.origin import ORIGIN
from volcano_py.apiserver.status import StatusError
from volcano_py.apiserver.webhooks.matching import Subject

_API_VERSION = "admission.k8s.io/v1"
_USER: Obj = {"username": "system:admin", "groups": ["system:masters", "system:authenticated"]}
"""The user in every question: this server does not distinguish users."""


class BadAnswer(Exception):
    """A webhook answered with something other than an AdmissionReview; counts as a failed call."""


@dataclass(slots=True)
class Verdict:
    """What a webhook said."""

    allowed: bool
    patch: list[Any] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    status: Obj = field(default_factory=dict)


def question(subject: Subject, obj: Obj | None, old: Obj | None, dry_run: bool) -> Obj:
    """The AdmissionReview for a write."""
    resource = subject.resource
    group = resource.group
    kind = {"group": group, "version": subject.version, "kind": resource.kind}
    plural = {"group": group, "version": subject.version, "resource": resource.plural}
    api_version = resource.versions[subject.version].api_version
    request: Obj = {
        "uid": ORIGIN.get().uid(),
        "kind": kind,
        "resource": plural,
        "requestKind": kind,
        "requestResource": plural,
        "name": subject.name,
        "operation": subject.operation,
        "userInfo": _USER,
        "object": _typed(obj, resource.kind, api_version),
        "oldObject": _typed(old, resource.kind, api_version),
        "dryRun": dry_run,
        "options": None,
    }
    if subject.namespace:
        request["namespace"] = subject.namespace
    if subject.subresource:
        request["subResource"] = request["requestSubResource"] = subject.subresource
    return {"kind": "AdmissionReview", "apiVersion": _API_VERSION, "request": request}


def _typed(obj: Obj | None, kind: str, api_version: str) -> Obj | None:
    return None if obj is None else {**obj, "kind": kind, "apiVersion": api_version}


def read_answer(body: bytes, uid: str) -> Verdict:
    """The verdict in an answer; BadAnswer if the answer has none."""
    try:
        review = decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadAnswer(f"the answer is no JSON: {error}") from error
    response = review.get("response") if isinstance(review, dict) else None
    if not isinstance(response, dict):
        raise BadAnswer("webhook response was absent")
    if review.get("kind") != "AdmissionReview" or review.get("apiVersion") != _API_VERSION:
        found = f"{review.get('apiVersion')}, Kind={review.get('kind')}"
        raise BadAnswer(f"expected webhook response of {_API_VERSION}, Kind=AdmissionReview, got {found}")
    if response.get("uid") != uid:
        raise BadAnswer(f'expected response.uid="{uid}", got "{response.get("uid", "")}"')
    verdict = Verdict(response.get("allowed") is True, status=response.get("status") or {})
    verdict.warnings = [str(text) for text in response.get("warnings") or ()]
    if response.get("patch"):
        verdict.patch = _patch_of(response)
    return verdict


def _patch_of(response: Obj) -> list[Any]:
    if response.get("patchType") != "JSONPatch":
        raise BadAnswer(f'invalid response.patchType="{response.get("patchType", "")}": only JSONPatch is understood')
    try:
        patch = decode(base64.b64decode(response["patch"], validate=True))
    except (binascii.Error, TypeError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadAnswer(f"response.patch is no base64 of a JSON patch: {error}") from error
    if not isinstance(patch, list):
        raise BadAnswer("response.patch is no list of operations")
    return patch


def denied(hook: str, status: Obj) -> StatusError:
    """The error that a client gets if a webhook refuses its write."""
    text = f'admission webhook "{hook}" denied the request'
    message, reason = status.get("message"), status.get("reason")
    text = f"{text}: {message or reason}" if message or reason else f"{text} without explanation"
    code = status.get("code")
    code = code if isinstance(code, int) and code >= 400 else 400
    return StatusError(code, str(reason or ""), text, status.get("details"))

"""Object metadata: what the server fills in, keeps and refuses."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from volcano_py.apiserver.kinds.conform import conform
from volcano_py.apiserver.kinds.shapes import METADATA
from volcano_py.apiserver.objects import Obj, timestamp
from volcano_py.apiserver.origin import ORIGIN
from volcano_py.apiserver.status import (
    FieldError,
    forbidden_field,
    invalid_value,
    required,
)

_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SERVICE = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_SUBDOMAIN_RE, _LABEL_RE, _SERVICE_RE, _QUALIFIED_RE, _VALUE_RE = (
    re.compile(text) for text in (_SUBDOMAIN, _LABEL, _SERVICE, _QUALIFIED, _VALUE)
)

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # without vowels no name spells a word by accident
_CALLER_FIELDS = ("name", "generateName", "namespace", "labels", "annotations", "ownerReferences", "finalizers")
_SERVER_FIELDS = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)

NameRule = Callable[[str], str]
"""A rule for names: returns what is wrong, or "" for a valid name."""


@lru_cache(maxsize=4096)
def subdomain_rule(name: str) -> str:
    """Names of most kinds: an RFC 1123 subdomain."""
    if len(name) > 253:
        return "must be no more than 253 bytes"
    if _SUBDOMAIN_RE.fullmatch(name):
        return ""
    return (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
        f"start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
        f"'{_SUBDOMAIN}')"
    )


def label_rule(name: str) -> str:
    """Names of namespaces: an RFC 1123 label."""
    if len(name) > 63:
        return "must be no more than 63 bytes"
    if _LABEL_RE.fullmatch(name):
        return ""
    return (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
        f"end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
    )


def service_rule(name: str) -> str:
    """Names of services: an RFC 1035 label."""
    if len(name) <= 63 and _SERVICE_RE.fullmatch(name):
        return ""
    return (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
        "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
        f"validation is '{_SERVICE}')"
    )


def path_segment_rule(name: str) -> str:
    """Names of RBAC objects: anything that is one segment of a path."""
    if name in (".", ".."):
        return f"may not be '{name}'"
    for letter in "/%":
        if letter in name:
            return f"may not contain '{letter}'"
    return ""


def new_name(prefix: str) -> str:
    """A name made from generateName; the caller retries when it is taken."""
    return prefix[:58] + "".join(ORIGIN.get().random().choices(_SUFFIX_LETTERS, k=5))


def metadata_of(body: Obj) -> Obj:
    """The metadata of a request body, its types checked (400 where kube cannot decode them either)."""
    if body.get("metadata") is None:
        body["metadata"] = {}
    meta: Obj = body["metadata"]
    conform(meta, METADATA, "metadata")
    return meta


def for_create(meta: Obj, has_generation: bool) -> Obj:
    """Metadata of a new object: what the caller may choose, and what the server fills in."""
    made: Obj = {name: meta[name] for name in _CALLER_FIELDS if meta.get(name)}
    made["uid"] = ORIGIN.get().uid()
    made["creationTimestamp"] = timestamp()
    if has_generation:
        made["generation"] = 1
    return made


def for_update(meta: Obj, old: Obj) -> Obj:
    """Metadata of a new revision: fields that the server owns keep their values."""
    made: Obj = {name: meta[name] for name in _CALLER_FIELDS if meta.get(name)}
    if old.get("generateName"):
        made["generateName"] = old["generateName"]
    for name in _SERVER_FIELDS:
        if name in old:
            made[name] = old[name]
    return made


def validate(meta: Obj, name_rule: NameRule) -> list[FieldError]:
    """Return what is wrong with the metadata of a new object or revision."""
    errors: list[FieldError] = []
    name = meta.get("name", "")
    if not name:
        errors.append(required("metadata.name", "name or generateName is required"))
    elif problem := name_rule(name):
        errors.append(invalid_value("metadata.name", name, problem))
    for key, value in (meta.get("labels") or {}).items():
        if problem := _qualified_name_problem(key):
            errors.append(invalid_value("metadata.labels", key, problem))
        if problem := _label_value_problem(value):
            errors.append(invalid_value("metadata.labels", value, problem))
    for key in meta.get("annotations") or ():
        if problem := _qualified_name_problem(key.lower()):
            errors += [invalid_value("metadata.annotations", key, problem)]
    if "ownerReferences" in meta:
        errors.extend(_owner_errors(meta["ownerReferences"]))
    for index, finalizer in enumerate(meta.get("finalizers") or ()):
        if problem := _qualified_name_problem(finalizer):
            errors.append(invalid_value(f"metadata.finalizers[{index}]", finalizer, problem))
    return errors


def validate_update(meta: Obj, old: Obj) -> list[FieldError]:
    """Return what is wrong with a change of metadata."""
    if "deletionTimestamp" not in old:
        return []
    added = [name for name in meta.get("finalizers") or () if name not in (old.get("finalizers") or ())]
    if not added:
        return []
    names = ", ".join(f'"{name}"' for name in added)
    detail = "no new finalizers can be added if the object is being deleted, found new finalizers "
    return [forbidden_field("metadata.finalizers", f"{detail}[]string{{{names}}}")]


def _owner_errors(owners: list[Obj]) -> list[FieldError]:
    errors: list[FieldError] = []
    path = "metadata.ownerReferences"
    for owner in owners:
        if not owner.get("apiVersion"):
            errors.append(invalid_value(f"{path}.apiVersion", "", "version must not be empty"))
        errors.extend(
            invalid_value(f"{path}.{name}", "", f"{name} must not be empty")
            for name in ("kind", "name", "uid")
            if not owner.get(name)
        )
    if sum(owner.get("controller") is True for owner in owners) > 1:
        detail = "Only one reference can have Controller set to true"
        errors.append(invalid_value("metadata.ownerReferences", None, detail))
    return errors


@lru_cache(maxsize=8192)
def _qualified_name_problem(key: str) -> str:
    prefix, slash, name = key.rpartition("/")
    if slash and (problem := subdomain_rule(prefix)):
        return f"prefix part {problem}"
    if not name or len(name) > 63 or not _QUALIFIED_RE.fullmatch(name):
        return (
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
            "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            f"'{_QUALIFIED}')"
        )
    return ""


@lru_cache(maxsize=8192)
def _label_value_problem(value: str) -> str:
    if len(value) > 63:
        return "must be no more than 63 bytes"
    if _VALUE_RE.fullmatch(value):
        return ""
    return (
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
        "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
        f"validation is '{_VALUE}')"
    )

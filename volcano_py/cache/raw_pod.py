"""Reads the most important fields of a pod whose JSON does not fit its type."""

from typing import Any, NamedTuple

import msgspec

from volcano_py.api.nesting import decoded


class KnownOfPod(NamedTuple):
    """What must be known of an unreadable pod: which node it uses, and whether it is ours."""

    node: str  # "" for none
    ended: bool
    scheduler_name: str | None  # None if even that cannot be read


def peek(raw: bytes) -> KnownOfPod:
    """Return the fields of a pod; those that are missing or have a wrong type count as absent."""
    try:
        found: Any = decoded(msgspec.json.decode, raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = None  # the reflector has reported it
    node = _text(found, "spec", "nodeName")
    phase = _text(found, "status", "phase")
    return KnownOfPod(node or "", phase in ("Succeeded", "Failed"), _text(found, "spec", "schedulerName"))


def _text(decoded: Any, section: str, field: str) -> str | None:
    part = decoded.get(section) if isinstance(decoded, dict) else None
    value = part.get(field) if isinstance(part, dict) else None
    return value if isinstance(value, str) else None

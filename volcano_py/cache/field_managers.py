"""Who wrote a field of a pod, from metadata.managedFields: who sets a field owns it until somebody else changes it.

The API server names each owner (`manager`). Without another name in the request, this is the User-Agent up to its first
slash. Others than schedulers nominate nodes for pods, too: cluster autoscalers and administrators (KEP-5278).
"""

from typing import Final

import msgspec

from volcano_py.api import keys
from volcano_py.api.meta import Wire
from volcano_py.api.nesting import decoded

_UNKNOWN: Final = "before-first-apply"
"""The API server's name for whoever wrote what was there before it began to record owners."""
_OURS: Final = frozenset({keys.PROGRAM, keys.GO_SCHEDULER, _UNKNOWN})
"""This scheduler, and the one whose place it takes: what that one has nominated is ours to withdraw."""


class _StatusFields(Wire, frozen=True):
    nominated: msgspec.Raw | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="f:nominatedNodeName")


class _Fields(Wire, frozen=True):
    status: _StatusFields = msgspec.field(default=_StatusFields(), name="f:status")


class _Entry(Wire, frozen=True):
    manager: str = ""
    fields: _Fields = msgspec.field(default=_Fields(), name="fieldsV1")


_DECODE: Final = msgspec.json.Decoder(list[_Entry]).decode


def nominated_by_us(managed_fields: msgspec.Raw) -> bool:
    """Say whether the nomination of a pod may be withdrawn by us: no other program owns status.nominatedNodeName.

    That is so if nothing records who wrote it: not every API server does, and pods of a dump often lack the record.
    """
    raw = bytes(managed_fields)
    if not raw:
        return True
    try:
        entries = decoded(_DECODE, raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return True
    owners = {entry.manager for entry in entries if entry.fields.status.nominated is not msgspec.UNSET}
    return owners <= _OURS

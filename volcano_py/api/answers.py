"""What the API server sends besides objects: what is said of a list, and why a request failed."""

import msgspec

from volcano_py.api.meta import Wire


class ListMeta(Wire, frozen=True):
    """What every list has."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class StatusCause(Wire, frozen=True):
    """One cause of a failed request."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Wire, frozen=True):
    """What a failed request was about."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: list[StatusCause] = msgspec.field(default_factory=list)
    retry_after_seconds: int = 0


class Status(Wire, frozen=True):
    """The API server's answer when it has no object to give."""

    status: str = ""
    reason: str = ""
    message: str = ""
    code: int = 0
    details: StatusDetails | None = None

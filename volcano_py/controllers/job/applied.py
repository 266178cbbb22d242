"""The objects of plugins as this process has written them for one job."""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from volcano_py.controllers.job.plugins.contract import PluginObject


class Applied(NamedTuple):
    """An object as it was written last."""

    uid: str
    fields: bytes
    """What follows the job, as JSON."""


class AppliedObjects:
    """What was written for one job, so that a change of the job costs one request for each object that follows it."""

    def __init__(self) -> None:
        self._applied: dict[tuple[str, str], Applied] = {}
        self.removed = False
        """Whether this process has deleted the objects since it wrote any."""

    def outdated(self, wanted: Iterable[PluginObject]) -> tuple[PluginObject, ...]:
        """Return the objects that were not written as they are wanted."""
        return tuple(one for one in wanted if (known := self.last(one)) is None or known.fields != following(one))

    def last(self, one: PluginObject) -> Applied | None:
        """Return how an object was written last, None if this process has not written it."""
        return self._applied.get(_key(one))

    def note(self, one: PluginObject, uid: str) -> None:
        """Note that an object exists as it is wanted."""
        self._applied[_key(one)] = Applied(uid, following(one))
        self.removed = False

    def forget(self, one: PluginObject) -> None:
        """Forget how an object was written, because it is not as it was."""
        self._applied.pop(_key(one), None)

    def forget_all(self) -> bool:
        """Forget how all objects were written, so that each is looked at again; return whether there were any."""
        known = bool(self._applied)
        self._applied.clear()
        self.removed = False
        return known

    def note_removed(self) -> None:
        """Note that all objects were deleted."""
        self._applied.clear()
        self.removed = True


def following(one: PluginObject) -> bytes:
    """Return what of an object follows the job."""
    return msgspec.json.encode({name: one.body.get(name) for name in one.follow}, order="sorted")


def _key(one: PluginObject) -> tuple[str, str]:
    return one.resource.label, str(one.body["metadata"]["name"])

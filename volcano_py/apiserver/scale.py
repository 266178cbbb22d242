"""The scale subresource: the number of replicas, wherever the kind keeps it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from volcano_py.apiserver.objects import Obj, dig
from volcano_py.apiserver.resources import ScalePaths
from volcano_py.apiserver.status import bad_request
from volcano_py.apiserver.tables.built_in import selector_text

_META = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def read(obj: Obj, paths: ScalePaths) -> Obj:
    """The Scale of an object."""
    status: Obj = {"replicas": _at(obj, paths.current) or 0}
    selector = _at(obj, paths.selector) if paths.selector else None
    if selector:
        status["selector"] = selector if isinstance(selector, str) else selector_text(selector)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: obj["metadata"][name] for name in _META if name in obj["metadata"]},
        "spec": {"replicas": _at(obj, paths.wanted) or 0},
        "status": status,
    }


def change(asked: Obj, paths: ScalePaths) -> Callable[[Obj], Obj]:
    """The change that a Scale makes to the object; 400 if its replicas are no whole number."""
    replicas: Any = dig(asked, "spec", "replicas")
    replicas = 0 if replicas is None else replicas
    if type(replicas) is not int or replicas < 0:
        raise bad_request(f"spec.replicas of a Scale must be a whole number that is not negative, not {replicas!r}")
    version = dig(asked, "metadata", "resourceVersion")

    def apply(obj: Obj) -> Obj:
        if version:
            obj["metadata"]["resourceVersion"] = version
        *above, last = paths.wanted.strip(".").split(".")
        place = obj
        for name in above:
            place = place.setdefault(name, {})
        place[last] = replicas
        return obj

    return apply


def _at(obj: Obj, path: str) -> Any:
    return dig(obj, *path.strip(".").split("."))

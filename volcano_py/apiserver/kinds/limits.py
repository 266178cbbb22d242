"""LimitRanges: the defaults and the bounds that a namespace sets for its pods and their containers.

The order is that of a real server: all defaults first, then all bounds. Bounds for claims are not enforced.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal

from volcano_py.apiserver.kinds.generic import WriteContext
from volcano_py.apiserver.kinds.quantities import quantity
from volcano_py.apiserver.objects import Obj, dig
from volcano_py.apiserver.status import forbidden

COLLECTION = "limitranges"
_CONTAINER, _POD = "Container", "Pod"
_BOUNDS = ("min", "max", "maxLimitRequestRatio")


def complete(obj: Obj) -> None:
    """Fill in the defaults of a LimitRange itself: a bound is a default where none is given."""
    for item in dig(obj, "spec", "limits") or ():
        if item.get("type") == _CONTAINER:
            limits = {**(item.get("max") or {}), **(item.get("default") or {})}
            requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
            item.update({key: value for key, value in (("default", limits), ("defaultRequest", requests)) if value})


def admit_limits(obj: Obj, context: WriteContext) -> None:
    """Give containers what their namespace sets, and refuse a pod outside of its bounds."""
    meta = obj["metadata"]
    found = [one for one in context.reader.objects(COLLECTION) if one["metadata"]["namespace"] == meta.get("namespace")]
    items = [item for one in found for item in dig(one, "spec", "limits") or ()]
    if not items:
        return
    spec = obj["spec"]
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    for item in items:
        if item.get("type") == _CONTAINER:
            for container in containers:
                _default(container.setdefault("resources", {}), item)
    problems = [problem for item in items for problem in _problems(item, spec, containers)]
    if problems:
        text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        raise forbidden("", "pods", meta.get("name", ""), text)


def _default(resources: Obj, item: Obj) -> None:
    for field, of_item in (("limits", "default"), ("requests", "defaultRequest")):
        if defaults := item.get(of_item):
            resources[field] = {**defaults, **(resources.get(field) or {})}


def _problems(item: Obj, spec: Obj, containers: Iterable[Obj]) -> Iterator[str]:
    if item.get("type") == _CONTAINER:
        for container in containers:
            resources = container.get("resources") or {}
            yield from _out_of_bounds(item, _amounts(resources, "requests"), _amounts(resources, "limits"))
    elif item.get("type") == _POD:
        yield from _out_of_bounds(item, _of_pod(spec, "requests"), _of_pod(spec, "limits"))


def _of_pod(spec: Obj, field: str) -> dict[str, Decimal]:
    """Return the sum over the containers; an init container that asks for more counts alone."""
    total: dict[str, Decimal] = {}
    for container in spec.get("containers") or ():
        for name, value in _amounts(container.get("resources") or {}, field).items():
            total[name] = total.get(name, Decimal(0)) + value
    for container in spec.get("initContainers") or ():
        for name, value in _amounts(container.get("resources") or {}, field).items():
            total[name] = max(total.get(name, value), value)
    return total


def _amounts(resources: Obj, field: str) -> dict[str, Decimal]:
    return {name: quantity(str(value)) or Decimal(0) for name, value in (resources.get(field) or {}).items()}


def _out_of_bounds(item: Obj, requests: dict[str, Decimal], limits: dict[str, Decimal]) -> Iterator[str]:
    """Yield the sentences of a real server."""
    for bound in _BOUNDS:
        for name, shown in (item.get(bound) or {}).items():
            enforced, request, limit = quantity(str(shown)) or Decimal(0), requests.get(name), limits.get(name)
            if bound == "min":
                said = f"minimum {name} usage per {item['type']} is {shown}"
                yield from _below(said, enforced, request, limit)
            elif bound == "max":
                said = f"maximum {name} usage per {item['type']} is {shown}"
                yield from _above(said, enforced, request, limit)
            else:
                said = f"{name} max limit to request ratio per {item['type']} is {shown}"
                yield from _ratio(said, enforced, request, limit)


def _below(said: str, enforced: Decimal, request: Decimal | None, limit: Decimal | None) -> Iterator[str]:
    if request is None:
        yield f"{said}.  No request is specified"
    elif request < enforced:
        yield f"{said}, but request is {_plain(request)}"
    if limit is not None and limit < enforced:
        yield f"{said}, but limit is {_plain(limit)}"


def _above(said: str, enforced: Decimal, request: Decimal | None, limit: Decimal | None) -> Iterator[str]:
    if limit is None:
        yield f"{said}.  No limit is specified"
    elif limit > enforced:
        yield f"{said}, but limit is {_plain(limit)}"
    if request is not None and request > enforced:
        yield f"{said}, but request is {_plain(request)}"


def _ratio(said: str, enforced: Decimal, request: Decimal | None, limit: Decimal | None) -> Iterator[str]:
    if not request:
        yield f"{said}, but no request is specified or request is 0"
    elif not limit:
        yield f"{said}, but no limit is specified or limit is 0"
    elif limit / request > enforced:
        yield f"{said}, but provided ratio is {limit / request:.6f}"


def _plain(value: Decimal) -> str:
    """Return an amount as a quantity: whole, or in thousandths."""
    return str(int(value)) if value == value.to_integral_value() else f"{int(value * 1000)}m"

"""Requests and limits: of containers, and of the pod as a whole."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

from volcano_py.admission import names
from volcano_py.admission.amounts import Amounts, amount, amounts
from volcano_py.admission.contract import Obj
from volcano_py.admission.pod_rules.flaws import (
    Flaws,
    duplicate,
    each,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from volcano_py.admission.reading import part, parts, text
from volcano_py.admission.resource_names import counted_whole, is_extended, is_huge_page, is_native
from volcano_py.api import keys

_QOS: Final = frozenset({keys.CPU, keys.MEMORY})
_OF_CONTAINERS: Final = frozenset({keys.CPU, keys.MEMORY, keys.EPHEMERAL_STORAGE})
_STANDARD: Final = _OF_CONTAINERS | {
    "storage",
    "pods",
    "services",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
}


def container_resources(resources: Obj, path: str, claims: Sequence[str]) -> Flaws:
    """Judge ``resources`` of a container; ``claims`` are the names of the pod's resource claims."""
    yield from _requirements(resources, path, of_pod=False)
    yield from _claims(resources, f"{path}.claims", claims)


def overhead(amounts_written: Obj, path: str) -> Flaws:
    """Judge ``overhead`` of a pod: it is like limits."""
    yield from _requirements({"limits": amounts_written}, path, of_pod=False)


def pod_resources(spec: Obj, path: str) -> Flaws:
    """Judge ``resources`` of a pod: they have room for those of its containers."""
    resources = part(spec, "resources")
    if not resources:
        return
    if text(spec, "os", "name") == "windows":
        yield forbidden(path, "may not be set for a windows pod")
        return
    if resources.get("claims") is not None:
        yield forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level")
    yield from _requirements(resources, path, of_pod=True)
    for name, needed in aggregate(spec, "requests").items():
        written = part(resources, "requests").get(name)
        own = amount(written)
        if own is not None and needed > own:
            detail = f"must be greater than or equal to aggregate container requests of {_text(needed)}"
            yield invalid(f"{path}.requests[{name}]", str(written), detail)
    limits = part(resources, "limits")
    for name, needed in aggregate(spec, "limits").items():
        own = amount(limits.get(name))
        if is_huge_page(name) and own is not None and needed > own:
            detail = f"must be greater than or equal to aggregate container limits of {_text(needed)}"
            yield invalid(f"{path}.limits[{name}]", str(limits[name]), detail)
    for index, container in enumerate(parts(spec, "containers")):
        for name, written in part(container, "resources", "limits").items():
            value, own = amount(written), amount(limits.get(name))
            if value is not None and own is not None and value > own:
                detail = f"must be less than or equal to pod limits of {limits[name]}"
                yield invalid(f"{path}.containers[{index}][{name}].limits", str(written), detail)


def aggregate(spec: Obj, kind: str) -> Amounts:
    """Return what all containers ask for together.

    Init containers run one after the other, before the others; those that restart always go on running beside them.
    """
    running: dict[str, Fraction] = {}
    for container in parts(spec, "containers"):
        _add(running, _of(container, kind))
    beside: dict[str, Fraction] = {}
    most: dict[str, Fraction] = {}
    for container in parts(spec, "initContainers"):
        own = _of(container, kind)
        if text(container, "restartPolicy") == "Always":
            _add(running, own)
            _add(beside, own)
            own = beside
        else:
            own = {name: own.get(name, Fraction(0)) + beside.get(name, Fraction(0)) for name in {**own, **beside}}
        for name, value in own.items():
            most[name] = max(most.get(name, Fraction(0)), value)
    return {name: max(running.get(name, Fraction(0)), most.get(name, Fraction(0))) for name in {**running, **most}}


def _of(container: Obj, kind: str) -> Amounts:
    """Return requests or limits of a container; a limit is the default of a request."""
    resources = part(container, "resources")
    limits = part(resources, "limits")
    return amounts(limits if kind == "limits" else {**limits, **part(resources, "requests")})


def _add(total: dict[str, Fraction], more: Amounts) -> None:
    for name, value in more.items():
        total[name] = total.get(name, Fraction(0)) + value


def _requirements(resources: Obj, path: str, of_pod: bool) -> Flaws:
    limits, written = part(resources, "limits"), part(resources, "requests")
    requests = {**limits, **written} if limits and not of_pod else written
    for kind, found in (("limits", limits), ("requests", written)):
        for name, quantity in found.items():
            yield from _entry(name, quantity, f"{path}.{kind}[{name}]", of_pod)
    for name, quantity in requests.items():
        request, limit = amount(quantity), amount(limits.get(name))
        overcommit = _may_overcommit(name)
        if request is None:
            continue
        if limit is None:
            if not overcommit and name not in limits:
                yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        elif request != limit and not overcommit:
            yield invalid(f"{path}.requests", str(quantity), f"must be equal to {name} limit of {limits[name]}")
        elif request > limit:
            detail = f"must be less than or equal to {name} limit of {limits[name]}"
            yield invalid(f"{path}.requests", str(quantity), detail)
    asked = {**limits, **requests}
    if any(is_huge_page(name) for name in asked) and not _QOS & asked.keys():
        yield forbidden(path, "HugePages require cpu or memory")


def _entry(name: str, quantity: Any, path: str, of_pod: bool) -> Flaws:
    """Judge the name and the amount of one resource."""
    problems = names.qualified(name)
    yield from each(path, name, problems)
    if not problems:
        yield from _supported_in_pod(name, path) if of_pod else _supported_in_container(name, path)
    value = amount(quantity)
    if value is None:
        yield invalid(path, str(quantity), "must be a quantity, such as 500m, 2 or 1Gi")
        return
    if value < 0:
        yield invalid(path, str(quantity), "must be greater than or equal to 0")
    if counted_whole(name) and value.denominator != 1:
        yield invalid(path, str(quantity), "must be an integer")
    if is_huge_page(name):
        size = amount(name.removeprefix(keys.HUGEPAGES_PREFIX))
        if size is None or size <= 0 or value <= 0 or value % size:
            yield invalid(path, str(quantity), f"{quantity} is not positive integer multiple of {name}")


def _supported_in_container(name: str, path: str) -> Flaws:
    if "/" not in name:
        if name not in _STANDARD and not is_huge_page(name):
            yield invalid(path, name, "must be a standard resource type or fully qualified")
        elif name not in _OF_CONTAINERS and not is_huge_page(name):
            yield invalid(path, name, "must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name):
        yield invalid(path, name, "doesn't follow extended resource name standard")


def _supported_in_pod(name: str, path: str) -> Flaws:
    if name not in _QOS and not is_huge_page(name):
        yield not_supported(path, name, [*_QOS])


def _may_overcommit(name: str) -> bool:
    return is_native(name) and not is_huge_page(name)


def _claims(resources: Obj, path: str, known: Sequence[str]) -> Flaws:
    seen: set[str] = set()
    for index, claim in enumerate(parts(resources, "claims")):
        at, name, request = f"{path}[{index}]", text(claim, "name"), text(claim, "request")
        if not name:
            yield required(at)
            continue
        key = f"{name}/{request}" if request else name
        if request:
            yield from each(f"{at}.request", request, names.label(request))
        if name in seen or key in seen or (not request and any(one.startswith(f"{name}/") for one in seen)):
            yield duplicate(at, key)
        seen.add(key)
        if name not in known:
            those = f": {', '.join(sorted(known))}" if known else " which is empty"
            yield not_found(at, name, f"must be one of the names in pod.spec.resourceClaims{those}")


def _text(value: Fraction) -> str:
    """Return an amount as a quantity: a whole number, or thousandths."""
    if value.denominator == 1:
        return str(value.numerator)
    return f"{-(-value.numerator * 1000 // value.denominator)}m"

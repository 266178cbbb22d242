"""What a pod uses in the words of a ResourceQuota, as a PodGroup states it in ``spec.minResources``.

    pods, count/pods                                               1 each
    cpu, memory, ephemeral-storage                                 request, also as requests.NAME; limit as limits.NAME
    hugepages-SIZE, and names with a "/" such as nvidia.com/gpu    request, also as requests.NAME

These are the keys that Volcano writes. The scheduler reads the plain names; a ResourceQuota may limit any of them.
Requests and limits are those of the whole pod (Kubernetes: PodRequests, PodLimits): init containers, sidecars,
pod-level resources and overhead included. Values are exact, in units of one, so that sums over pods are exact, too.
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Final

import msgspec

from volcano_py.api import keys
from volcano_py.api.core import Container, PodSpec
from volcano_py.api.quantity import QuantityError, WireQuantity, milli, parse_quantity, whole
from volcano_py.model.pod_request import limit_quantities, request_quantities
from volcano_py.model.resources import quantity_text

Usage = dict[str, Fraction]

_REQUESTS: Final = "requests."
_LIMITS: Final = "limits."
_COUNT: Final = "count/"
_COMPUTE: Final = (keys.CPU, keys.MEMORY, keys.EPHEMERAL_STORAGE)
_ONE: Final = Fraction(1)


def quota_usage(spec: PodSpec) -> Usage:
    """Return what one pod with this spec uses; raise QuantityError naming the field that cannot be read."""
    used: Usage = {keys.PODS: _ONE, f"{_COUNT}{keys.PODS}": _ONE}
    for name, value in request_quantities(spec).items():
        if name in _COMPUTE or name.startswith(keys.HUGEPAGES_PREFIX) or "/" in name:
            used[name] = used[f"{_REQUESTS}{name}"] = value
    for name, value in limit_quantities(spec).items():
        if name in _COMPUTE:
            used[f"{_LIMITS}{name}"] = value
    return used


def usage_sum(parts: Iterable[tuple[Usage, int]]) -> Usage:
    """Return the sum over parts: the usage of one pod, and how many such pods there are."""
    total: Usage = {}
    for usage, pods in parts:
        for name, value in usage.items() if pods else ():
            total[name] = total.get(name, Fraction(0)) + value * pods
    return total


def usage_text(usage: Mapping[str, Fraction]) -> dict[str, str]:
    """Return a usage as quantities, sorted by name; what is finer than the scheduler counts is rounded up."""
    return {name: _text(name, usage[name]) for name in sorted(usage)}


def same_amounts(wanted: Mapping[str, str], now: Mapping[str, WireQuantity]) -> bool:
    """Say whether two lists of resources mean the same: Go writes 1500M where we write 1500000000."""
    if wanted == now:
        return True
    try:
        return wanted.keys() == now.keys() and all(
            parse_quantity(amount) == parse_quantity(now[name]) for name, amount in wanted.items()
        )
    except QuantityError:
        return False


def admitted(spec: PodSpec) -> PodSpec:
    """Return a pod template's spec as the API server admits its pods: a limit without a request is the request, too."""
    return msgspec.structs.replace(
        spec,
        containers=[_requesting_its_limits(container) for container in spec.containers],
        init_containers=[_requesting_its_limits(container) for container in spec.init_containers],
    )


def _requesting_its_limits(container: Container) -> Container:
    asked = container.resources
    if asked.limits.keys() <= asked.requests.keys():
        return container
    resources = msgspec.structs.replace(asked, requests={**asked.limits, **asked.requests})
    return msgspec.structs.replace(container, resources=resources)


def _text(name: str, value: Fraction) -> str:
    resource = name.removeprefix(_COUNT).removeprefix(_REQUESTS).removeprefix(_LIMITS)
    return quantity_text(resource, whole(value) if resource in (keys.PODS, keys.MEMORY) else milli(value))

"""The request of a pod, summed as in kube-scheduler. Sums are exact; rounding happens only at the end.

``raw`` is what Volcano compares with a node; kube-scheduler calls it requested. ``nonzero`` is what its scorers count:
a container without a request for cpu or memory gets a small default. If the pod has pod-level requests, the default
applies only to a resource that neither the pod nor any container names (getNonMissingContainerRequests).

    sum of containers and sidecars ┐
    greatest need of the start-up  ┴─ the greater, per resource ──▶ pod-level requests replace ──▶ + overhead (+ 1 pod)

The start-up need of a plain init container is its own request plus those of the sidecars started before it.

While a container, or a pod with pod-level requests, is resized in place, its request is the greatest of the desired,
the actual and the allocated one. A resize that the node can never carry out does not count (KEP 1287 and 5419,
`in_force`).
"""

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import partial
from typing import Final, NamedTuple

import msgspec

from volcano_py.api import keys
from volcano_py.api.core import Container, Pod, PodSpec, ResourceRequirements
from volcano_py.api.meta import ResourceList
from volcano_py.api.quantity import QuantityError, WireQuantity, milli, whole
from volcano_py.model.resources import amount_of, bounded, read_quantity

SIDECAR: Final = "Always"  # restartPolicy of an init container that keeps running

_LITTLE: Final = {
    keys.CPU: Fraction(1, 10),  # kube-scheduler: DefaultMilliCPURequest
    keys.MEMORY: Fraction(200 * 1024 * 1024),  # kube-scheduler: DefaultMemoryRequest
}

_Quantities = dict[str, Fraction]
_Reader = Callable[[Container, str], _Quantities]


class PodRequest(NamedTuple):
    """The request of a pod, in amounts."""

    raw: dict[str, float]  # without zeros; ``pods`` included
    nonzero: tuple[float, float]  # cpu and memory with kube-scheduler's defaults


def pod_request(spec: PodSpec) -> PodRequest:
    """Return the request of a pod; raise QuantityError naming the field that cannot be read."""
    total = request_quantities(spec)
    raw = {name: bounded(name, amount) for name, amount in amounts(total).items()}
    raw[keys.PODS] = 1.0
    little = _LITTLE
    if _of_the_whole(spec):
        little = {name: value for name, value in _LITTLE.items() if name not in total}
    nonzero = _total(spec, partial(_requests_or, little))
    return PodRequest(
        raw,
        (
            bounded(keys.CPU, float(milli(nonzero.get(keys.CPU, Fraction(0))))),
            bounded(keys.MEMORY, float(whole(nonzero.get(keys.MEMORY, Fraction(0))))),
        ),
    )


def request_quantities(spec: PodSpec) -> dict[str, Fraction]:
    """Return the exact request of a pod, also of uncounted resources; raise QuantityError naming the field."""
    return _total(spec, _requests)


def limit_quantities(spec: PodSpec) -> dict[str, Fraction]:
    """Return how much a pod may use of each resource that has a limit; raise QuantityError naming the field.

    Limits are added up like requests. Containers without a limit add nothing; overhead is added only if there is a
    limit (Kubernetes: component-helpers, PodLimits).
    """
    total = _start_up_or_running(spec, _limits)
    if spec.resources is not None:
        total.update(read_resource_list(spec.resources.limits, "spec.resources.limits"))
    overhead = read_resource_list(spec.overhead, "spec.overhead")
    return {name: value + overhead.get(name, 0) if value else value for name, value in total.items()}


def pod_limits(spec: PodSpec) -> tuple[float, float]:
    """Return how much cpu and memory a pod may use, 0 for no limit; raise QuantityError naming the field."""
    total = limit_quantities(spec)
    return float(milli(total.get(keys.CPU, Fraction(0)))), float(whole(total.get(keys.MEMORY, Fraction(0))))


def in_force(pod: Pod) -> PodSpec:
    """Return a pod's spec with the requests that count while containers are resized in place.

    Raises QuantityError naming the field that cannot be read. Without a resize it is the spec itself.
    """
    spec, status = pod.spec, pod.status
    if not status.container_statuses and not status.init_container_statuses and status.resources is None:
        return spec
    given = {
        container.name: [container.resources.requests, container.allocated_resources]
        for container in (*status.container_statuses, *status.init_container_statuses)
        if container.resources is not None
    }
    refused = _resize_is_refused(pod)
    containers = [_in_force(c, given, refused, "spec.containers") for c in spec.containers]
    sidecars = [
        _in_force(c, given, refused, "spec.initContainers") if c.restart_policy == SIDECAR else c
        for c in spec.init_containers
    ]
    whole = spec.resources
    if whole is not None and status.resources is not None:
        # The status may name resources that the pod asks for container by container. Only the spec says what is whole.
        held = [
            {name: requests.get(name, "0") for name in whole.requests}
            for requests in (status.resources.requests, status.allocated_resources)
        ]
        whole = _greatest(whole, held, refused, "spec.resources.requests")
    if containers == spec.containers and sidecars == spec.init_containers and whole is spec.resources:
        return spec
    return msgspec.structs.replace(spec, containers=containers, init_containers=sidecars, resources=whole)


def _in_force(container: Container, given: Mapping[str, list[ResourceList]], refused: bool, where: str) -> Container:
    held = given.get(container.name)
    if held is None:
        return container
    resources = _greatest(container.resources, held, refused, _path(container, where))
    if resources is container.resources:
        return container
    return msgspec.structs.replace(container, resources=resources)


def _greatest(
    resources: ResourceRequirements, held: list[ResourceList], refused: bool, path: str
) -> ResourceRequirements:
    """Return resources with the requests that count; the same object if those are the desired requests."""
    asked = resources.requests
    if not refused and all(requests == asked for requests in held if requests):  # as in nearly every pod
        return resources
    greatest: dict[str, WireQuantity] = {}
    for requests in held if refused else [asked, *held]:
        for name, written in requests.items():
            if name not in greatest or _natural(written, path) > _natural(greatest[name], path):
                greatest[name] = written
    return msgspec.structs.replace(resources, requests=greatest)


def _resize_is_refused(pod: Pod) -> bool:
    return any(
        condition.type == keys.CONDITION_RESIZE_PENDING and condition.reason == keys.REASON_RESIZE_INFEASIBLE
        for condition in pod.status.conditions
    )


def request_without_init(spec: PodSpec) -> dict[str, float]:
    """Return the request of a pod's regular containers, pod-level requests and overhead, without ``pods``."""
    return amounts(_finish(_sum_of(spec.containers, "spec.containers", _requests), spec))


def amounts(quantities: Mapping[str, Fraction]) -> dict[str, float]:
    """Return the amounts of the counted resources that are not zero."""
    found = ((name, amount_of(name, value)) for name, value in quantities.items())
    return {name: amount for name, amount in found if amount}


def read_resource_list(quantities: ResourceList, where: str) -> _Quantities:
    """Return the values of a resource list; raise QuantityError naming the field that cannot be read."""
    return {name: _natural(written, f"{where}[{name}]") for name, written in quantities.items()}


def _natural(written: WireQuantity, where: str) -> Fraction:
    value = read_quantity(written, where)
    if value < 0:
        raise QuantityError(f"{where}: {written!r} is negative: write 0 or more")
    return value


def _total(spec: PodSpec, reader: _Reader) -> _Quantities:
    return _finish(_start_up_or_running(spec, reader), spec)


def _start_up_or_running(spec: PodSpec, reader: _Reader) -> _Quantities:
    running = _sum_of(spec.containers, "spec.containers", reader)
    started: _Quantities = {}  # sidecars so far
    start_up: _Quantities = {}
    for container in spec.init_containers:
        need = reader(container, _path(container, "spec.initContainers"))
        if container.restart_policy == SIDECAR:
            _add(running, need)
            _add(started, need)
            need = started
        else:
            _add(need, started)
        for name, value in need.items():
            start_up[name] = max(value, start_up.get(name, value))
    for name, value in start_up.items():
        running[name] = max(value, running.get(name, value))
    return running


def _finish(total: _Quantities, spec: PodSpec) -> _Quantities:
    """Apply the pod-level requests and the overhead."""
    total.update(_of_the_whole(spec))
    _add(total, read_resource_list(spec.overhead, "spec.overhead"))
    return total


def _of_the_whole(spec: PodSpec) -> _Quantities:
    """Return the pod-level requests, of the resources that may have them: cpu, memory and huge pages."""
    if spec.resources is None:
        return {}
    named = read_resource_list(spec.resources.requests, "spec.resources.requests")
    counted = (keys.CPU, keys.MEMORY)
    return {name: value for name, value in named.items() if name in counted or name.startswith(keys.HUGEPAGES_PREFIX)}


def _sum_of(containers: Iterable[Container], where: str, reader: _Reader) -> _Quantities:
    total: _Quantities = {}
    for container in containers:
        _add(total, reader(container, _path(container, where)))
    return total


def _requests(container: Container, where: str) -> _Quantities:
    return read_resource_list(container.resources.requests, where)


def _limits(container: Container, where: str) -> _Quantities:
    return read_resource_list(container.resources.limits, f"{where.removesuffix('.requests')}.limits")


def _requests_or(little: _Quantities, container: Container, where: str) -> _Quantities:
    return little | read_resource_list(container.resources.requests, where)


def _path(container: Container, where: str) -> str:
    return f"{where}[{container.name}].resources.requests"


def _add(total: _Quantities, more: Mapping[str, Fraction]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, Fraction(0)) + value

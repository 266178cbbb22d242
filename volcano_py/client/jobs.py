"""Jobs of one task, made from flags."""

from collections.abc import Mapping, Sequence
from typing import Any

from volcano_py.client.problem import Problem
from volcano_py.kube.resource import VCJOBS


def read_resources(text: str, flag: str) -> dict[str, str]:
    """Read `cpu=1,memory=1Gi`."""
    from volcano_py.api.quantity import QuantityError, parse_quantity

    found = {}
    for statement in text.split(",") if text else ():
        name, equals, amount = statement.partition("=")
        if not equals or not name or "=" in amount:
            raise Problem(f"invalid argument syntax {statement}, expected <resource>=<value> in {flag}")
        try:
            parse_quantity(amount)
        except QuantityError as error:
            raise Problem(f"{flag}: {error}") from error
        found[name] = amount
    return found


def raised(limits: Mapping[str, str], requests: Mapping[str, str]) -> dict[str, str]:
    """Return limits that are nowhere below the requests."""
    from volcano_py.api.quantity import parse_quantity

    high = {
        name: one
        for name, one in requests.items()
        if name in limits and parse_quantity(one) > parse_quantity(limits[name])
    }
    return {**limits, **high}


def lowered(requests: Mapping[str, str], limits: Mapping[str, str]) -> dict[str, str]:
    """Return requests that are nowhere above the limits."""
    from volcano_py.api.quantity import parse_quantity

    low = {
        name: one
        for name, one in limits.items()
        if name in requests and parse_quantity(one) < parse_quantity(requests[name])
    }
    return {**requests, **low}


def job_of_one_task(
    name: str,
    namespace: str,
    *,
    image: str,
    scheduler: str,
    minimum: int,
    replicas: int,
    requests: Mapping[str, str],
    limits: Mapping[str, str],
    command: Sequence[str] = (),
    queue: str = "",
) -> dict[str, Any]:
    """Return a job whose pods have one container with its name."""
    container: dict[str, Any] = {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": dict(requests), "limits": dict(limits)},
    }
    if command:
        container["command"] = list(command)
    task = {  # it has no name, as in Volcano: its pods are called <job>-default0-0
        "replicas": replicas,
        "template": {
            "metadata": {"name": name, "labels": {"job.volcano.sh": name}},
            "spec": {"restartPolicy": "Never", "containers": [container]},
        },
    }
    spec: dict[str, Any] = {"minAvailable": minimum, "schedulerName": scheduler, "tasks": [task]}
    if queue:
        spec["queue"] = queue
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": VCJOBS.api_version, "kind": VCJOBS.kind, "metadata": metadata, "spec": spec}

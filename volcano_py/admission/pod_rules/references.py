"""References to fields of the pod, and to requests and limits of its containers."""

import re
from collections.abc import Collection
from typing import Final

from volcano_py.admission import names
from volcano_py.admission.amounts import amount
from volcano_py.admission.contract import Obj
from volcano_py.admission.pod_rules.flaws import Flaws, each, invalid, not_supported, required
from volcano_py.admission.reading import text

IN_VARIABLE: Final = frozenset(
    {
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    }
)
"""Fields of a pod that a variable may have as its value."""

IN_VOLUME: Final = frozenset(
    {"metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels", "metadata.annotations"}
)
"""Fields of a pod that a file may have as its content."""

_KNOWN: Final = IN_VARIABLE | IN_VOLUME | {"spec.restartPolicy", "spec.schedulerName", "status.phase"}
_RESOURCES: Final = frozenset(
    {f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage")}
)
_HUGE: Final = ("limits.hugepages-", "requests.hugepages-")
_SUBSCRIPT: Final = re.compile(r"(.+)\['(.*)'\]")
_BYTES: Final = frozenset({"1", *(f"1{suffix}" for suffix in "kMGTPE"), *(f"1{suffix}i" for suffix in "KMGTPE")})
_CPUS: Final = frozenset({"1", "1m"})


def field_reference(reference: Obj, path: str, allowed: Collection[str]) -> Flaws:
    """Judge a reference to a field of the pod."""
    field, at = text(reference, "fieldPath"), f"{path}.fieldPath"
    version = text(reference, "apiVersion") or "v1"
    if not field:
        yield required(at)
        return
    match = _SUBSCRIPT.fullmatch(field)
    if match:
        owner, key = match[1], match[2]
        if version != "v1" or owner not in ("metadata.labels", "metadata.annotations"):
            yield invalid(path, owner, "does not support subscript")
        else:
            yield from each(path, key, names.qualified(key.lower() if owner == "metadata.annotations" else key))
    elif version != "v1" or field not in _KNOWN:
        yield invalid(at, field, f"error converting fieldPath: field label not supported: {field}")
    elif field not in allowed:
        yield not_supported(at, field, allowed)


def resource_reference(reference: Obj, path: str, in_volume: bool) -> Flaws:
    """Judge a reference to a request or limit of a container; a file names the container."""
    resource = text(reference, "resource")
    if in_volume and not text(reference, "containerName"):
        yield required(f"{path}.containerName")
    elif not resource:
        yield required(f"{path}.resource")
    elif resource not in _RESOURCES and not resource.startswith(_HUGE):
        yield not_supported(f"{path}.resource", resource, _RESOURCES)
    written = reference.get("divisor")
    divisor = amount(written)
    if divisor is None or divisor == 0:
        return
    allowed = _CPUS if resource.endswith(".cpu") else _BYTES
    if divisor not in {amount(one) for one in allowed}:
        unit = "1m and 1" if allowed is _CPUS else "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi and 1Ei"
        yield invalid(f"{path}.divisor", str(written), f"only divisor's values {unit} are supported with this resource")

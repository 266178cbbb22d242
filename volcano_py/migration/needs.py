"""What pods ask for that does not exist here: resource claims, shared devices, NUMA policies."""

from collections.abc import Iterator
from typing import Final

from volcano_py.api import keys
from volcano_py.migration.findings import Finding, Group, Obj, Ref, mapping, sequence

_DEVICE_PREFIXES: Final = ("hami.io/", "volcano.sh/vgpu-")
_KEEP: Final = "keep Volcano's scheduler for such pods, under a scheduler name of its own"


def needs_of(ref: Ref, annotations: Obj, spec: Obj) -> Iterator[Finding]:
    """Yield what a pod, or the template of one, asks for and would not get."""
    if sequence(spec, "resourceClaims"):
        what = "it asks for resource claims (DRA); here such pods wait, and their condition says so"
        yield Finding(Group.MISSING, "resource-claims", ref, what, _KEEP)
    devices = sorted(_devices(annotations, spec))
    if devices:
        what = f"it asks for shared devices ({', '.join(devices)}); here such pods wait, and their condition says so"
        yield Finding(Group.MISSING, "shared-devices", ref, what, _KEEP)
    policy = annotations.get(keys.NUMA_POLICY)
    if policy and policy != "none":
        yield numa_policy(ref, str(policy))


def numa_policy(ref: Ref, policy: str) -> Finding:
    """Return what a NUMA policy means here."""
    what = f"it has the NUMA policy {policy}; the plugin numa-aware does not exist here, so the policy has no effect"
    return Finding(Group.MISSING, "numa-policy", ref, what, "rely on the kubelet's topology manager, or keep Volcano")


def _devices(annotations: Obj, spec: Obj) -> set[str]:
    found = {key for key in annotations if key.startswith(_DEVICE_PREFIXES)}
    for container in (*sequence(spec, "containers"), *sequence(spec, "initContainers")):
        for kind in ("requests", "limits"):
            found |= {
                key for key in mapping(container, "resources", kind) if key in keys.SHARED_DEVICES or _is_share(key)
            }
    return found


def _is_share(resource: str) -> bool:
    """Say whether an amount is a part of an accelerator of Huawei, such as huawei.com/Ascend310P-memory."""
    return resource.startswith("huawei.com/Ascend") and resource.endswith(("-memory", "-core"))

"""Names of resources, as the API server tells them apart."""

from typing import Final

from volcano_py.api import keys

_WHOLE: Final = frozenset(
    {
        keys.PODS,
        "services",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
_REQUESTS: Final = "requests."


def counted_whole(name: str) -> bool:
    """Say whether there are only whole numbers of a resource: things that are counted, and extended resources."""
    return name in _WHOLE or is_extended(name)


def is_native(name: str) -> bool:
    """Say whether a resource is one of Kubernetes' own."""
    return "/" not in name or keys.NATIVE_DOMAIN in name


def is_extended(name: str) -> bool:
    """Say whether a resource is one that devices or node operators bring, such as ``nvidia.com/gpu``."""
    return not is_native(name) and not name.startswith(_REQUESTS)


def is_huge_page(name: str) -> bool:
    """Say whether a resource is huge pages of one size."""
    return name.startswith(keys.HUGEPAGES_PREFIX)

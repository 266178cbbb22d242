"""Conformance: pods that the cluster itself depends on are no victims.

Protected is every pod of the namespace kube-system and every pod of the priority classes system-cluster-critical and
system-node-critical. (Volcano: plugins/conformance.)

The plugin speaks only when an action asks whom it may evict. None of the actions here does so yet, so in a
configuration of today the plugin has nothing to answer.
"""

from typing import Final

from volcano_py.framework.plugin import Plugin

CRITICAL_CLASSES: Final = frozenset({"system-cluster-critical", "system-node-critical"})
SYSTEM_NAMESPACE: Final = "kube-system"


class Conformance(Plugin):
    """Protection of the cluster's own pods."""

    name = "conformance"


def protected(namespace: str, priority_class: str) -> bool:
    """Say whether a pod must never be evicted for another one."""
    return namespace == SYSTEM_NAMESPACE or priority_class in CRITICAL_CLASSES

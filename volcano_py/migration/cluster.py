"""The kinds of objects that a check looks at, and the objects of a cluster."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from volcano_py.kube import resource as kinds
from volcano_py.kube.resource import Resource
from volcano_py.migration.findings import Obj

KINDS: Final = (
    *(kinds.DEPLOYMENTS, kinds.DAEMON_SETS, kinds.STATEFUL_SETS),
    *(kinds.CUSTOM_RESOURCE_DEFINITIONS, kinds.PRIORITY_CLASSES, kinds.NAMESPACES),
    *(kinds.CLUSTER_ROLES, kinds.CLUSTER_ROLE_BINDINGS, kinds.ROLE_BINDINGS),
    *(kinds.MUTATING_WEBHOOKS, kinds.VALIDATING_WEBHOOKS, kinds.VALIDATING_POLICIES, kinds.MUTATING_POLICIES),
    *(kinds.QUEUES, kinds.COMMANDS, kinds.CRON_JOBS, kinds.JOB_FLOWS, kinds.JOB_TEMPLATES),
    *(kinds.HYPER_NODES, kinds.NUMATOPOLOGIES, kinds.NODE_SHARDS, kinds.COLOCATION_CONFIGURATIONS),
)
"""Kinds of which a cluster has few; all objects are kept at once."""
IN_NAMESPACES: Final = (
    *(kinds.CONFIG_MAPS, kinds.SERVICES, kinds.RESOURCE_QUOTAS),
    *(kinds.POD_DISRUPTION_BUDGETS, kinds.NETWORK_POLICIES),
)
"""Kinds that are read only in the namespaces of Volcano's programs."""
MANY: Final = (kinds.VCJOBS, kinds.PODGROUPS, kinds.NODES, kinds.PODS)
"""Kinds of which a cluster may have many; their objects pass by one after the other."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The objects of a cluster, as far as they could be read."""

    objects: Mapping[Resource, list[Obj]]
    many: Mapping[Resource, Iterable[Obj]] = field(default_factory=dict)
    """Each is gone through once."""
    refused: Collection[Resource] = ()
    """Kinds that could not be read completely; those of which there may be many join while they pass by."""
    definitions: Mapping[str, Obj] = field(default_factory=dict)
    """Our definitions of custom resources, by name."""

    def all(self, *kinds: Resource) -> list[Obj]:
        """Return the objects of some kinds, each with its kind."""
        return [
            one if one.get("kind") else {"apiVersion": kind.api_version, "kind": kind.kind, **one}
            for kind in kinds
            for one in self.objects.get(kind, ())
        ]

    def knows(self, kind: Resource) -> bool:
        """Say whether the objects of a kind could be read."""
        return kind in self.objects

    def read(self, kind: Resource) -> bool:
        """Say whether all objects of a kind passed by; ask afterwards."""
        return kind not in self.refused

    def pass_by(self, kind: Resource) -> Iterable[Obj]:
        """Return the objects of a kind of which there may be many."""
        return self.many.get(kind, ())

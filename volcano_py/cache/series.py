"""Converts services and workloads to series: sets of pods that are spread together."""

from collections.abc import Mapping
from sys import intern
from typing import Final

from volcano_py.api.apps import ReplicaSet, StatefulSet
from volcano_py.api.core import ReplicationController, Service
from volcano_py.api.meta import LabelSelector, ObjectMeta
from volcano_py.model.requirements import Requirement
from volcano_py.model.selectors import label_selector
from volcano_py.model.series import Series

_MAKERS: Final = frozenset({("v1", "ReplicationController"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")})


def owner(meta: ObjectMeta) -> str:
    """Return kind/name of the workload that made a pod, "" if it has none with a pod selector."""
    for reference in meta.owner_references:
        if reference.controller and (reference.api_version, reference.kind) in _MAKERS:
            return intern(workload_name(reference.kind, reference.name))
    return ""


def workload_name(kind: str, name: str) -> str:
    """Return the name by which pods and their workload find each other."""
    return f"{kind}/{name}"


def service_series(service: Service) -> Series:
    """Return the series of a service."""
    return Series(intern(service.metadata.namespace), service.metadata.name, _labels(service.spec.selector))


def controller_series(controller: ReplicationController) -> Series:
    """Return the series of a replication controller."""
    return _series("ReplicationController", controller.metadata, _labels(controller.spec.selector))


def replica_set_series(workload: ReplicaSet) -> Series:
    """Return the series of a replica set; raise ValueError naming the field that cannot be read."""
    return _series("ReplicaSet", workload.metadata, _selected(workload.spec.selector))


def stateful_set_series(workload: StatefulSet) -> Series:
    """Return the series of a stateful set; raise ValueError naming the field that cannot be read."""
    return _series("StatefulSet", workload.metadata, _selected(workload.spec.selector))


def _series(kind: str, meta: ObjectMeta, requirements: tuple[Requirement, ...]) -> Series:
    return Series(intern(meta.namespace), intern(workload_name(kind, meta.name)), requirements)


def _labels(selector: Mapping[str, str] | None) -> tuple[Requirement, ...]:
    return tuple(Requirement(key, "In", (value,)) for key, value in sorted((selector or {}).items()))


def _selected(selector: LabelSelector | None) -> tuple[Requirement, ...]:
    return () if selector is None else label_selector(selector, "spec.selector").requirements

"""Events of services and workloads, which select pods to spread together; an unreadable one counts as absent."""

from collections.abc import Callable
from typing import TypeVar

from volcano_py.api.core import Service
from volcano_py.cache import series
from volcano_py.cache.fact_events import FactEvents
from volcano_py.cache.state import ClusterState
from volcano_py.cache.unreadable_objects import UnreadableObjects
from volcano_py.kube.delivery import KubernetesObject
from volcano_py.model.series import Series

W = TypeVar("W", bound=KubernetesObject)


class SeriesEvents:
    """The event handlers of the four kinds."""

    def __init__(self, state: ClusterState, unreadable: UnreadableObjects) -> None:
        known = state.store.series
        self.services: FactEvents[Service, Series] = FactEvents(
            "Service",
            state,
            unreadable,
            read=series.service_series,
            get=known.service,
            put=known.set_service,
            drop=known.remove_service,
            helps=_never,
        )
        self.replication_controllers = self._workloads(
            state, unreadable, "ReplicationController", series.controller_series
        )
        self.replica_sets = self._workloads(state, unreadable, "ReplicaSet", series.replica_set_series)
        self.stateful_sets = self._workloads(state, unreadable, "StatefulSet", series.stateful_set_series)

    @staticmethod
    def _workloads(
        state: ClusterState, unreadable: UnreadableObjects, kind: str, read: Callable[[W], Series]
    ) -> FactEvents[W, Series]:
        known = state.store.series
        return FactEvents(
            kind,
            state,
            unreadable,
            read=read,
            get=lambda space, name: known.workload(space, series.workload_name(kind, name)),
            put=known.set_workload,
            drop=lambda space, name: known.remove_workload(space, series.workload_name(kind, name)),
            helps=_never,
        )


def _never(before: Series | None, after: Series | None) -> bool:
    """Say that no change lets a pending job be placed: spreading a series is only a preference."""
    return False

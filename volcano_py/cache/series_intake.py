"""Events of services and workloads: they say which pods are spread together. One that cannot be read says nothing."""

from collections.abc import Callable
from typing import TypeVar

from volcano_py.api.workloads import Service
from volcano_py.cache import series
from volcano_py.cache.fact_intake import FactIntake
from volcano_py.cache.state import ClusterState
from volcano_py.cache.unreadable import UnreadableBook
from volcano_py.kube.delivery import KubernetesObject
from volcano_py.model.series import Series

W = TypeVar("W", bound=KubernetesObject)


class SeriesIntakes:
    """The intakes of the four kinds."""

    def __init__(self, state: ClusterState, book: UnreadableBook) -> None:
        known = state.store.series
        self.services: FactIntake[Service, Series] = FactIntake(
            "Service",
            state,
            book,
            read=series.service_series,
            get=known.service,
            put=known.set_service,
            drop=known.remove_service,
            helps=_never,
        )
        self.replication_controllers = self._workloads(state, book, "ReplicationController", series.controller_series)
        self.replica_sets = self._workloads(state, book, "ReplicaSet", series.replica_set_series)
        self.stateful_sets = self._workloads(state, book, "StatefulSet", series.stateful_set_series)

    @staticmethod
    def _workloads(
        state: ClusterState, book: UnreadableBook, kind: str, read: Callable[[W], Series]
    ) -> FactIntake[W, Series]:
        known = state.store.series
        return FactIntake(
            kind,
            state,
            book,
            read=read,
            get=lambda space, name: known.workload(space, series.workload_name(kind, name)),
            put=known.set_workload,
            drop=lambda space, name: known.remove_workload(space, series.workload_name(kind, name)),
            helps=_never,
        )


def _never(before: Series | None, after: Series | None) -> bool:
    """Say that no change lets anything happen that could not: spread over a series is only a preference."""
    return False

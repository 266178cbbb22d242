"""Default spread constraints: pods without constraints of their own are spread over nodes and zones, per series.

    selector      the labels that all services selecting the pod require, and those that its ReplicationController,
                  ReplicaSet or StatefulSet requires; without any of these there are no constraints
    constraints   host name with a skew of 3, zone with a skew of 5, both ScheduleAnyway

(kube-scheduler v1.36: podtopologyspread/plugin.go systemDefaultConstraints, plugins/helper/spread.go DefaultSelector.
Volcano's nodeorder uses the same.)
"""

from collections.abc import Callable, Collection, Iterable
from typing import Final

from volcano_py.api import keys
from volcano_py.model.objects import TaskRecord
from volcano_py.model.pod_terms import PodSelector, Spread
from volcano_py.model.requirements import Requirement
from volcano_py.model.selectors import LabelSelector
from volcano_py.model.series import Series

_SKEWS: Final = ((keys.LABEL_HOSTNAME, 3), (keys.LABEL_ZONE, 5))
_REPLICATION_CONTROLLER: Final = "ReplicationController/"
_CACHED_AT_MOST: Final = 4096  # cached constraints; a full cache is cleared


class _Namespace:
    """Services, workloads and tasks of one namespace."""

    __slots__ = ("anchors", "by_label", "by_owner", "services", "tasks", "workloads")

    def __init__(self) -> None:
        self.services: dict[str, Series] = {}
        self.anchors: dict[str, Requirement] = {}  # by name of a service, a label that it requires
        self.by_label: dict[Requirement, set[str]] = {}  # names of services by their anchors
        self.workloads: dict[str, Series] = {}
        self.tasks: dict[str, TaskRecord] = {}  # by uid; only tasks without constraints of their own
        self.by_owner: dict[str, set[str]] = {}  # uids of these tasks by the workload that created them

    def take(self, service: Series) -> None:
        """Add a service; its anchor is the label that the fewest others have as theirs.

        Often all services of an operator require one label, and only another one tells them apart.
        """
        anchor = min(service.requirements, key=lambda one: len(self.by_label.get(one, ())))
        self.services[service.name] = service
        self.anchors[service.name] = anchor
        self.by_label.setdefault(anchor, set()).add(service.name)

    def give(self, name: str) -> Series | None:
        """Remove a service and return it, None if it is unknown."""
        service = self.services.pop(name, None)
        if service is not None:
            anchor = self.anchors.pop(name)
            self.by_label[anchor].discard(name)
            if not self.by_label[anchor]:
                del self.by_label[anchor]
        return service


class DefaultSpread:
    """Knows the series of a cluster and returns the default constraints of tasks."""

    def __init__(self, again: Callable[[Collection[str]], None] = lambda uids: None) -> None:
        """Take the callback for tasks, by uid, whose constraints may change with a change of a series."""
        self._again = again
        self._namespaces: dict[str, _Namespace] = {}
        self._made: dict[tuple[str, frozenset[Requirement]], tuple[Spread, ...]] = {}

    # Tasks

    def put(self, record: TaskRecord) -> tuple[Spread, ...]:
        """Add or replace a task without constraints of its own, and return its default constraints."""
        found = self._in(record.namespace)
        known = found.tasks.get(record.uid)
        if known is not None and known.owner != record.owner:
            self.drop(known)
        found.tasks[record.uid] = record
        if record.owner:
            found.by_owner.setdefault(record.owner, set()).add(record.uid)
        return self.of(record)

    def drop(self, record: TaskRecord) -> None:
        """Forget a task, if it is known here."""
        found = self._namespaces.get(record.namespace)
        known = None if found is None else found.tasks.pop(record.uid, None)
        if found is None or known is None or not known.owner:
            return
        siblings = found.by_owner[known.owner]
        siblings.discard(known.uid)
        if not siblings:
            del found.by_owner[known.owner]

    def of(self, record: TaskRecord) -> tuple[Spread, ...]:
        """Return the default constraints of a task."""
        found = self._namespaces.get(record.namespace)
        if found is None or not (found.services or found.workloads):
            return ()
        requirements = set(self._of_services(found, record))
        workload = found.workloads.get(record.owner)
        if workload is not None:
            if record.owner.startswith(_REPLICATION_CONTROLLER):  # its labels replace those that services require
                named = {requirement.key for requirement in workload.requirements}
                requirements = {requirement for requirement in requirements if requirement.key not in named}
            requirements.update(workload.requirements)
        return self._constraints(record.namespace, frozenset(requirements)) if requirements else ()

    def _of_services(self, found: _Namespace, record: TaskRecord) -> Iterable[Requirement]:
        labels = record.label_map if found.services else {}
        for key, value in labels.items():
            for name in found.by_label.get(Requirement(key, "In", (value,)), ()):
                asked = found.services[name].requirements
                if LabelSelector(asked).matches(labels):
                    yield from asked

    def _constraints(self, namespace: str, requirements: frozenset[Requirement]) -> tuple[Spread, ...]:
        made = self._made.get((namespace, requirements))
        if made is None:
            selector = PodSelector((namespace,), None, tuple(sorted(requirements)))
            made = tuple(Spread(selector, key, skew, hard=False, default=True) for key, skew in _SKEWS)
            if len(self._made) >= _CACHED_AT_MOST:
                self._made.clear()
            self._made[namespace, requirements] = made
        return made

    # Series

    def service(self, namespace: str, name: str) -> Series | None:
        """Return a service, None if it is unknown."""
        return self._in(namespace).services.get(name)

    def set_service(self, series: Series) -> None:
        """Add or replace a service; a service without a selector has no effect."""
        self._put_service(series.namespace, series.name, series)

    def remove_service(self, namespace: str, name: str) -> None:
        """Forget a service."""
        self._put_service(namespace, name, None)

    def _put_service(self, namespace: str, name: str, series: Series | None) -> None:
        found = self._in(namespace)
        old = found.give(name)
        if series is not None and series.requirements:
            found.take(series)
        asked = [LabelSelector(one.requirements) for one in (old, series) if one is not None and one.requirements]
        # A Python loop over the namespace's tasks, when a service was added, changed or removed.
        labelled = ((uid, record.label_map) for uid, record in found.tasks.items()) if asked else ()
        self._again([uid for uid, labels in labelled if any(selector.matches(labels) for selector in asked)])

    def workload(self, namespace: str, name: str) -> Series | None:
        """Return a workload, None if it is unknown."""
        return self._in(namespace).workloads.get(name)

    def set_workload(self, series: Series) -> None:
        """Add or replace a workload."""
        found = self._in(series.namespace)
        found.workloads[series.name] = series
        self._again(list(found.by_owner.get(series.name, ())))

    def remove_workload(self, namespace: str, name: str) -> None:
        """Forget a workload."""
        found = self._in(namespace)
        found.workloads.pop(name, None)
        self._again(list(found.by_owner.get(name, ())))

    def _in(self, namespace: str) -> _Namespace:
        return self._namespaces.setdefault(namespace, _Namespace())

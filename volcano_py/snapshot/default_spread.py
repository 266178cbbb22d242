"""Default spread constraints: pods without constraints of their own are spread over nodes and zones, per series.

    selector      the labels that all services selecting the pod require, and those that its ReplicationController,
                  ReplicaSet or StatefulSet requires; without any of these there are no constraints
    constraints   host name with a skew of 3, zone with a skew of 5, both ScheduleAnyway

(kube-scheduler v1.36: podtopologyspread/plugin.go systemDefaultConstraints, plugins/helper/spread.go DefaultSelector.
Volcano's nodeorder uses the same.)
"""

from collections.abc import Callable, Collection, Iterable, Mapping
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
    """Services, workloads and tasks of one namespace.

    Each service has an anchor: one of the labels that it requires, which leads from a pod to its services. The rarest
    of these labels leads from a service to its pods.
    """

    __slots__ = ("_anchors", "_by_anchor", "_by_label", "by_owner", "services", "tasks", "workloads")

    def __init__(self) -> None:
        self.services: dict[str, Series] = {}
        self._anchors: dict[str, Requirement] = {}  # by name of a service
        self._by_anchor: dict[tuple[str, str], set[str]] = {}  # names of services by their anchors
        self._by_label: dict[str, dict[str, set[str]]] = {}  # uids of tasks by labels that services require
        self.workloads: dict[str, Series] = {}
        self.tasks: dict[str, TaskRecord] = {}  # by uid; only tasks without constraints of their own
        self.by_owner: dict[str, set[str]] = {}  # uids of these tasks by the workload that created them

    # Services

    def add_service(self, service: Series) -> None:
        """Add a service; its anchor is the label that the fewest others have as theirs.

        Often all services of an operator require one label, and only another one tells them apart.
        """
        anchor = min(service.requirements, key=lambda one: len(self._by_anchor.get(_pair(one), ())))
        self.services[service.name] = service
        self._anchors[service.name] = anchor
        self._by_anchor.setdefault(_pair(anchor), set()).add(service.name)
        for requirement in service.requirements:
            if requirement.key not in self._by_label:
                self._index(requirement.key)

    def remove_service(self, name: str) -> None:
        """Forget a service, if it is known."""
        if self.services.pop(name, None) is None:
            return
        pair = _pair(self._anchors.pop(name))
        self._by_anchor[pair].discard(name)
        if not self._by_anchor[pair]:
            del self._by_anchor[pair]
        if not self.services:
            self._by_label.clear()

    def services_of(self, labels: Mapping[str, str]) -> Iterable[Series]:
        """Yield the services that select pods with these labels."""
        for pair in labels.items() if self.services else ():
            for name in self._by_anchor.get(pair, ()):
                service = self.services[name]
                if LabelSelector(service.requirements).matches(labels):
                    yield service

    def pods_of(self, name: str) -> set[str]:
        """Return the tasks that a service selects, by uid; none if it is unknown."""
        service = self.services.get(name)
        if service is None:
            return set()
        pairs = map(_pair, service.requirements)
        candidates = min((self._by_label[key].get(value, set()) for key, value in pairs), key=len)
        selector = LabelSelector(service.requirements)
        return {uid for uid in candidates if selector.matches(self.tasks[uid].label_map)}

    # Tasks

    def put_task(self, record: TaskRecord) -> None:
        """Add or replace a task."""
        known = self.tasks.get(record.uid)
        if known is not None and (known.owner != record.owner or known.labels != record.labels):
            self.remove_task(known.uid)
            known = None
        self.tasks[record.uid] = record
        if known is not None:
            return
        if record.owner:
            self.by_owner.setdefault(record.owner, set()).add(record.uid)
        for key, value in record.label_map.items() if self._by_label else ():
            if key in self._by_label:
                self._by_label[key].setdefault(value, set()).add(record.uid)

    def remove_task(self, uid: str) -> None:
        """Forget a task, if it is known."""
        known = self.tasks.pop(uid, None)
        if known is None:
            return
        if known.owner:
            _take_out(self.by_owner, known.owner, uid)
        for key, value in known.label_map.items() if self._by_label else ():
            if key in self._by_label:
                _take_out(self._by_label[key], value, uid)

    def _index(self, key: str) -> None:
        """Find the tasks that have a label with this key: a loop over all, once for each key of a service."""
        values = self._by_label[key] = {}
        for uid, record in self.tasks.items():
            if key in record.labels[::2]:
                values.setdefault(record.label_map[key], set()).add(uid)


def _pair(requirement: Requirement) -> tuple[str, str]:
    return requirement.key, requirement.values[0]


def _take_out(sets: dict[str, set[str]], key: str, uid: str) -> None:
    sets[key].discard(uid)
    if not sets[key]:
        del sets[key]


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
        self._in(record.namespace).put_task(record)
        return self.of(record)

    def drop(self, record: TaskRecord) -> None:
        """Forget a task, if it is known here."""
        found = self._namespaces.get(record.namespace)
        if found is not None:
            found.remove_task(record.uid)

    def of(self, record: TaskRecord) -> tuple[Spread, ...]:
        """Return the default constraints of a task."""
        found = self._namespaces.get(record.namespace)
        if found is None or not (found.services or found.workloads):
            return ()
        labels = record.label_map if found.services else {}
        requirements = {one for service in found.services_of(labels) for one in service.requirements}
        workload = found.workloads.get(record.owner)
        if workload is not None:
            if record.owner.startswith(_REPLICATION_CONTROLLER):  # its labels replace those that services require
                named = {requirement.key for requirement in workload.requirements}
                requirements = {requirement for requirement in requirements if requirement.key not in named}
            requirements.update(workload.requirements)
        return self._constraints(record.namespace, frozenset(requirements)) if requirements else ()

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
        changed = found.pods_of(name)
        found.remove_service(name)
        if series is not None and series.requirements:
            found.add_service(series)
            changed |= found.pods_of(name)
        self._again(changed)

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

"""Services and the built-in workloads, as far as they say which pods are theirs."""

from volcano_py.api.types import LabelSelector, ObjectMeta, Wire


class LabelledSpec(Wire, frozen=True):
    """Labels that pods must have, all of them."""

    selector: dict[str, str] | None = None


class Service(Wire, frozen=True):
    """A service."""

    metadata: ObjectMeta
    spec: LabelledSpec = LabelledSpec()


class ReplicationController(Wire, frozen=True):
    """A replication controller."""

    metadata: ObjectMeta
    spec: LabelledSpec = LabelledSpec()


class SelectedSpec(Wire, frozen=True):
    """A selector that pods must meet."""

    selector: LabelSelector | None = None


class ReplicaSet(Wire, frozen=True):
    """A replica set."""

    metadata: ObjectMeta
    spec: SelectedSpec = SelectedSpec()


class StatefulSet(Wire, frozen=True):
    """A stateful set."""

    metadata: ObjectMeta
    spec: SelectedSpec = SelectedSpec()

"""The group ``apps``: replica sets and stateful sets, as far as they say which pods are theirs."""

from volcano_py.api.meta import LabelSelector, ObjectMeta, Wire


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

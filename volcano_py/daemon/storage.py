"""Claims and volumes of the cache, as the steps of binds need them."""

from collections.abc import Callable

from volcano_py.cache.cluster import ClusterCache
from volcano_py.cache.volumes import VolumeChange
from volcano_py.effects.storage import ClaimState, VolumeState
from volcano_py.model.objects import NodeRecord
from volcano_py.model.requirements import Requirement
from volcano_py.model.shape import NodeTerm
from volcano_py.model.volumes import VolumeRecord
from volcano_py.snapshot.node_terms import valid_term

_NAME_FIELD = "metadata.name"


class ShownStorage:
    """What the watch shows of claims and volumes."""

    def __init__(self, cache: ClusterCache) -> None:
        self._cache = cache

    def claim(self, namespace: str, name: str) -> ClaimState | None:
        """Return a claim, None if there is none of this name."""
        found = self._cache.volumes.claim(namespace, name)
        if found is None:
            return None
        return ClaimState(
            found.uid,
            found.resource_version,
            found.volume,
            found.bind_completed,
            found.selected_node,
            found.deleting,
            found.promised_by,
        )

    def volume(self, name: str) -> VolumeState | None:
        """Return a volume, None if there is none of this name."""
        found = self._cache.volumes.volume(name)
        if found is None:
            return None
        ref = found.claim
        return VolumeState(
            found.uid,
            found.resource_version,
            "" if ref is None else f"{ref.namespace}/{ref.name}",
            "" if ref is None else ref.uid,
            found.bound_by_controller,
            found.phase,
            found.deleting,
            found.promised_by,
        )

    def reaches(self, volume: str, node: str) -> bool | None:
        """Say whether a node can reach a volume; None if one of them is not shown."""
        found, record = self._cache.volumes.volume(volume), self._cache.store.nodes.record(node)
        return None if found is None or record is None else is_reachable(found, record)

    def on_change(self, callback: Callable[[str], None]) -> None:
        """Call ``callback`` with the name of each claim (namespace/name) or volume (name) that changes."""

        def tell(change: VolumeChange) -> None:
            callback(f"{change.namespace}/{change.name}" if change.namespace else change.name)

        self._cache.volumes.on_change(tell)


def is_reachable(volume: VolumeRecord, node: NodeRecord) -> bool:
    """Say whether a node matches the node affinity of a volume."""
    terms = volume.node_affinity
    return terms is None or any(_matches(term, node) for term in terms)


def _matches(term: NodeTerm, node: NodeRecord) -> bool:
    """Say what `snapshot.node_terms` says for all nodes at once: an empty or invalid term matches none."""
    if term.empty or not valid_term(term):
        return False
    fields = {_NAME_FIELD: node.name}
    return all(_holds(one, node.labels.get(one.key)) for one in term.expressions) and all(
        _holds(one, fields.get(one.key, "")) for one in term.fields
    )


def _holds(requirement: Requirement, value: str | None) -> bool:
    operator, values = requirement.operator, requirement.values
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    number = _integer(value)
    if number is None:
        return False
    return number > int(values[0]) if operator == "Gt" else number < int(values[0])


def _integer(value: str | None) -> int | None:
    return int(value) if value is not None and value.lstrip("+-").isascii() and value.lstrip("+-").isdigit() else None

"""The filters about volume claims: VolumeRestrictions, VolumeZone and VolumeBinding (kube-scheduler v1.36).

    exclusive   a ReadWriteOncePod claim is used by another pod: no node will do until that pod is gone
    zone        a node with zone or region labels must be in the zones that the labels of bound volumes name
    affinity    a node must match the node affinity of bound volumes
    bind        once a node is selected for a claim, only that node will do; each unbound claim must get an existing
                volume that the node reaches (`volume_matching`), or one must be made for it where its class allows
    space       its driver must have room for it there, if the driver says how much room it has
    missing     the volume of a bound claim must exist

A node that fails `zone` gives none of the reasons after it. The others are VolumeBinding's, which gives at most one of
`affinity` and `missing` and one of `bind` and `space`. A node that is not the selected one gives `bind`; on others, the
first claim that fails gives the reason.
"""

from typing import Final

import numpy as np

from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.session_volumes import SessionVolumes
from volcano_py.model.arrays import Bools
from volcano_py.model.pod_needs import Wanted, Zones
from volcano_py.model.selectors import IN
from volcano_py.model.shape import NodeTerm
from volcano_py.snapshot.columns import NodeColumns

EXCLUSIVE, ZONE, AFFINITY, BIND, SPACE, MISSING = range(6)
N_REASONS: Final = 6
JOINED: Final = ((AFFINITY, BIND), (AFFINITY, SPACE), (BIND, MISSING), (SPACE, MISSING))
"""The reasons that one node may give together: in texts, such a pair is one reason."""
_ZONE_LABELS: Final = {  # label -> the name that took its place
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "",
    "topology.kubernetes.io/zone": "",
}


class ClaimFilter:
    """Where pods with one need may go."""

    def __init__(self, volumes: SessionVolumes, task: TaskInfo, nodes: NodeColumns, *, zone: bool) -> None:
        self._volumes = volumes
        self._need = need = volumes.need_of(task)
        self._nodes = nodes
        self._local = volumes.local(task)
        changes = volumes.binds_claims and self._local is None and volumes.changes_with_others(need)
        self.own_pods_matter = bool(need.exclusive) or changes
        """Whether placing one such pod may change the answer for the next one."""
        self._fixed = np.zeros((N_REASONS, len(nodes)), dtype=bool)
        if zone:
            for reached in need.reached:
                if reached.zones:
                    self._fixed[ZONE] |= ~_zones_row(volumes, reached.zones)
        if volumes.binds_claims:
            for reached in need.reached:
                if reached.missing:
                    self._fixed[MISSING] |= ~self._fixed[AFFINITY]
                elif reached.affinity is not None:
                    out_of_reach = ~volumes.matching.reach.nodes_matching(reached.affinity)
                    self._fixed[AFFINITY] |= out_of_reach & ~self._fixed[MISSING]
        self._version = -1
        self._refused = self._fixed

    @property
    def version(self) -> int:
        """A number that grows whenever an answer may have changed."""
        return self._volumes.version if self.own_pods_matter else 0

    def refused(self) -> Bools:
        """Return which nodes are refused, by reason, shape (6, n_nodes)."""
        if self.version != self._version:
            self._version = self.version
            self._refused = self._evaluate()
        return self._refused

    def allowed(self) -> Bools:
        """Return where such pods may go now, shape (n_nodes,)."""
        return np.asarray(~self.refused().any(axis=0))

    def unresolvable(self) -> Bools:
        """Return which nodes no eviction there could make fit, shape (n_nodes,)."""
        refused = self.refused()
        unresolvable = refused[ZONE:].any(axis=0)
        if refused[EXCLUSIVE].any():
            elsewhere = np.ones(len(self._nodes), dtype=bool)
            holders = [self._volumes.held(key) for key in self._need.exclusive]
            elsewhere[[node for pods in holders for node, count in pods.items() if count > 0]] = False
            unresolvable |= elsewhere
        return np.asarray(unresolvable)

    def _evaluate(self) -> Bools:
        refused = self._fixed.copy()
        for key in self._need.exclusive:
            refused[EXCLUSIVE] |= any(count > 0 for count in self._volumes.held(key).values())
        if self._need.wanted and self._volumes.binds_claims and self._local is None:
            self._unbound(refused)
        refused[AFFINITY:, refused[ZONE]] = False
        return refused

    def _unbound(self, refused: Bools) -> None:
        """Add where claims get no volume; the first claim that gets none gives the reason."""
        wanted, own = self._volumes.wanted_now(self._need)
        matched = self._volumes.matching.on_nodes(wanted, own)
        # Python loops over the claims of one pod, those with a selected node first.
        for one, found in zip(wanted, matched, strict=True):
            if one.selected_node:
                refused[BIND] |= ~found & ~self._is(one.selected_node)
        silent = ~refused[BIND]
        for place in sorted(range(len(wanted)), key=lambda place: not wanted[place].selected_node):
            one = wanted[place]
            possible = self._made(one)
            lacking = silent & ~matched[place]
            refused[BIND] |= lacking & ~possible
            refused[SPACE] |= lacking & possible & ~self._space(one)
            silent &= ~(refused[BIND] | refused[SPACE])

    def _made(self, wanted: Wanted) -> Bools:
        """Return for which nodes a volume may be made, shape (n_nodes,)."""
        found = self._volumes.storage.classes.get(wanted.storage_class)
        if found is None or not found.provisions:
            return np.zeros(len(self._nodes), dtype=bool)
        return self._volumes.matching.reach.nodes_matching(found.topologies or None)

    def _is(self, name: str) -> Bools:
        """Return which nodes have this name, shape (n_nodes,)."""
        named = np.zeros(len(self._nodes), dtype=bool)
        row = self._nodes.statics.row_of.get(name)
        if row is not None:
            named[row] = True
        return named

    def _space(self, wanted: Wanted) -> Bools:
        """Return for which nodes its driver has room for a volume, shape (n_nodes,)."""
        storage = self._volumes.storage
        found = storage.classes.get(wanted.storage_class)
        if found is None or found.provisioner not in storage.drivers_with_capacity:
            return np.ones(len(self._nodes), dtype=bool)
        reach, room = self._volumes.matching.reach, np.zeros(len(self._nodes), dtype=bool)
        values: dict[str, list[str]] = {}  # by label, of the segments that are one value of one label
        # A Python loop over what one driver says about its room: once per topology segment, which may be a node.
        for capacity in storage.capacities.get(wanted.storage_class, ()):
            if capacity.topology is None or capacity.largest is None or capacity.largest < wanted.size:
                continue
            requirements = capacity.topology.requirements
            if len(requirements) == 1 and requirements[0].operator == IN:
                values.setdefault(requirements[0].key, []).extend(requirements[0].values)
            else:
                room |= reach.nodes_matching((NodeTerm(requirements),) if requirements else None)
        for key, wanted_values in values.items():
            room |= reach.nodes_with_any(key, wanted_values)
        return room


def with_pairs(refused: Bools) -> Bools:
    """Return which nodes are refused by reason, each pair of `JOINED` as one more reason, shape (10, n_nodes)."""
    pairs = np.zeros((len(JOINED), refused.shape[1]), dtype=bool)
    if not refused[[AFFINITY, MISSING]].any():  # every pair has one of them
        return np.vstack((refused, pairs))
    singles = refused.copy()
    for pair, (first, second) in zip(pairs, JOINED, strict=True):
        pair[:] = refused[first] & refused[second]
        singles[[first, second]] &= ~pair
    return np.vstack((singles, pairs))


def too_few_local(volumes: SessionVolumes, task: TaskInfo, nodes: NodeColumns) -> Bools | None:
    """Return which nodes have no free local volume for a task, shape (n_nodes,); None if it needs none that is local.

    Local volumes are those of one node. So a gang is placed at once, and only the nodes that it uses are asked again.
    """
    local = volumes.local(task) if volumes.need_of(task).wanted else None
    if local is None:
        return None
    free = local.free if nodes.rows is None else local.free[nodes.rows]
    return np.asarray(free <= (0 if nodes.copies is None else nodes.copies))


def _zones_row(volumes: SessionVolumes, zones: Zones) -> Bools:
    """Return which nodes are in the zones of a volume, shape (n_nodes,)."""

    def ask(view: NodeColumns) -> Bools:
        labelled = np.zeros(len(view), dtype=bool)
        for key in _ZONE_LABELS:
            column = view.label(key)
            if column is not None:
                labelled |= column.codes > 0
        inside = np.ones(len(view), dtype=bool)
        for key, values in zones:
            inside &= _in(view, key, values)
        return np.asarray(inside | ~labelled)

    row: Bools = volumes.static_row(("volume zones", zones), ask)
    return row


def _in(view: NodeColumns, key: str, values: tuple[str, ...]) -> Bools:
    """Return which nodes have one of these values; the label that took the place of an old one will do, too."""
    found = np.zeros(len(view), dtype=bool)
    unlabelled = np.ones(len(view), dtype=bool)
    for name in filter(None, (key, _ZONE_LABELS[key])):
        column = view.label(name)
        if column is not None:
            table = column.table()
            table[[code for code, value in enumerate(column.values) if code and value in values]] = True
            found |= unlabelled & table[column.codes]
            unlabelled &= column.codes == 0
    return found

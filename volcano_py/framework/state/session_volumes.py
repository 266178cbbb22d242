"""The volumes of a session: what pods need, what nodes use, and what this session has promised to whom.

Placing a task promises its unbound claims existing volumes, or lets volumes be made for them; it counts the volumes on
the node, and holds the claims that only one pod may use. Evicting a task frees what it held. Everything goes through
the journal, so an undo restores it. What is promised becomes the steps that prepare a bind (`Bind.prepare`).
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final

import numpy as np

from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.local_volumes import LocalVolumes
from volcano_py.framework.state.volume_matching import NONE, VolumeMatching
from volcano_py.framework.state.volume_reach import ReachCache, StaticRow, VolumeReach
from volcano_py.model.arrays import Bools, Floats, Rows
from volcano_py.model.decisions import BindClaim, PrepareStep, ProvisionClaim
from volcano_py.model.pod_needs import NO_NEED, PodNeed, Wanted
from volcano_py.model.rejections import Reason
from volcano_py.model.volumes import ClaimKey
from volcano_py.snapshot.columns import NodeColumns
from volcano_py.snapshot.journal import Journal
from volcano_py.snapshot.volume_columns import SnapshotVolumes

NEED: Final = "volume claims"
"""Under this name tasks have the number of their need as an equivalence key."""


class SessionVolumes:
    """What claims need and get in one session."""

    def __init__(
        self, found: SnapshotVolumes, nodes: NodeColumns, journal: Journal, cache: ReachCache, static_row: StaticRow
    ) -> None:
        self.storage = found
        self.static_row = static_row
        self.binds_claims = False
        """Whether claims get volumes when tasks get nodes; a plugin switches it on."""
        self.checks_zones = False
        """Whether the volumes of claims must be in the zone of the node; a plugin switches it on."""
        self.checks_limits = False
        """Whether nodes can use only so many volumes; a plugin switches it on."""
        self.version = 0
        """Grows whenever a volume, claim or node is promised or freed."""
        self.used: Floats = found.limits.used.copy()
        """The volumes that nodes use by CSI driver with a limit, shape (n_drivers, n_nodes)."""
        self.taken: Bools = np.zeros(len(found.columns), dtype=bool)
        """The volumes that this session has promised, shape (n_volumes,)."""
        self._journal = journal
        self._names = nodes.statics.names
        reach = VolumeReach(cache, found.columns, nodes, static_row)
        self.matching = VolumeMatching(found.columns, found.reserved, reach, self.taken)
        """Which existing volumes claims would get."""
        self.driver_row = {driver: row for row, driver in enumerate(found.limits.drivers)}
        """The row of each driver with a limit."""
        row_of = nodes.statics.row_of
        self._claims = list(found.holders)
        self._claim_number = {key: number for number, key in enumerate(self._claims)}
        self._holders = [_rows(Counter(nodes_of_pods), row_of) for nodes_of_pods in found.holders.values()]
        self._disks = sorted(found.disks)
        self._disk_number = {disk: number for number, disk in enumerate(self._disks)}
        self._pods_with_disk = [_rows(found.disks[disk], row_of) for disk in self._disks]
        self._driver_of = {one.claim: one.driver for need in found.needs for one in need.shared}
        self._shared_claims = sorted(
            {wanted.shared for need in found.needs for wanted in need.wanted if wanted.shared is not None}
        )
        self._shared_number = {key: number for number, key in enumerate(self._shared_claims)}
        # What claims of several pods have got in this session: a volume, or a node for which one is made; NONE.
        self._got_volume = np.full(len(self._shared_claims), NONE, dtype=np.intp)
        self._got_node = np.full(len(self._shared_claims), NONE, dtype=np.intp)
        self._local: dict[int, LocalVolumes | None] = {}  # by number of the need
        self._promised: dict[int, tuple[int, ...]] = {}  # task row -> volumes, as its last placement chose them

    # Needs

    def need_of(self, task: TaskInfo) -> PodNeed:
        """Return what the claims of tasks like this one need."""
        number = task.equivalence_key(NEED)
        return self.storage.needs[number] if number else NO_NEED

    def refusal(self, task: TaskInfo) -> Reason | None:
        """Return why no node will do for the claims of tasks like this one, None if one may.

        If claims get no volumes, the other filters about claims still refuse those that they cannot read.
        """
        need = self.need_of(task)
        if self.binds_claims or need.refusal is None:
            return need.refusal
        by_zone = need.zone_refusal if self.checks_zones else None
        return by_zone or (need.limits_refusal if self.checks_limits else None)

    def wanted_now(self, need: PodNeed) -> tuple[list[Wanted], list[int]]:
        """Return the unbound claims of a need, and the volumes that this session has promised them, `NONE` for none.

        Only claims of several pods have been promised anything.
        """
        wanted, own = list(need.wanted), [NONE] * len(need.wanted)
        for place, one in enumerate(need.wanted):
            if one.shared is not None:
                number = self._shared_number[one.shared]
                own[place] = int(self._got_volume[number])
                if self._got_node[number] != NONE:
                    wanted[place] = one._replace(selected_node=self._names[self._got_node[number]])
        return wanted, own

    def local(self, task: TaskInfo) -> LocalVolumes | None:
        """Return the volumes for tasks with one unbound claim that must be local, None for other tasks."""
        number = task.equivalence_key(NEED)
        if number not in self._local:
            self._local[number] = self._find_local(self.storage.needs[number])
        return self._local[number]

    def _find_local(self, need: PodNeed) -> LocalVolumes | None:
        if len(need.wanted) != 1 or not self.binds_claims:
            return None
        wanted = need.wanted[0]
        known = self.storage.classes.get(wanted.storage_class)
        if wanted.shared is not None or wanted.selected_node or known is None or known.provisions:
            return None
        volumes = self.matching.candidates(wanted)
        nodes = self.matching.reach.only_nodes(volumes)
        return None if nodes is None else LocalVolumes(volumes, nodes, self.taken, len(self._names))

    def changes_with_others(self, need: PodNeed) -> bool:
        """Say whether where tasks may go depends on what is promised in this session."""
        return bool(need.exclusive) or any(
            wanted.shared is not None or (not wanted.selected_node and len(self.matching.candidates(wanted)))
            for wanted in need.wanted
        )

    def held(self, claim: ClaimKey) -> dict[int, int]:
        """Return how many pods on each node use a claim of several pods that a need names."""
        return self._holders[self._claim_number[claim]]

    def disk_conflicts(self, need: PodNeed) -> Bools:
        """Return on which nodes a pod uses a disk that conflicts with one of a need, shape (n_nodes,)."""
        found = np.zeros(len(self._names), dtype=bool)
        # Python loops over the disks that pods name without claims, which are rare.
        for disk in need.disks:
            for number, other in enumerate(self._disks):
                if disk.conflicts(other):
                    found[[node for node, pods in self._pods_with_disk[number].items() if pods > 0]] = True
        return found

    def missing_shared(self, need: PodNeed, rows: Rows | None) -> Floats:
        """Return how many volumes of several pods a task would add to nodes, shape (n_drivers, n_nodes)."""
        added = np.zeros(self.used.shape if rows is None else (len(self.used), len(rows)))
        for shared in need.shared:
            there = np.zeros(self.used.shape[1], dtype=bool)
            there[[node for node, pods in self.held(shared.claim).items() if pods]] = True
            added[self.driver_row[shared.driver]] += ~(there if rows is None else there[rows])
        return added

    # Placing and evicting

    def placed(self, task: TaskInfo, tasks: Rows, nodes: Rows) -> None:
        """Count tasks of one class on their nodes, and promise volumes to their claims."""
        need = self.need_of(task)
        if need is NO_NEED:
            return
        self._move(need, nodes, 1)
        if self.binds_claims and need.wanted and self.changes_with_others(need):
            # A Python loop over the placed tasks, only of those whose claims may get existing volumes.
            local = self.local(task)
            for row, node in zip(tasks.tolist(), nodes.tolist(), strict=True):
                if local is None:
                    self._promise(need, row, node)
                else:
                    self._promise_local(local, row, node)

    def freed(self, task: TaskInfo, tasks: Rows, nodes: Rows) -> None:
        """Count tasks of one class out, and take back what their claims were promised.

        What claims of several pods were promised stays promised: another pod may have been placed by it.
        """
        need = self.need_of(task)
        if need is NO_NEED:
            return
        self._move(need, nodes, -1)
        for row in tasks.tolist() if need.wanted else ():
            for one, volume in zip(need.wanted, self._promised.get(row, ()), strict=False):
                if volume != NONE and one.shared is None:
                    self._journal.tell(self._take, volume, [row], -1)

    def _move(self, need: PodNeed, nodes: Rows, count: int) -> None:
        journal = self._journal
        if need.attached:
            distinct, counts = np.unique(nodes, return_counts=True)
            delta = np.zeros(len(self.used))
            for driver, volumes in need.attached:
                delta[self.driver_row[driver]] = count * volumes
            journal.add(self.used, distinct, delta[:, None] * counts)
        for disk in need.disks:
            journal.tell(self._use, self._disk_number[disk], nodes.tolist(), count)
        for key in sorted({*need.exclusive, *(one.claim for one in need.shared)}):
            journal.tell(self._hold, self._claim_number[key], nodes.tolist(), count)

    def _use(self, number: int, nodes: list[int], count: int) -> None:
        """Count pods that use a disk."""
        for node in nodes:
            self._pods_with_disk[number][node] = self._pods_with_disk[number].get(node, 0) + count

    def _hold(self, number: int, nodes: list[int], count: int) -> None:
        """Count pods that use a claim of several pods; its volume counts on a node while any of them is there."""
        self.version += 1
        pods, driver = self._holders[number], self._driver_of.get(self._claims[number])
        for node in nodes:
            before = pods.get(node, 0)
            pods[node] = before + count
            if driver is not None:
                self.used[self.driver_row[driver], node] += (before + count > 0) - (before > 0)

    def _promise(self, need: PodNeed, task: int, node: int) -> None:
        wanted, own = self.wanted_now(need)
        volumes = self.matching.on_node(wanted, own, node)
        self._promised[task] = tuple(volumes)
        for one, promised, volume in zip(wanted, own, volumes, strict=True):
            if volume not in (NONE, promised):
                self._journal.tell(self._take, volume, [task], 1)
            if one.shared is not None and promised == NONE and not one.selected_node:
                self._journal.tell(self._get, self._shared_number[one.shared], [volume, node], 1)

    def _promise_local(self, local: LocalVolumes, task: int, node: int) -> None:
        volume = local.best(node, self.taken)
        self._promised[task] = (volume,)
        if volume != NONE:
            self._journal.tell(self._take, volume, [task], 1)

    def _take(self, volume: int, _: list[int], count: int) -> None:
        self.version += 1
        self.taken[volume] = count > 0
        for local in self._local.values():
            if local is not None:
                local.moved(volume, count)

    def _get(self, number: int, got: list[int], count: int) -> None:
        self.version += 1
        volume, node = got
        self._got_volume[number] = volume if count > 0 else NONE
        self._got_node[number] = node if count > 0 and volume == NONE else NONE

    # Committing

    def prepares(self, task: TaskInfo) -> bool:
        """Say whether binds of tasks like this one have to be prepared."""
        return self.binds_claims and bool(self.need_of(task).wanted)

    def steps(self, task: int, node: int) -> tuple[PrepareStep, ...]:
        """Return how the bind of a placed task is prepared."""
        claims = self.storage.wanted[task]
        volumes = self._promised.get(task) or (NONE,) * len(claims)
        steps: list[PrepareStep] = []
        for claim, volume in zip(claims, volumes, strict=True):
            record = None if volume == NONE else self.storage.columns.records[volume]
            if record is None:
                steps.append(ProvisionClaim(claim.namespace, claim.name, claim.uid, self._names[node]))
            else:
                steps.append(BindClaim(claim.namespace, claim.name, claim.uid, record.name))
        return tuple(steps)


def _rows(counts: Mapping[str, int], row_of: Mapping[str, int]) -> dict[int, int]:
    """Return counts by node as counts by row of the node; nodes that are not there do not count."""
    return {row_of[name]: count for name, count in counts.items() if name in row_of}

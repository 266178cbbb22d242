"""What volumes a node can use: NodeVolumeLimits and, for disks without claims, VolumeRestrictions.

NodeVolumeLimits: how many volumes of a CSI driver a node can use (kube-scheduler v1.36, nodevolumelimits/csi).

A node is refused if the volumes that it uses and those that the pod adds are more than the driver allows there. A
volume that a pod on the node uses already is not added. Drivers without a limit do not count.
"""

import numpy as np

from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.session_volumes import SessionVolumes
from volcano_py.model.arrays import Bools
from volcano_py.snapshot.columns import NodeColumns


def too_many_volumes(volumes: SessionVolumes, task: TaskInfo, nodes: NodeColumns) -> Bools | None:
    """Return which nodes cannot use the volumes of a task, shape (n_nodes,); None if it adds none that is limited."""
    need = volumes.need_of(task)
    if not need.attached and not need.shared:
        return None
    rows = nodes.rows
    used = volumes.used if rows is None else volumes.used[:, rows]
    most = volumes.storage.limits.most if rows is None else volumes.storage.limits.most[:, rows]
    own = np.zeros(len(used))
    for driver, count in need.attached:
        own[volumes.driver_row[driver]] = count
    copies = 1 if nodes.copies is None else nodes.copies + 1
    added = own[:, None] * copies
    if need.shared:
        added = added + volumes.missing_shared(need, rows)
    return np.asarray(((added > 0) & (used + added > most)).any(axis=0))


def disks_taken(volumes: SessionVolumes, task: TaskInfo, nodes: NodeColumns) -> Bools:
    """Return on which nodes another pod uses a disk that the pod names itself, shape (n_nodes,) (VolumeRestrictions).

    Pods that only read a disk may share it on a node.
    """
    need = volumes.need_of(task)
    taken = volumes.disk_conflicts(need)
    taken = taken if nodes.rows is None else taken[nodes.rows]
    if nodes.copies is not None and any(disk.conflicts(disk) for disk in need.disks):
        taken = taken | (nodes.copies > 0)
    return np.asarray(taken)

"""Who says that pods are of one series: services, and the workloads that make pods.

Kube-scheduler spreads the pods of a series that have no topology spread constraints of their own (its system defaults).
"""

from typing import NamedTuple

from volcano_py.model.requirements import Requirement


class Series(NamedTuple):
    """One service or workload, and the labels of its pods."""

    namespace: str
    name: str  # of a workload with its kind before: ReplicaSet/web, see TaskRecord.owner
    requirements: tuple[Requirement, ...]  # sorted; () says nothing

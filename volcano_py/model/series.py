"""Series of pods: the pods of one service, or of one workload that creates pods.

Kube-scheduler spreads the pods of a series by its system defaults if they have no topology spread constraints of their
own.
"""

from typing import NamedTuple

from volcano_py.model.requirements import Requirement


class Series(NamedTuple):
    """One service or workload, with the requirements on the labels of its pods."""

    namespace: str
    name: str  # a workload's name starts with its kind: ReplicaSet/web, see TaskRecord.owner
    requirements: tuple[Requirement, ...]  # sorted; () selects no pods

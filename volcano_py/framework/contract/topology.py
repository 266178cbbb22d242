"""Placement by network topology: what the framework asks, and what plugins see of a gang and of the domains."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

from volcano_py.framework.contract.extension_point import ExtensionPoint
from volcano_py.framework.state.domain_sums import DomainSums
from volcano_py.framework.state.info import JobInfo
from volcano_py.model.arrays import Bools, Floats, Ints, Rows
from volcano_py.snapshot.domains import Domains


@dataclass(frozen=True, eq=False)
class Part:
    """The tasks that stay together: one sub-group, or a whole job without policies for sub-groups."""

    job: JobInfo
    name: str
    """Of the sub-group, or of the job."""
    tasks: Rows
    """All tasks, whatever their status."""
    request: Floats
    """What its waiting tasks request together, shape (n_resources,)."""


class DomainView:
    """The domains of a session with sums over their nodes, computed when they are read."""

    def __init__(self, domains: Domains, sums: DomainSums, counts: Ints) -> None:
        """Take the domains, their sums, and the number of tasks of the part on each node (n_nodes,)."""
        self.domains = domains
        self._sums = sums
        self._counts = counts

    def __len__(self) -> int:
        return len(self.domains)

    @property
    def allocatable(self) -> Floats:
        """What the nodes of each domain offer to pods, shape (n_resources, n_domains), read only."""
        return self._sums.allocatable

    @property
    def used(self) -> Floats:
        """What tasks hold on the nodes of each domain, terminating ones included, (n_resources, n_domains), read only."""
        return self._sums.used()

    @cached_property
    def tasks(self) -> Floats:
        """How many tasks of the part each domain has, shape (n_domains,)."""
        return self.domains.sums(self._counts.astype(float))


class TierLimits(ExtensionPoint):
    """Are the tiers that a job or a sub-group names limits for its domain? Rule: any says so.

    Without such a plugin, topologies have no effect (Volcano: HyperNodeGradientForJob and ForSubJob).
    """

    switch = "enabledHyperNodeGradient"

    @abstractmethod
    def most_domains(self) -> int:
        """Return how many domains of one tier are tried at most when others are evicted for a gang."""


class DomainOrder(ExtensionPoint):
    """How good is the domain for the gang, or for one of its sub-groups? Rule: sum (Volcano: HyperNodeOrder)."""

    switch = "enabledHyperNodeOrder"

    @abstractmethod
    def domain_order(self, part: Part, domains: DomainView) -> Floats:
        """Return one score per domain, shape (n_domains,); the best one is tried first, within a tier."""


class NearOrder(ExtensionPoint):
    """How near is the node to the other tasks of its gang or sub-group? Rule: sum, with the scores of `NodeOrder`.

    The framework asks only about tasks whose job or sub-group has a topology, and asks again after every placement
    that changes an argument.
    """

    switch = "enableNodeOrder"

    @abstractmethod
    def near_order(self, part: Part, domains: Domains, begun: int, counts: Ints, group: Bools) -> Floats:
        """Return scores of a group of feasible nodes, shape (n_nodes,); those of other nodes are ignored.

        ``begun`` is the lowest domain that contains all tasks of the part that have a node. ``counts`` are the numbers
        of these tasks by leaf, shape (n_domains,). More tasks in a leaf must only make its nodes better.
        """

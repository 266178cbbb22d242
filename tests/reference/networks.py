"""Networks and gangs at random, and a plain reading of what topologies and sub-groups ask for."""

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import product
from random import Random
from typing import Any

from volcano_py.testing import a_hyper_node, a_job, a_node, a_pod
from volcano_py.testing.objects import Job

PART = "volcano.sh/partition-id"
CORES = 4
TOP = "the whole cluster"


@dataclass
class Network:
    """Nodes with four cores, some of them used, in racks, rows and a hall."""

    free: dict[str, int] = field(default_factory=dict)  # node -> cores
    domains: dict[str, tuple[int, set[str]]] = field(default_factory=dict)  # name -> tier, nodes
    objects: list[Any] = field(default_factory=list)

    @classmethod
    def at_random(cls, rng: Random, *, overlap: bool = False) -> "Network":
        """Build one to three rows of racks; some nodes are in no rack, and with overlap some are in two."""
        found = cls()
        rows = rng.randint(1, 3)
        for row in range(rows):
            racks = []
            for rack in range(rng.randint(1, 3)):
                name = f"rack-{row}-{rack}"
                nodes = [found._node(f"{name}-n{index}", rng) for index in range(rng.randint(1, 3))]
                if overlap and found.free and rng.random() < 0.3:
                    nodes.append(rng.choice(sorted(found.free)))
                found._domain(name, 1, set(nodes), nodes=sorted(set(nodes)))
                racks.append(name)
            below = set[str]().union(*(found.domains[name][1] for name in racks))
            found._domain(f"row-{row}", 2, below, children=racks)
        for index in range(rng.randint(0, 2)):
            found._node(f"lone-n{index}", rng)
        found.top_tier = 3
        if rows > 1 and rng.random() < 0.5:
            everything = set[str]().union(*(nodes for tier, nodes in found.domains.values() if tier == 2))
            found._domain("hall", 3, everything, children=[f"row-{row}" for row in range(rows)])
            found.top_tier = 4
        found.domains[TOP] = (found.top_tier, set(found.free))
        return found

    top_tier: int = 3

    def _node(self, name: str, rng: Random) -> str:
        used = rng.randint(0, CORES)
        self.free[name] = CORES - used
        self.objects.append(a_node(name, cpu=CORES))
        if used:
            self.objects.append(a_pod(f"old-{name}", cpu=used, node=name, scheduler="other"))
        return name

    def _domain(self, name: str, tier: int, below: set[str], **members: Any) -> None:
        self.domains[name] = (tier, below)
        self.objects.append(a_hyper_node(name, tier, **members))

    def allowed(self, tier: int) -> list[set[str]]:
        """Return the nodes of every domain up to a tier."""
        return [nodes for own, nodes in self.domains.values() if own <= tier]

    def room(self, nodes: set[str], cpu: int) -> int:
        """Return how many pods of so many cores fit on nodes."""
        return sum(self.free[node] // cpu for node in nodes)


@dataclass(frozen=True)
class Wish:
    """One gang: equal pods in one role, perhaps in partitions."""

    name: str
    pods: int
    cpu: int
    least: int
    topology: dict[str, Any] | None = None
    size: int = 0  # of partitions, 0 for none
    least_groups: int = 0
    below: dict[str, Any] | None = None  # topology of partitions

    @classmethod
    def at_random(cls, rng: Random, name: str, top_tier: int) -> "Wish":
        size = rng.choice([0, 0, 1, 2, 3])
        groups = rng.randint(1, 3)
        pods = size * groups if size else rng.randint(1, 8)
        return cls(
            name,
            pods,
            rng.randint(1, 3),
            rng.randint(1, pods),
            some_topology(rng, top_tier),
            size,
            rng.randint(0, groups) if size else 0,
            some_topology(rng, top_tier) if size else None,
        )

    def job(self, **more: Any) -> Job:
        """Return the job; further arguments are those of `a_job`."""
        policy = {"name": "w", "matchLabelKeys": [PART], "subGroupSize": self.size, "minSubGroups": self.least_groups}
        policy |= {} if self.below is None else {"networkTopology": self.below}
        spec = {} if self.topology is None else {"networkTopology": self.topology}
        spec |= {"subGroupPolicy": [policy]} if self.size else {}
        pods = {"tasks": self.pods, "cpu": self.cpu, "partition_size": self.size}
        return a_job(self.name, min_available=self.least, group_spec=spec, **pods, **more)

    def groups(self, placed: dict[str, str]) -> dict[int, list[str]]:
        """Return the nodes of its placed pods by partition."""
        found = defaultdict(list)
        for pod, node in placed.items():
            name, _, index = pod.rpartition("-")
            if name == self.name:
                found[int(index) // self.size if self.size else 0].append(node)
        return dict(found)

    def problems(self, network: Network, placed: dict[str, str]) -> list[str]:
        """Return what is wrong with where its pods are."""
        groups = self.groups(placed)
        nodes = [node for found in groups.values() for node in found]
        if not nodes:
            return []
        found = []
        if not self._together(network, self.topology, nodes):
            found.append(f"{self.name} with {self.topology} is on {nodes}")
        for number, mine in groups.items() if self.size else ():
            if not self._together(network, self.below, mine):
                found.append(f"{self.name} partition {number} with {self.below} is on {mine}")
            if len(mine) < self.size:
                found.append(f"{self.name} has {len(mine)} pods of partition {number}, which needs {self.size}")
        if len(nodes) < self.least:
            found.append(f"{self.name} has {len(nodes)} pods and needs {self.least}")
        if len(groups) < self.least_groups:
            found.append(f"{self.name} has {len(groups)} partitions and needs {self.least_groups}")
        return found

    @staticmethod
    def _together(network: Network, topology: dict[str, Any] | None, nodes: list[str]) -> bool:
        tier = hard_tier(topology)
        return tier is None or any(set(nodes) <= domain for domain in network.allowed(tier))

    def fits(self, network: Network) -> bool:
        """Say whether it could have its minimum in an empty world: every way to give partitions a domain is tried."""
        whole = network.top_tier if hard_tier(self.topology) is None else hard_tier(self.topology)
        if not self.size:
            return any(network.room(nodes, self.cpu) >= self.least for nodes in network.allowed(whole or 0))
        own = network.top_tier if hard_tier(self.below) is None else hard_tier(self.below)
        groups = max(self.least_groups, -(-self.least // self.size))
        return any(
            self._divided(network, [nodes & domain for domain in network.allowed(own or 0)], groups)
            for nodes in network.allowed(whole or 0)
        )

    def _divided(self, network: Network, choices: list[set[str]], groups: int) -> bool:
        """Try every choice of one domain for each partition; pods go to its nodes one by one, the emptiest first.

        The domains of a network without overlap are nested, so it is enough to fill the smallest ones first.
        """
        for chosen in product(range(len(choices)), repeat=groups):
            free = {node: count // self.cpu for node, count in network.free.items()}
            for which in sorted(chosen, key=lambda index: len(choices[index])):
                need = self.size
                for node in sorted(choices[which]):
                    taken = min(need, free[node])
                    free[node] -= taken
                    need -= taken
                if need:
                    break
            else:
                return True
        return False


def hard_tier(topology: dict[str, Any] | None) -> int | None:
    """Return the highest tier that a topology allows, None if it allows every one."""
    return None if topology is None or topology["mode"] == "soft" else int(topology["highestTierAllowed"])


def some_topology(rng: Random, top_tier: int) -> dict[str, Any] | None:
    mode = rng.choice(["hard", "hard", "soft", ""])
    if not mode:
        return None
    return {"mode": mode, **({"highestTierAllowed": rng.randint(1, top_tier)} if mode == "hard" else {})}


def around(network: Network, nodes: set[str]) -> set[str]:
    """Return the nodes of the first domain, by tier and name, that has all these."""
    order = sorted(network.domains, key=lambda name: (network.domains[name][0], name))
    return next(network.domains[name][1] for name in order if nodes <= network.domains[name][1])

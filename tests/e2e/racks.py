"""A network for one test: tainted nodes in racks, racks in rows, and a hall above them, each with its HyperNode.

hall (tier 3) ── row 0 (tier 2) ──┬── rack 0-0 (tier 1) ── nodes
                                  └── rack 0-1
                 row 1 ─────────────── ...
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tests.controlplane.cluster import Cluster
from tests.e2e.vcjobs import template
from volcano_py.testing import a_hyper_node, manifest

HYPER_NODES = "/apis/topology.volcano.sh/v1alpha1/hypernodes"
POOL, RACK = "e2e.volcano-py/pool", "e2e.volcano-py/rack"
TAINT = "e2e.volcano-py/reserved"
TOLERATIONS = [{"key": TAINT, "operator": "Exists", "effect": "NoSchedule"}]
ROW_TIER, HALL_TIER = "row", "hall"
"""Names of tiers; racks have none."""

MakeNodes = Callable[..., list[str]]


class Racks:
    """The nodes of one test and their HyperNodes, which `paths` names."""

    def __init__(self, cluster: Cluster, make_nodes: MakeNodes, *rows: int, nodes: int = 2, cpu: int = 2) -> None:
        """Build rows of so many racks each, without a hall if there is one row alone."""
        self._cluster = cluster
        self._make_nodes = make_nodes
        self.stem = f"net-{secrets.token_hex(3)}"
        self.nodes: dict[str, list[str]] = {}
        """The nodes of each rack."""
        self._rows: dict[str, str] = {}
        self.paths: list[str] = []
        for number, racks in enumerate(rows):
            for index in range(racks):
                self.add_rack(f"{number}-{index}", f"row-{number}", nodes, cpu)
            self._create(f"row-{number}", 2, ROW_TIER, [f"{number}-{index}" for index in range(racks)])
        if len(rows) > 1:
            self._create("hall", 3, HALL_TIER, [f"row-{number}" for number in range(len(rows))])

    @property
    def selector(self) -> dict[str, str]:
        """The selector of pods that run here."""
        return {POOL: self.stem}

    def add_rack(self, name: str, row: str, nodes: int, cpu: int) -> None:
        """Add a rack; its nodes are members of its HyperNode by their label."""
        labels = {POOL: self.stem, RACK: f"{self.stem}-{name}"}
        self.nodes[name] = self._make_nodes(nodes, cpu=cpu, labels=labels, taints=[f"{TAINT}=training:NoSchedule"])
        self._rows[name] = row
        rack = a_hyper_node(f"{self.stem}-{name}", 1, labels={RACK: f"{self.stem}-{name}"})
        self._post(manifest(rack))

    def template(self, cpu: str = "1", **more: Any) -> dict[str, Any]:
        """Return the template of pods that tolerate the taint."""
        return template(cpu=cpu, selector=self.selector, tolerations=TOLERATIONS, **more)

    def racks(self, pods: Iterable[Mapping[str, Any]]) -> set[str]:
        """Return the racks of pods; each has a node."""
        of = {node: rack for rack, nodes in self.nodes.items() for node in nodes}
        return {of[pod["spec"]["nodeName"]] for pod in pods}

    def rows(self, pods: Iterable[Mapping[str, Any]]) -> set[str]:
        """Return the rows of pods."""
        return {self._rows[rack] for rack in self.racks(pods)}

    def remove(self) -> None:
        """Delete the HyperNodes."""
        for path in self.paths:
            self._cluster.request("DELETE", path)

    def _create(self, name: str, tier: int, tier_name: str, children: Sequence[str]) -> None:
        below = [f"{self.stem}-{child}" for child in children]
        self._post(manifest(a_hyper_node(f"{self.stem}-{name}", tier, children=below, tier_name=tier_name)))

    def _post(self, body: Mapping[str, Any]) -> None:
        self._cluster.request("POST", HYPER_NODES, body)
        self.paths.append(f"{HYPER_NODES}/{body['metadata']['name']}")


def hard(tier: int | str) -> dict[str, Any]:
    """Return a hard topology, up to a tier by its number or name."""
    key = "highestTierAllowed" if isinstance(tier, int) else "highestTierName"
    return {"mode": "hard", key: tier}


SOFT: Mapping[str, Any] = {"mode": "soft"}

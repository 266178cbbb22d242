"""What plugins say they depend on holds: gangs placed at once go where their tasks would go one by one."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.framework.sessions import a_session
from tests.reference.busy import busy_world
from tests.reference.furnished import measured, with_node_groups, with_racks, with_topology, with_usage
from tests.reference.world import GPU
from volcano_py.framework.contract import extension_points
from volcano_py.framework.contract.extension_points import NodeOrder
from volcano_py.framework.contract.plugin import DependsOn, Plugin
from volcano_py.framework.state.info import TaskInfo
from volcano_py.model.arrays import Floats
from volcano_py.plugins import PLUGINS
from volcano_py.snapshot.columns import NodeColumns

WORLDS: dict[str, Callable[[int], Any]] = {
    "network-topology-aware": with_racks,
    "nodegroup": with_node_groups,
    "task-topology": with_topology,
    "usage": lambda number: measured(*with_usage(number)),
}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "nodegroup": {"strict": False},
    "resource-strategy-fit": {
        "resources": {"cpu": {"type": "MostAllocated", "weight": 1}, "memory": {"type": "LeastAllocated", "weight": 2}},
        "sra": {"enable": True, "resources": GPU, "weight": 3},
        "proportional": {"enable": True, "resources": GPU, "resourceProportion": {f"{GPU}.cpu": 0.5}},
    },
    "usage": {"estimator": {"risk_threshold": 0.5, "risk_factor": 1.5}},
}
ABOUT_NODES = sorted(
    name
    for name, plugin in PLUGINS.items()
    if issubclass(plugin, extension_points.Predicate | extension_points.NodeOrder)
)


class OneByOne(Plugin, NodeOrder):
    """Has no opinion, and says that it may depend on anything, so that every task is placed by itself."""

    name = "one-by-one"
    depends_on = DependsOn.OTHER_NODES

    def node_order(self, task: TaskInfo, nodes: NodeColumns) -> Floats:
        return np.zeros(len(nodes))


def placed(name: str, number: int, *others: Plugin) -> list[int]:
    """Place all pending tasks, those of one kind and job at once; return the node row of every task."""
    plugin = PLUGINS[name](PLUGINS[name].parse(ARGUMENTS.get(name, {}), lambda text: None))
    ssn = a_session(WORLDS.get(name, busy_world)(number), plugin, *others)
    for row in ssn.state.jobs.present().tolist():
        tasks = ssn.hooks.pending.of(row)
        for shape in dict.fromkeys(ssn.state.tasks.shape[tasks].tolist()):
            ssn.placement.place(ssn.statement(), row, shape, tasks[ssn.state.tasks.shape[tasks] == shape])
    found: list[int] = ssn.state.tasks.node.tolist()
    return found


@pytest.mark.parametrize("name", ABOUT_NODES)
def test_placing_many_at_once_equals_placing_one_by_one_for_every_plugin(name: str) -> None:
    for number in range(20):
        assert placed(name, number) == placed(name, number, OneByOne()), f"world {number}"

"""Whole cycles under Volcano's default configuration."""

from typing import ClassVar

import numpy as np
import pytest

from tests.reference.allocation import Rules
from tests.reference.busy import busy_world
from tests.reference.default_conf import expected_binds
from tests.scheduler.running import a_policy, cycle
from volcano_py.conf.defaults import BUILT_IN_CONF
from volcano_py.framework.contract.extension_points import NodeOrder
from volcano_py.framework.contract.plugin import DependsOn, Plugin
from volcano_py.framework.state.info import TaskInfo
from volcano_py.model.arrays import Floats
from volcano_py.plugins import PLUGINS
from volcano_py.snapshot.columns import NodeColumns

WITH_BINPACK = BUILT_IN_CONF + "  - name: binpack\n"


class Recompute(Plugin, NodeOrder):
    """Has no opinion, but says that it may depend on anything: all is recomputed for every task."""

    name = "recompute"
    depends_on: ClassVar = DependsOn.OTHER_NODES

    def node_order(self, task: TaskInfo, nodes: NodeColumns) -> Floats:
        return np.zeros(len(nodes))


@pytest.mark.parametrize(
    ("conf", "rules"),
    [
        pytest.param(BUILT_IN_CONF, Rules(), id="built-in"),
        pytest.param(WITH_BINPACK, Rules(binpack=1), id="with-binpack"),
        pytest.param(BUILT_IN_CONF.replace("  - name: overcommit\n", ""), Rules(overcommit=False), id="no-overcommit"),
        pytest.param(
            BUILT_IN_CONF.replace("name: proportion", "{name: proportion, enableJobEnqueued: false}"),
            Rules(quota=False),
            id="no-quota",
        ),
        pytest.param(
            BUILT_IN_CONF.replace("name: proportion", "{name: proportion, enabledAllocatable: false}"),
            Rules(allocatable=False),
            id="overused-only",
        ),
    ],
)
def test_a_cycle_binds_what_one_by_one_greedy_binds(conf: str, rules: Rules) -> None:
    policy = a_policy(conf)
    for number in range(80):
        world = busy_world(number)
        assert cycle(world, policy).binds == expected_binds(world, rules), f"busy_world({number})"


@pytest.mark.parametrize("seed", [0, 60, 120])
def test_the_heap_decides_what_a_full_recomputation_for_every_task_decides(seed: int) -> None:
    heap = a_policy(WITH_BINPACK)
    tables = {"plugins": {**PLUGINS, Recompute.name: Recompute}}
    recompute = a_policy(WITH_BINPACK + "  - name: recompute\n", **tables)
    for number in range(seed, seed + 60):
        world = busy_world(number)
        one, other = cycle(world, heap, seed=seed), cycle(world, recompute, seed=seed)
        assert one.binds == other.binds, f"busy_world({number})"
        assert one.messages == other.messages, f"busy_world({number})"

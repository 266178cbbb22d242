"""Whole cycles under Volcano's default configuration."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference.allocation import Rules
from tests.reference.default_conf import expected_binds
from tests.reference.strategies import worlds
from tests.reference.world import World, amounts
from tests.scheduler.running import a_policy, cycle
from volcano_py.conf.defaults import BUILT_IN_CONF
from volcano_py.framework.extension import NodeOrder
from volcano_py.framework.info import TaskInfo
from volcano_py.framework.plugin import DependsOn, Plugin
from volcano_py.model.objects import QueueRecord
from volcano_py.model.resource_lists import ResourceList
from volcano_py.model.resources import Floats
from volcano_py.plugins import PLUGINS
from volcano_py.snapshot.columns import NodeColumns

WITH_BINPACK = BUILT_IN_CONF + "  - name: binpack\n"


class Recompute(Plugin, NodeOrder):
    """Has no opinion, but says that it may depend on anything: all is recomputed for every task."""

    name = "recompute"
    depends_on: ClassVar = DependsOn.OTHER_NODES

    def node_order(self, task: TaskInfo, nodes: NodeColumns) -> Floats:
        return np.zeros(len(nodes))


@st.composite
def shared_worlds(draw: st.DrawFn) -> World:
    """Clusters of two queues with weights and limits, and jobs that say what they need.

    Two queues whose weights add up to a power of two have shares that floating point holds exactly.
    """
    world = draw(worlds())
    weights = draw(st.sampled_from(((1, 1), (3, 1))))
    limits = st.sampled_from(({}, {}, {"cpu": "1024m"}, {"memory": "1Gi"}, {"cpu": 4, "gpu": 0}))
    queues = tuple(
        QueueRecord(
            name,
            weight=weight,
            state=draw(st.sampled_from(("Open", "Open", "", "Closed"))),
            priority=draw(st.sampled_from((0, 0, 5))),
            creation=draw(st.sampled_from((0.0, 1.0))),
            capability=ResourceList.of(amounts(**draw(limits))),
            guarantee=ResourceList.of(amounts(**draw(st.sampled_from(({}, {}, {"cpu": "512m"}))))),
        )
        for name, weight in zip(("default", "other"), weights, strict=True)
    )
    minimums = st.sampled_from((None, {}, {"cpu": "512m"}, {"cpu": 3, "memory": "1Gi"}, {"cpu": 30}, {"gpu": 1}))
    jobs = []
    for job in world.jobs:
        minimum = draw(minimums)
        jobs.append(replace(job, min_resources=None if minimum is None else amounts(**minimum)))
    return replace(world, queues=queues, jobs=tuple(jobs))


@pytest.mark.parametrize(
    ("conf", "rules"),
    [
        pytest.param(BUILT_IN_CONF, Rules(), id="built-in"),
        pytest.param(WITH_BINPACK, Rules(binpack=1), id="with-binpack"),
    ],
)
@settings(max_examples=200, deadline=None, derandomize=True)
@given(world=shared_worlds())
def test_a_cycle_binds_what_one_by_one_greedy_binds(conf: str, rules: Rules, world: World) -> None:
    assert cycle(world, a_policy(conf)).binds == expected_binds(world, rules)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(world=shared_worlds(), seed=st.sampled_from((0, 1, 77)))
def test_the_heap_decides_what_a_full_recomputation_for_every_task_decides(world: World, seed: int) -> None:
    tables = {"plugins": {**PLUGINS, Recompute.name: Recompute}}
    heap = cycle(world, a_policy(WITH_BINPACK), seed=seed)
    recomputed = cycle(world, a_policy(WITH_BINPACK + "  - name: recompute\n", **tables), seed=seed)

    assert heap.binds == recomputed.binds
    assert heap.messages == recomputed.messages

"""Action shuffle: who must go now goes at once, unless somebody protects it."""

from typing import Any

import numpy as np

from tests.framework.failures import without_places
from tests.framework.opened import opened
from volcano_py.framework.contract.extension_points import VictimTasks
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.framework.state.report import CycleReport
from volcano_py.model.decisions import Decision, Evict
from volcano_py.scheduler import run_cycle
from volcano_py.testing import a_budget, a_cluster, a_group, a_node, a_pod, a_policy


class Low(Plugin, VictimTasks):
    """Sends away everything of priority 1."""

    name = "low"

    def victim_tasks(self, candidates):
        return candidates.priorities == 1


class Fails(Plugin, VictimTasks):
    name = "fails"

    def victim_tasks(self, candidates):
        raise RuntimeError("no idea")


def shuffled(*objects: Any, plugins: Any, **pod: Any) -> tuple[list[str], list[Decision], CycleReport]:
    pods = [a_pod(f"p{i}", group="g1", cpu=1, node="n1", priority=i % 2, **pod) for i in range(6)]
    cluster = a_cluster(a_node("n1", cpu=8), a_group(phase="Running", min_available=1), *pods, *objects)
    decisions: list[Decision] = []
    policy = a_policy("shuffle", plugins)
    _, report = run_cycle(cluster.snapshot(), policy, CycleClock(), 0, Memory(), lambda batch: decisions.extend(batch))
    return [one.task.name for one in decisions if isinstance(one, Evict)], decisions, report


def test_victims_of_a_plugin_are_evicted_with_the_action_as_the_reason():
    names, decisions, _ = shuffled(plugins=[Low])

    assert sorted(names) == ["p1", "p3", "p5"]
    evictions = [one for one in decisions if isinstance(one, Evict)]
    assert {(one.action, one.node, one.beneficiary) for one in evictions} == {("shuffle", "n1", None)}


def test_without_victims_of_a_plugin_nobody_is_evicted():
    assert shuffled(plugins=["conformance", "pdb"])[0] == []


def test_a_pod_that_is_not_preemptable_is_not_evicted():
    assert shuffled(plugins=[Low], annotations={"volcano.sh/preemptable": "false"})[0] == []


def test_critical_pods_are_not_evicted():
    assert shuffled(plugins=["conformance", Low], spec={"priorityClassName": "system-node-critical"})[0] == []


def test_a_budget_limits_evictions_and_never_causes_one():
    labels = {"app": "web"}
    budget = a_budget(labels=labels, allowed=2)

    assert len(shuffled(budget, plugins=[Low, "pdb"], labels=labels)[0]) == 2
    assert shuffled(budget, plugins=["pdb"], labels=labels)[0] == []


CLOSED = {"name": "tdm", "arguments": {"tdm.revocable-zone.night": "22:00-06:00"}}
NIGHT_NODES = [a_node(name, labels={"volcano.sh/revocable-zone": "night"}) for name in ("n1", "n2")]


def sent_away(*objects: Any, most: int = 1) -> list[str]:
    """Return who leaves nodes whose window is closed, of a job that may lose as many; four of its pods run there."""
    group = a_group(phase="Running", min_available=0, annotations={"volcano.sh/jdb-max-unavailable": str(most)})
    pods = [
        a_pod(f"j-w-{i}", group="g1", cpu=1, node=f"n{1 + i // 2}", priority=4 - i, labels={"place": f"{i // 2}"})
        for i in range(4)
    ]
    ssn = opened(*NIGHT_NODES, group, *pods, *objects, plugins=["priority", CLOSED, "pdb"], now=12 * 3600)
    return [ssn.state.tasks.record(row).name for row in ssn.eviction.unconditional().tolist()]


def test_the_first_victim_of_a_job_goes_first_on_whatever_node_it_is():
    assert sent_away() == ["j-w-3"]
    assert sent_away(most=3) == ["j-w-3", "j-w-2", "j-w-1"]


def test_another_pod_goes_in_place_of_a_protected_one():
    assert sent_away(a_budget(labels={"place": "1"}, allowed=0)) == ["j-w-1"]
    assert sent_away(a_budget(labels={"place": "1"}, allowed=1), most=2) == ["j-w-3", "j-w-1"]
    assert sent_away(a_budget(labels={"place": "1"}), a_budget("more", labels={"place": "0"})) == []


def test_a_cycle_in_which_nobody_must_go_does_not_order_all_running_tasks():
    pods = [a_pod(f"p{i}", group="g1", cpu=1, node="n1") for i in range(4)]
    ordinary = [a_node(), a_group(phase="Running"), *pods]
    protected = [*NIGHT_NODES, a_group(phase="Running"), *pods, a_budget(allowed=0)]

    for objects in (ordinary, protected):
        ssn = opened(*objects, plugins=["gang", CLOSED, "pdb"], now=12 * 3600)
        assert ssn.eviction.unconditional().tolist() == []
        assert "_running_or_bound" not in vars(ssn.eviction)


def test_a_plugin_that_fails_costs_the_action_and_is_reported():
    names, _, report = shuffled(plugins=[Low, Fails])

    assert names == []
    assert without_places(report.failures) == [
        "plugin fails failed in victim_tasks: RuntimeError: no idea; nothing is shuffled in this cycle"
    ]
    assert np.isfinite(report.pending_tasks)

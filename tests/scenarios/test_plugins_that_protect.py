"""Plugins that protect pods do so in every tier, and allow nobody whom voters refuse; nothing evicts in circles."""

from typing import Any

import msgspec
import pytest

from volcano_py.api.core import Condition, Pod
from volcano_py.testing import Scenario, a_group, a_job, a_node, a_pod, a_priority_class, a_queue
from volcano_py.testing.objects import EPOCH

ALL = "enqueue, allocate, backfill, preempt, reclaim"
NO_GANG: dict[str, Any] = {"name": "gang", "enablePreemptable": False}
NO_DRF: dict[str, Any] = {"name": "drf", "enablePreemptable": False}
SHARES: list[Any] = ["overcommit", NO_DRF, "predicates", "proportion", "nodeorder", "binpack"]


@pytest.mark.parametrize("late", ["cdp", "conformance", "pdb"])
@pytest.mark.parametrize("gang", [NO_GANG, "gang"], ids=["gang has no vote", "gang votes"])
def test_a_plugin_that_protects_lets_nobody_preempt_because_it_is_in_a_later_tier(late: str, gang: Any) -> None:
    scenario = Scenario(
        *(a_node(f"n{number}", cpu=1) for number in range(4)),
        *(a_priority_class(name, value) for name, value in (("low", 1), ("high", 100))),
        a_job("high", tasks=4, min_available=4, cpu=1, priority_class="high", priority=100),
        queues=[a_queue("default")],
        actions=ALL,
        plugins=[["priority", gang], [*SHARES, late]],
    )
    scenario.run()
    scenario.add(a_job("low", tasks=1, cpu=1, priority_class="low", priority=1, created=10))

    for _ in range(3):
        result = scenario.run()
        scenario.wait(600)

    assert result.evicted == []


@pytest.mark.parametrize("gang", [NO_GANG, "gang"], ids=["gang has no vote", "gang votes"])
@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
def test_a_job_of_lower_priority_evicts_nobody_although_a_later_tier_would_allow_it(action: str, gang: Any) -> None:
    """It once evicted a pod of a complete gang, and the gang took the room back, every five minutes."""
    scenario = Scenario(
        a_priority_class("high", 100),
        a_node(cpu=4),
        a_job("high", tasks=4, cpu=1, priority_class="high", priority=100),
        actions=f"enqueue, allocate, {action}, backfill",
        plugins=[["priority", gang, "conformance"], ["overcommit", "drf", "predicates", "proportion", "nodeorder"]],
    )
    scenario.run()
    scenario.add(a_job("low", tasks=1, cpu=1))

    for _ in range(3):
        result = scenario.run()
        scenario.wait(301)

    assert result.evicted == []


@pytest.mark.parametrize(
    ("priority", "evicted"), [("priority", 0), ({"name": "priority", "enablePreemptable": False}, 1)]
)
def test_priority_protects_only_if_it_is_asked_about_victims(priority: Any, evicted: int) -> None:
    scenario = Scenario(
        a_priority_class("high", 100),
        a_node(cpu=4),
        a_job("high", tasks=4, min_available=1, cpu=1, priority_class="high", priority=100),
        actions="enqueue, allocate, preempt, backfill",
        plugins=[[priority, NO_GANG], ["drf", "predicates", "nodeorder"]],
    )
    scenario.run()
    scenario.add(a_job("low", tasks=1, cpu=1))

    assert len(scenario.step().evicted) == evicted


@pytest.mark.parametrize("action", ["reclaim", "gangreclaim"])
def test_priority_has_no_say_between_queues(action: str) -> None:
    scenario = Scenario(
        a_priority_class("high", 100),
        a_node(cpu=4),
        a_job("high", tasks=4, min_available=1, cpu=1, queue="theirs", priority_class="high", priority=100),
        queues=[a_queue("mine"), a_queue("theirs")],
        actions=f"enqueue, allocate, {action}, backfill",
        plugins=[["priority", "gang", "conformance"], ["predicates", "proportion", "nodeorder"]],
    )
    scenario.run()
    scenario.add(a_job("low", tasks=1, cpu=1, queue="mine"))

    assert len(scenario.run().evicted) == 1


def a_fresh_pod(name: str, node: str) -> Pod:
    """Return a pod that was placed a moment ago and says that it needs an hour."""
    annotations = {"volcano.sh/cooldown-time": "1h"}
    pod = a_pod(name, group="low", cpu=1, node=node, priority=1, annotations=annotations)
    scheduled = Condition(type="PodScheduled", status="True", last_transition_time=EPOCH)
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, conditions=[scheduled]))


@pytest.mark.parametrize("cools_down", [False, True])
@pytest.mark.parametrize("action", ["preempt", "reclaim"])
def test_cdp_protects_although_a_later_tier_decides(action: str, cools_down: bool) -> None:
    queue = "mine" if action == "preempt" else "theirs"
    scenario = Scenario(
        *(a_node(f"n{number}", cpu=1) for number in range(4)),
        *(a_priority_class(name, value) for name, value in (("low", 1), ("high", 100))),
        a_group("low", min_available=1, priority_class="low", phase="Running", queue="mine"),
        *(a_fresh_pod(f"low-{number}", f"n{number}") for number in range(4)),
        a_job("high", tasks=1, cpu=1, queue=queue, priority_class="high", priority=100, created=5),
        queues=[a_queue("mine"), a_queue("theirs")],
        actions=f"enqueue, allocate, {action}, backfill",
        plugins=[
            ["priority", "gang", "conformance", *(["cdp"] if cools_down else [])],
            ["drf", "predicates", "proportion", "nodeorder", "binpack"],
        ],
    )

    assert len(scenario.run().evicted) == (0 if cools_down else 1)


@pytest.mark.parametrize(
    "tiers",
    [
        pytest.param([["priority"], ["gang", "conformance", "predicates", "proportion", "nodeorder"]], id="gang"),
        pytest.param([["priority"], ["conformance", "predicates", "proportion", "nodeorder"]], id="no gang"),
        pytest.param([["gang", "conformance"], ["predicates", "proportion", "nodeorder"]], id="no priority"),
    ],
)
def test_a_job_does_not_evict_its_own_pods_for_others_like_them(tiers: list[list[Any]]) -> None:
    scenario = Scenario(
        a_node("n0", cpu=2),
        a_job("train", tasks=4, min_available=1, cpu=1),
        queues=[a_queue("default")],
        actions=ALL,
        plugins=tiers,
    )

    assert scenario.step(20).evicted == []


@pytest.mark.parametrize("action", ["gangpreempt", "gangreclaim"])
def test_gang_actions_leave_no_part_of_a_gang_whose_other_part_is_being_bound(action: str) -> None:
    between_queues = action == "gangreclaim"
    deserved = {"mine": {"cpu": 1}, "theirs": {"cpu": 4}} if between_queues else {"mine": None, "theirs": None}
    priority = {"priority": 1} if between_queues else {"priority": 100, "priority_class": "high"}
    scenario = Scenario(
        a_node("n0", cpu=4),
        a_node("n1", cpu=1),
        a_priority_class("high", 100),
        a_group("small", min_available=2, queue="mine", phase="Running"),
        a_pod("small-0", group="small", cpu=1, node="n0"),
        a_pod("small-1", group="small", cpu=1, node="n0", phase="Failed"),
        queues=[a_queue(name, deserved=amounts) for name, amounts in deserved.items()],
        actions=f"enqueue, allocate, backfill, {action}",
        recreated=False,
        plugins=[["priority", "gang", "conformance"], ["predicates", "capacity", "nodeorder"]],
    )
    scenario.run()
    scenario.add(
        a_pod("small-2", group="small", cpu=1, created=5, spec={"nodeSelector": {"kubernetes.io/hostname": "n1"}}),
        a_job("big", tasks=1, cpu=4, queue="theirs" if between_queues else "mine", created=6, **priority),
    )

    left = {name for name in scenario.step(6).running_or_bound if name.startswith("small")}

    assert left in (set(), {"small-0", "small-2"})


def test_preempt_takes_a_worker_and_not_the_only_parameter_server() -> None:
    scenario = Scenario(
        *(a_node(f"n{number}", cpu=1) for number in range(4)),
        a_priority_class("high", 100),
        a_group("train", min_available=2, min_task_member={"ps": 1, "worker": 1}, phase="Running"),
        a_pod("train-ps-0", group="train", role="ps", cpu=1, node="n0", created=9),
        *(a_pod(f"train-worker-{n}", group="train", role="worker", cpu=1, node=f"n{n + 1}") for n in range(3)),
        a_job("urgent", cpu=1, priority_class="high", priority=100, created=20),
        queues=[a_queue("default")],
        actions="enqueue, allocate, backfill, preempt",
        plugins=[["priority", "gang", "conformance"], ["predicates", "proportion", "nodeorder"]],
    )

    (evicted,) = scenario.run().evicted

    assert evicted.task.name.startswith("train-worker")

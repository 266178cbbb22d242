"""Gangs with minimums per role that take room by evictions come to rest, whichever role is first in task order."""

from typing import Any

import pytest

from volcano_py.testing import Scenario, a_job, a_node, a_priority_class, a_queue

ROLES = ["priority", "gang", "predicates"]


def test_a_role_that_is_last_in_task_order_gets_its_room_and_keeps_it() -> None:
    scenario = Scenario(
        a_node("n0", cpu=2),
        a_node("n1", cpu=2),
        a_priority_class("high", 1000),
        actions="enqueue, allocate, preempt, backfill",
        plugins=ROLES,
    )
    scenario.add(a_job("e", tasks=4, min_available=1, cpu=1))
    scenario.step(3)
    scenario.add(
        a_job("r", tasks={"a": 1, "b": 1}, min_available=1, min_task_member={"b": 1}, cpu=1, priority_class="high")
    )
    for _ in range(20):
        scenario.wait(301)
        found = scenario.step()

    assert len(found.evicted) == 2
    assert {"r-a-0", "r-b-0"} <= set(found.running_or_bound)


@pytest.mark.parametrize("wait_s", [0, 301])
@pytest.mark.parametrize("action", ["preempt", "reclaim", "gangpreempt"])
def test_a_gang_with_an_elastic_role_first_comes_to_rest_and_leaves_no_room_idle(action: str, wait_s: int) -> None:
    queue = "q0" if "preempt" in action else "q2"
    roles: dict[str, Any] = {"min_available": 3, "min_task_member": {"executor": 1, "ps": 2}}
    scenario = Scenario(
        *(a_node(f"n{number}", cpu=4) for number in range(2)),
        a_priority_class("high", 1000),
        queues=[a_queue("root", reclaimable=False), *(a_queue(name, deserved={"cpu": 4}) for name in ("q0", "q2"))],
        actions=f"enqueue, allocate, {action}, backfill",
        plugins=[["priority", "gang", "conformance"], ["predicates", "nodeorder", "proportion"]],
    )
    scenario.add(a_job("e", tasks=8, min_available=1, queue="q0", cpu=1))
    scenario.step(3)
    scenario.add(a_job("r", tasks={"executor": 4, "ps": 2}, queue=queue, cpu=1, priority_class="high", **roles))
    for _ in range(20):
        scenario.wait(wait_s)
        found = scenario.step()

    assert len(found.evicted) <= 6
    assert {"r-ps-0", "r-ps-1"} <= set(found.running_or_bound)
    assert len(found.running_or_bound) == 8, "no room is idle"


def test_priority_leaves_the_decision_to_plugins_of_an_earlier_tier() -> None:
    scenario = Scenario(
        a_priority_class("high", 1000),
        a_priority_class("low", 10),
        a_node("n0", cpu=8),
        actions="enqueue, allocate, preempt, reclaim, backfill",
        plugins=[["drf"], ["priority", "gang", "predicates"]],
    )
    scenario.add(a_job("h", tasks=8, min_available=1, priority_class="high", cpu=1))
    scenario.step(3)
    scenario.add(a_job("l", tasks=2, priority_class="low", cpu=1))
    for _ in range(20):
        scenario.wait(301)
        found = scenario.step()

    assert len(found.evicted) == 2
    assert {"l-0", "l-1"} <= set(found.running_or_bound)

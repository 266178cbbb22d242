"""A job whose binds were refused: others have the room meanwhile, and nobody is evicted for it."""

import pytest

from volcano_py.model.decisions import Bind
from volcano_py.model.objects import JobKey, TaskRef
from volcano_py.runtime.clock import FakeClock
from volcano_py.testing import Scenario, a_job, a_node, a_priority_class

WILLING = {"volcano.sh/preemptable": "true"}


def refuse(scenario: Scenario, job: str, *names: str, node: str = "n1") -> None:
    """Let the API server refuse binds that a cycle has decided."""
    refs = [TaskRef("default", name, f"uid-default-{name}") for name in names]
    answers = scenario.cache.binds.assume(
        tuple(Bind(ref, node, JobKey("default", job)) for ref in refs), scenario.cache.token
    )
    assert len(answers) == len(names)
    for ref in refs:
        scenario.cache.binds.failed(ref, "denied by policy")


def test_the_room_of_a_refused_gang_is_offered_to_others() -> None:
    scenario = Scenario(a_node("n1", cpu=2), a_job("bad", tasks=2, cpu=1))
    refuse(scenario, "bad", "bad-0", "bad-1")
    scenario.add(a_job("good", tasks=2, cpu=1, created=5))

    result = scenario.run()

    assert sorted(result.placements) == ["good-0", "good-1"]


def test_a_gang_with_one_refused_pod_waits_as_a_whole_and_says_why() -> None:
    scenario = Scenario(a_node("n1", cpu=3), a_job("bad", tasks=3, cpu=1))
    refuse(scenario, "bad", "bad-1")
    scenario.add(a_job("good", tasks=1, cpu=1, created=5))

    result = scenario.run()

    assert sorted(result.placements) == ["good-0"]
    assert "the API server refused to bind pods of this job" in result.why_not("bad").message
    assert "bad-1" not in result.conditions  # what the API server said stays on it


def test_pods_beyond_the_minimum_go_on_without_the_refused_one() -> None:
    scenario = Scenario(a_node("n1", cpu=3), a_job("bad", tasks=3, cpu=1, min_available=1))
    refuse(scenario, "bad", "bad-1")

    result = scenario.run()

    assert sorted(result.placements) == ["bad-0", "bad-2"]


@pytest.mark.parametrize(("minimum", "room"), [(2, 1), (3, 2)], ids=["complete-without-it", "a-gang-with-it"])
def test_nobody_is_evicted_for_a_job_during_its_bind_back_off(minimum: int, room: int) -> None:
    clock = FakeClock()
    low = a_job("low", tasks=2, cpu=1, min_available=0, priority_class="low", labels=WILLING)
    classes = (a_priority_class("low", 1), a_priority_class("high", 100))
    scenario = Scenario(a_node("n1", cpu=2), *classes, low, actions="enqueue, allocate, preempt", clock=clock)
    scenario.run()
    scenario.add(a_node("n2", cpu=room))
    scenario.add(a_job("high", tasks=3, cpu=1, min_available=minimum, priority_class="high", created=5))
    refuse(scenario, "high", "high-0", node="n2")
    scenario.add(a_job("other", tasks=1, cpu=1, created=9))

    held = scenario.step(4)

    assert held.evictions == []
    assert held.running_or_bound["other-0"] == "n2"

    clock.advance(2)

    assert len(scenario.run().evictions) > 0

"""Pods that wait at the gate of their queue until the queue may hold them, to the end and at rest."""

from collections import Counter
from typing import Any

import pytest

from volcano_py.api import keys
from volcano_py.api.core import Pod
from volcano_py.framework.state.memory import Memory
from volcano_py.framework.state.queue_gates import PATIENCE_S
from volcano_py.model.decisions import LiftGate
from volcano_py.testing import Result, Scenario, a_job, a_node, a_pod, a_queue
from volcano_py.testing.objects import Job

GATE = {"schedulingGates": [{"name": keys.QUEUE_GATE}]}
FOREIGN = {"schedulingGates": [{"name": keys.QUEUE_GATE}, {"name": "example.com/data"}]}
ELSEWHERE = {**GATE, "nodeSelector": {"zone": "b"}}
CAPACITY = (("priority", "gang", "conformance"), ("predicates", "capacity", "nodeorder"))
PROPORTION = (("priority", "gang", "conformance"), ("predicates", "proportion", "nodeorder"))


def gated(name: str, tasks: int = 1, **more: Any) -> Job:
    return a_job(name, tasks=tasks, **{"cpu": 1, "spec": GATE, "min_available": 1, **more})


def a_scenario(*objects: Any, plugins: Any = CAPACITY, **options: Any) -> Scenario:
    options = {"queues": [a_queue(capability={"cpu": 2})], "queue_admission": True, **options}
    return Scenario(*objects, plugins=plugins, **options)


def pods(scenario: Scenario) -> dict[str, Pod]:
    return {name: pod for (_, name), pod in sorted(scenario._pods.items())}


def at_gate(scenario: Scenario) -> list[str]:
    return [name for name, pod in pods(scenario).items() if pod.spec.scheduling_gates]


def running(result: Result) -> dict[str, int]:
    return dict(Counter(name.rpartition("-")[0] for name in result.running_or_bound))


@pytest.mark.parametrize("plugins", [CAPACITY, PROPORTION], ids=["capacity", "proportion"])
def test_gates_are_removed_from_as_many_pods_as_their_queue_may_hold(plugins: Any) -> None:
    cpu = 2 if plugins is PROPORTION else 8
    scenario = a_scenario(a_node("n1", cpu=cpu), gated("j", 4), plugins=plugins)

    result = scenario.run()

    assert running(result) == {"j": 2}
    assert at_gate(scenario) == ["j-2", "j-3"]


def test_an_ungated_pod_counts_even_if_it_is_unschedulable() -> None:
    early = gated("early", spec=ELSEWHERE)
    scenario = a_scenario(a_node("n1", cpu=8), early, gated("late", 3, created=1))
    result = scenario.run()

    assert at_gate(scenario) == ["late-1", "late-2"]
    assert running(result) == {"late": 1}
    assert "didn't match Pod's node affinity/selector" in result.conditions["early-0"]

    scenario.add(a_node("n2", cpu=8, labels={"zone": "b"}))
    assert running(scenario.run()) == {"early": 1, "late": 1}

    scenario.finish("early")
    assert running(scenario.run()) == {"late": 2}


def test_an_ungated_pod_counts_before_pods_that_never_had_a_gate() -> None:
    early = gated("early", spec=ELSEWHERE)
    scenario = a_scenario(a_node("n1", cpu=8), early, a_job("plain", tasks=3, min_available=1, cpu=1, created=1))

    assert running(scenario.run()) == {"plain": 1}


def test_an_ungated_pod_counts_for_the_ancestor_queues_as_well() -> None:
    plugins = (("priority", "gang"), ("predicates", {"name": "capacity", "enableHierarchy": True}, "nodeorder"))
    queues = [
        a_queue("root"),
        a_queue("both", parent="root", capability={"cpu": 2}),
        *(a_queue(name, parent="both") for name in ("one", "two")),
    ]
    early = gated("early", spec=ELSEWHERE, queue="one")
    scenario = a_scenario(
        a_node("n1", cpu=8), early, gated("late", 3, created=1, queue="two"), plugins=plugins, queues=queues
    )

    assert running(scenario.run()) == {"late": 1}


def test_a_gang_is_ungated_as_a_whole_or_not_at_all_and_blocks_nobody() -> None:
    scenario = a_scenario(a_node("n1", cpu=8), gated("gang", 3, min_available=3), gated("one", created=1))

    result = scenario.run()

    assert running(result) == {"one": 1}
    assert at_gate(scenario) == ["gang-0", "gang-1", "gang-2"]
    assert 'queue "default" may not hold more: 3 cpu asked, 1 held, 2 allowed' in result.why_not("gang").message


@pytest.mark.parametrize("plugins", [CAPACITY, PROPORTION], ids=["capacity", "proportion"])
def test_a_gang_that_is_refused_as_a_whole_says_how_much_is_too_much(plugins: Any) -> None:
    scenario = a_scenario(a_node("n1", cpu=8), gated("gang", 3, min_available=3), plugins=plugins)

    said = scenario.run().why_not("gang").message

    assert said.endswith('queue "default" may not hold more: 3 cpu asked, 0 held, 2 allowed (its capability)')


def a_mixed_gang(name: str, **more: Any) -> list[Any]:
    """Return a gang of one pod at the gate and one without."""
    return [gated(name, 1, min_available=2, **more), a_pod(f"{name}-free", group=name, cpu=1)]


def test_a_mixed_gang_that_exceeds_its_queue_blocks_nobody() -> None:
    one = a_job("one", tasks=1, cpu=1, created=1)
    scenario = a_scenario(a_node("n1", cpu=8), *a_mixed_gang("gang"), one, queues=[a_queue(capability={"cpu": 1})])

    assert running(scenario.run()) == {"one": 1}
    assert at_gate(scenario) == ["gang-0"]


def test_if_two_mixed_gangs_do_not_fit_together_one_runs() -> None:
    scenario = a_scenario(a_node("n1", cpu=8), *a_mixed_gang("a"), *a_mixed_gang("b", created=1))

    assert running(scenario.run()) == {"a": 2}
    assert at_gate(scenario) == ["b-0"]


def test_members_without_a_gate_count_when_their_gang_is_ungated() -> None:
    scenario = a_scenario(a_node("n1", cpu=8), gated("gang", 1, min_available=2), a_pod("free", group="gang", cpu=1))

    assert len(scenario.run().running_or_bound) == 2


def test_other_gates_are_respected() -> None:
    scenario = a_scenario(a_node("n1", cpu=8), gated("j", spec=FOREIGN), gated("k", created=1))

    result = scenario.run()

    assert running(result) == {"k": 1}
    assert [gate.name for gate in pods(scenario)["j-0"].spec.scheduling_gates] == [keys.QUEUE_GATE, "example.com/data"]


def test_without_the_feature_the_gate_stays_and_the_job_names_the_feature() -> None:
    scenario = a_scenario(a_node("n1", cpu=8), gated("j"), queue_admission=False)

    result = scenario.run()

    assert at_gate(scenario) == ["j-0"]
    assert "--feature-gates=SchedulingGatesQueueAdmission=true" in result.why_not("j").message


def test_nobody_is_evicted_for_a_gated_pod() -> None:
    plugins = (("priority", "gang", "conformance"), ("predicates", "capacity", "nodeorder"))
    queues = [a_queue("due", deserved={"cpu": 2}, capability={"cpu": 1}), a_queue("guest")]
    lent = a_job("guest", tasks=4, min_available=0, cpu=1, queue="guest")
    scenario = a_scenario(
        a_node("n1", cpu=4), lent, plugins=plugins, queues=queues, actions="enqueue, allocate, reclaim"
    )
    scenario.run()

    scenario.add(gated("due", 2, min_available=2, queue="due", created=1))  # the queue may not hold both
    assert scenario.run().evicted == []

    scenario.add(gated("small", queue="due", created=2))
    assert len(scenario.run().evicted) == 1, "once it is through it may take what its queue deserves"


def test_best_effort_pods_are_ungated() -> None:
    scenario = a_scenario(a_node("n1"), gated("j", cpu=None), actions="enqueue, allocate, backfill", queues=[a_queue()])

    assert running(scenario.run()) == {"j": 1}


def test_a_decision_to_ungate_counts_until_the_watch_confirms_it_and_expires_after_a_while() -> None:
    scenario = a_scenario(a_node("n1", cpu=8), gated("first"), gated("second", 2, created=1))
    lifted: list[str] = []
    carry_out = scenario._carry_out

    def without_lifting(decision: Any) -> None:
        if isinstance(decision, LiftGate):
            lifted.append(decision.task.name)
        else:
            carry_out(decision)

    scenario._carry_out = without_lifting  # type: ignore[method-assign]
    scenario.step(5)
    assert lifted == ["first-0", "second-0"]

    scenario.wait(PATIENCE_S)
    scenario.step(1)
    assert lifted == ["first-0", "second-0"] * 2
    assert isinstance(scenario._memory, Memory)
    assert len(scenario._memory.gates_lifted) == 2

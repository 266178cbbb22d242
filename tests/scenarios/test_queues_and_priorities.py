"""Who goes first, and who does not go at all. Every scenario settles: five more cycles change nothing."""

import pytest

from volcano_py.testing import Scenario, a_group, a_job, a_node, a_pod, a_priority_class, a_queue, run_scenario

CLASSES = [a_priority_class("high", 1000), a_priority_class("low", 1)]


def test_the_job_of_higher_priority_goes_first_though_it_came_later() -> None:
    result = run_scenario(
        nodes=[a_node("n1", cpu=2)],
        jobs=[
            a_job("early", tasks=2, cpu=1, priority_class="low"),
            a_job("late", tasks=2, cpu=1, priority_class="high", created=100),
        ],
        priority_classes=CLASSES,
    )

    assert set(result.placements) == {"late-0", "late-1"}
    assert result.waiting() == ["early"]


def test_without_the_priority_plugin_the_older_job_goes_first() -> None:
    result = run_scenario(
        nodes=[a_node("n1", cpu=2)],
        jobs=[
            a_job("early", tasks=2, cpu=1, priority_class="low"),
            a_job("late", tasks=2, cpu=1, priority_class="high", created=100),
        ],
        priority_classes=CLASSES,
        plugins=["gang", "predicates"],
    )

    assert set(result.placements) == {"early-0", "early-1"}


def test_in_a_job_the_more_important_task_goes_first() -> None:
    job = a_job("j", tasks=3, min_available=1, cpu=1)
    important = a_pod("j-2", group="j", cpu=1, priority=10)
    result = run_scenario(nodes=[a_node("n1", cpu=2)], groups=[job.group], pods=[*job.pods[:2], important])

    assert result.batches == [["j-2"], ["j-0"]]


def test_an_annotation_replaces_the_priority_of_a_task() -> None:
    job = a_job("j", tasks=2, min_available=1, cpu=1, priority=5)
    annotated = a_pod("j-9", group="j", cpu=1, priority=0, annotations={"volcano.sh/task-priority": "7"})
    result = run_scenario(nodes=[a_node("n1", cpu=1)], groups=[job.group], pods=[*job.pods, annotated])

    assert list(result.placements) == ["j-9"]


def test_jobs_of_equal_priority_go_by_creation_time_and_then_by_name() -> None:
    result = run_scenario(
        nodes=[a_node("n1", cpu=8)],
        jobs=[a_job("c", cpu=1, created=5), a_job("b", cpu=1, created=1), a_job("a", cpu=1, created=5)],
    )

    assert result.batches == [["b-0"], ["a-0"], ["c-0"]]


def test_an_older_queue_goes_first() -> None:
    result = run_scenario(
        nodes=[a_node("n1", cpu=1)],
        jobs=[a_job("a", cpu=1, queue="new"), a_job("b", cpu=1, queue="old", created=9)],
        queues=[a_queue("new", created=5), a_queue("old", created=1)],
    )

    assert list(result.placements) == ["b-0"]


@pytest.mark.parametrize("state", ["Closed", "Closing"])
def test_a_closed_queue_takes_no_new_job_and_finishes_what_it_has(state: str) -> None:
    scenario = Scenario(a_node("n1", cpu=4), a_job("in", cpu=8, queue="q"), queues=[a_queue("q")])
    assert scenario.run().phases == {"in": "Inqueue"}

    scenario.add(a_queue("q", state=state), a_job("out", cpu=1, queue="q"), a_node("n2", cpu=8))
    result = scenario.run()

    assert result.placements == {"in-0": "n2"}
    assert result.phases == {"in": "Running", "out": "Pending"}
    assert f'queue "q" is {state}, not Open: it takes no new job' in result.conditions["out-0"]

    scenario.add(a_queue("q"))
    assert "out-0" in scenario.run().placements


def test_a_queue_that_no_controller_has_opened_counts_as_open() -> None:
    assert run_scenario(nodes=[a_node()], jobs=[a_job("j", cpu=1)], queues=[a_queue(state="")]).placements


def test_jobs_of_a_missing_queue_wait_until_it_exists() -> None:
    scenario = Scenario(a_node("n1"), a_job("j", cpu=1, queue="ml"))
    before = scenario.run()

    assert before.placements == {}
    assert before.phases == {"j": "Pending"}
    assert 'queue "ml" of PodGroup default/j does not exist: create it or change spec.queue' in before.conditions["j-0"]

    scenario.add(a_queue("ml"))
    assert scenario.run().placements == {"j-0": "n1"}


def test_pods_wait_for_a_missing_podgroup() -> None:
    job = a_job("j", tasks=2, cpu=1)
    scenario = Scenario(a_node("n1"), *job.pods)
    before = scenario.run()

    assert before.placements == {}
    assert set(before.conditions) == {"j-0", "j-1"}
    for text in before.conditions.values():
        assert text.startswith('PodGroup "j" does not exist in the namespace of the pod: create it')

    scenario.add(job.group)
    assert len(scenario.run().batches) == 1


def test_a_podgroup_of_another_namespace_is_not_the_pods_own() -> None:
    result = run_scenario(
        nodes=[a_node("n1")], groups=[a_group("j", namespace="other")], pods=[a_pod("p", group="j", cpu=1)]
    )

    assert result.placements == {}
    assert 'PodGroup "j" does not exist in the namespace' in result.conditions["p"]


def test_equal_names_in_two_namespaces_are_two_gangs() -> None:
    result = run_scenario(
        nodes=[a_node("n1", cpu=3)],
        jobs=[a_job("j", tasks=2, cpu=1, namespace="a"), a_job("j", tasks=2, cpu=1, namespace="b")],
    )

    assert result.batches == [["a/j-0", "a/j-1"]]
    assert result.waiting() == ["b/j"]


def test_pods_of_another_scheduler_take_room_and_are_left_alone() -> None:
    result = run_scenario(
        nodes=[a_node("n1", cpu=3)],
        pods=[
            a_pod("theirs", cpu=2, node="n1", scheduler="default-scheduler"),
            a_pod("waiting", cpu=1, scheduler="default-scheduler"),
        ],
        jobs=[a_job("a", cpu=1), a_job("b", cpu=1, created=1)],
    )

    assert result.placements == {"a-0": "n1"}
    assert "waiting" not in result.conditions


def test_a_pod_with_an_unsupported_constraint_waits_and_names_it_while_others_go_on() -> None:
    preemptor = {"resourceClaims": [{"name": "device"}]}
    result = run_scenario(nodes=[a_node("n1")], jobs=[a_job("odd", cpu=1, spec=preemptor), a_job("even", cpu=1)])

    assert list(result.placements) == ["even-0"]
    assert "spec.resourceClaims[device]: not supported" in result.conditions["odd-0"]


def test_a_gated_pod_is_part_of_its_gang_and_delays_it() -> None:
    gate = {"schedulingGates": [{"name": "quota"}]}
    scenario = Scenario(
        a_node("n1"),
        a_group("j", min_available=2),
        a_pod("j-0", group="j", cpu=1),
        a_pod("j-1", group="j", cpu=1, spec=gate),
    )
    before = scenario.run()

    assert before.placements == {}
    assert "j-1" not in before.conditions

    scenario.add(a_pod("j-1", group="j", cpu=1))
    assert scenario.run().batches == [["j-0", "j-1"]]


def test_cordoned_and_tainted_nodes_are_filled_by_pods_that_tolerate_them() -> None:
    tolerant = {"tolerations": [{"operator": "Exists"}]}
    result = run_scenario(
        nodes=[
            a_node("cordoned", unschedulable=True),
            a_node("tainted", taints=["k=v:NoSchedule"]),
            a_node("free", cpu=1),
        ],
        jobs=[
            a_job("plain", tasks=2, min_available=1, cpu=1),
            a_job("tolerant", tasks=2, cpu=3, spec=tolerant, created=1),
        ],
    )

    assert result.placements == {"plain-0": "free", "tolerant-0": "cordoned", "tolerant-1": "tainted"}
    assert result.conditions["plain-1"] == (
        "0/3 nodes are unavailable: 1 Insufficient cpu, 1 node(s) had untolerated taint(s), "
        "1 node(s) were unschedulable."
    )

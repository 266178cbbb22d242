"""Who is reclaimed first: which queue, and which pod of a queue."""

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pytest

from volcano_py.testing import Scenario, a_group, a_job, a_node, a_pod, a_queue

Amounts = dict[str, str | int | float]

ONE = {"cpu": 1}
TIER: list[str | dict[str, Any]] = ["priority", "gang", "predicates"]


def evicted(plugin: str, queues: list[Any], pods: list[Any], **options: Any) -> list[str]:
    """Return who is evicted for one pod of the queue "asks" on a node that is full."""
    action = options.get("action", "reclaim")
    groups = {pod.metadata.annotations["scheduling.k8s.io/group-name"]: pod for pod in pods}
    scenario = Scenario(
        a_node("n", cpu=len(pods)),
        *queues,
        *(
            a_group(name, min_available=options.get("minimum", {}).get(name, 1), phase="Running", queue=name[0])
            for name in groups
        ),
        *pods,
        a_job("new", tasks=1, cpu=1, queue="asks"),
        actions=f"enqueue, allocate, {action}",
        plugins=["priority", "gang", "predicates", plugin],
    )
    return [name for together in scenario.run().evictions for name in together]


def running(group: str, *names: str, **more: Any) -> list[Any]:
    return [a_pod(name, group=group, node="n", cpu=1, **more) for name in names]


@pytest.mark.parametrize("action", ["reclaim", "gangreclaim"])
@pytest.mark.parametrize("plugin", ["capacity", "proportion"])
@pytest.mark.parametrize("low", ["a", "b"])
def test_of_queues_above_what_they_deserve_the_one_of_lowest_priority_gives(plugin: str, low: str, action: str) -> None:
    """Otherwise a would give first with capacity, and b with proportion: it holds more of its due."""
    queues = [
        a_queue("asks", deserved=ONE, weight=3, priority=5),
        *(
            a_queue(name, deserved=ONE, weight=weight, priority=1 if name == low else 9)
            for name, weight in (("a", 3), ("b", 2))
        ),
    ]
    pods = running("a", *(f"a-{n}" for n in range(4))) + running("b", *(f"b-{n}" for n in range(3)))
    (name,) = evicted(plugin, queues, pods, action=action)

    assert name.startswith(low)


def losses(
    nodes: int,
    holders: Sequence[str],
    gang: int,
    *queues: Any,
    alike: bool,
    hierarchy: bool = False,
    minimum: Mapping[str, int] = MappingProxyType({}),
) -> Counter[str]:
    """Return how many pods each queue loses to a gang, with ``capacity``; ``minimum`` is that of their gangs.

    Nodes are full of pods of one CPU. The queues of each holder, one letter for each pod, are those on one node.
    Pods of the gang are planned together if they are alike, and else one after the other.
    """
    names = [f"n{n}" for n in range(nodes)]
    pods = [(letter, node) for node in names for letter in holders[int(node[1:]) % len(holders)]]
    scenario = Scenario(
        *(a_node(node, cpu=sum(on == node for _, on in pods), memory="1Gi") for node in names),
        *(a_pod(f"{letter}-{n}", group=letter, node=node, cpu=1) for n, (letter, node) in enumerate(pods)),
        *(
            a_group(one, min_available=minimum.get(one, 1), phase="Running", queue=one)
            for one in sorted({one for one, _ in pods})
        ),
        a_group("new", min_available=gang, queue="asks"),
        *(a_pod(f"new-{n}", group="new", cpu=1, memory="1Mi" if alike else f"{n + 1}Mi") for n in range(gang)),
        *queues,
        actions="enqueue, allocate, reclaim",
        plugins=[*TIER, {"name": "capacity", "enableHierarchy": hierarchy}],
    )
    return Counter(name[0] for together in scenario.run().evictions for name in together)


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("low", ["a", "b"])
def test_a_gang_takes_from_the_first_queue_on_all_nodes_before_the_second(low: str, alike: bool) -> None:
    queues = [
        a_queue("asks", deserved={"cpu": 8, "memory": "1Gi"}),
        *(a_queue(one, deserved={"cpu": 2, "memory": "1Gi"}, priority=1 if one == low else 9) for one in "ab"),
    ]

    assert losses(4, ["aabb"], 4, *queues, alike=alike) == {low: 4}


@pytest.mark.parametrize("alike", [True, False])
def test_a_gang_takes_from_the_next_relative_on_all_nodes_before_others(alike: bool) -> None:
    deserved: Amounts = {"cpu": 4, "memory": "1Gi"}
    queues = [
        a_queue("family", deserved={"cpu": 8, "memory": "2Gi"}),
        *(a_queue(name, parent="family", deserved=deserved) for name in ("asks", "c")),
        a_queue("b", deserved=deserved),
    ]

    assert losses(4, ["bbcc"], 4, *queues, alike=alike, hierarchy=True) == {"c": 4}


@pytest.mark.parametrize("gang", [1, 2])
def test_pods_that_cannot_go_do_not_lead_to_those_of_a_later_queue(gang: int) -> None:
    """The gang of queue a keeps all its pods; queue b comes before c, and is on other nodes."""
    queues = [
        a_queue("asks", deserved={"cpu": 8, "memory": "1Gi"}),
        *(a_queue(one, deserved={"cpu": 1, "memory": "1Gi"}, priority=n) for n, one in enumerate("abc", 1)),
    ]

    assert losses(8, ["ac", "bb"], gang, *queues, alike=True, minimum={"a": 4}) == {"b": gang}


def test_queues_that_hold_the_same_give_about_the_same_to_a_large_gang() -> None:
    """Each node has pods of one queue only, and each queue could give all that the gang needs."""
    queues = [
        a_queue("asks", deserved={"cpu": 48, "memory": "1Gi"}),
        *(a_queue(one, deserved={"cpu": 1, "memory": "1Gi"}) for one in "ab"),
    ]
    lost = losses(32, ["aa", "bb"], 24, *queues, alike=True)

    assert lost["a"] + lost["b"] == 24
    assert abs(lost["a"] - lost["b"]) <= 8


@pytest.mark.parametrize("minimum", [0, 1])
@pytest.mark.parametrize("kept", ["y", "z"])
def test_a_queue_gives_its_pod_of_lowest_priority_whichever_job_has_it(kept: str, minimum: int) -> None:
    """It has only one pod to give. If the other one were counted first, which its gang keeps, nobody would go."""
    queues = [a_queue("asks", deserved=ONE), a_queue("a", deserved=ONE)]
    priorities = {name: 5 if name == kept else 1 for name in "yz"}
    pods = [pod for name in "yz" for pod in running(f"a{name}", f"{name}-1", priority=priorities[name])]
    other = "z" if kept == "y" else "y"

    assert evicted("capacity", queues, pods, minimum={f"a{kept}": minimum, f"a{other}": 0}) == [f"{other}-1"]


def test_among_equals_the_last_uid_goes_first() -> None:
    queues = [a_queue("asks", deserved=ONE), a_queue("a", deserved=ONE)]
    pods = [pod for name in ("y", "z", "x") for pod in running(f"a{name}", name)]

    assert evicted("capacity", queues, pods, minimum=dict.fromkeys(("ax", "ay", "az"), 0)) == ["z"]

"""Who is reclaimed first: which queue, and which pod of a queue."""

from typing import Any

import pytest

from volcano_py.testing import Scenario, a_group, a_job, a_node, a_pod, a_queue

ONE = {"cpu": 1}


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

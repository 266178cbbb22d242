"""Pods beyond the minimum of a gang that runs: why they have no node, and what helps."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.vcctl.gangs import NOW, explained, facts, gang, machine, member, needing, section, share, vcjob
from volcano_py.client.why import Explanation, why_queue

REFUSED = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "queue is full"}]


def elastic(number: int, nodes: int, **of_job: Any) -> dict[str, Any]:
    """Return a job with a minimum of one pod that runs, some of its pods on a node."""
    job = vcjob("Running", replicas=number, cpu="1", **of_job)
    job["spec"]["minAvailable"] = 1
    group = {**needing(1), "status": {"phase": "Running"}}
    pods = [member(f"w-{place}", "n1" if place < nodes else "", cpu="1") for place in range(number)]
    for pod in pods[nodes:]:
        pod["status"]["conditions"] = REFUSED
    return {"job": job, "group": group, "pods": pods}


def of_queue(queues: list[Any], *gangs: dict[str, Any], others: Any = ()) -> Explanation:
    placed = [pod for one in gangs for pod in one["pods"] if "nodeName" in pod["spec"]]
    waiting = [pod for one in gangs for pod in one["pods"] if "nodeName" not in pod["spec"]]
    groups = [one["group"] for one in gangs]
    found = facts(job=None, group=None, groups=groups, queues=queues, others=[*placed, *others])
    return why_queue(found._replace(pods=waiting), "research", NOW)


def test_pods_beyond_the_minimum_in_a_full_queue_have_a_way_out() -> None:
    queues = [share("root"), share("research", may={"cpu": "2"}, used={"cpu": "2"})]

    found = explained(**elastic(5, 2), queues=queues)
    assert found.answer == (
        "its gang runs; 3 pods beyond the minimum of 1 have no node: "
        "queue research has no room: it may use cpu 2, 2 is in use, and a pod needs 1 more"
    )
    assert section(found, "Queue")[0] == ("research", "Open", "-", "cpu 2", "cpu 2", "lacks cpu 1")
    assert found.ways_out == (
        "vcctl queue why research",
        "raise the capability of queue research, or ask for fewer replicas: nobody else uses the queue",
    )

    found = of_queue(queues, elastic(5, 2))
    assert found.answer == (
        "3 pods of a job that runs wait: "
        "queue research has no room: it may use cpu 2, 2 is in use, and a pod needs 1 more"
    )
    assert section(found, "Queue")[0][-1] == "lacks cpu 1"
    assert section(found, "Waiting") == [
        ("a/train", "research", "Running", "60m", "cpu 3", "3 pods wait: queue is full"),
    ]
    assert found.ways_out == (
        "raise the capability of queue research, or ask for fewer replicas: nobody else uses the queue",
    )


def test_pods_beyond_the_minimum_wait_for_the_holders_of_their_queue() -> None:
    queues = [share("root"), share("research", may={"cpu": "5"}, used={"cpu": "5"})]
    others = [member("b0", "n2", "big-1", "uid-big", cpu="3")]
    way = "wait for the holders above, or raise the capability of queue research"

    found = explained(**elastic(3, 2), queues=queues, others=others)
    assert found.ways_out == ("vcctl queue why research", way)
    assert section(found, "Who holds the room") == [("a/big-1", "-", "1", "cpu 3")]
    assert of_queue(queues, elastic(3, 2), others=others).ways_out == (way,)


def test_pods_beyond_the_minimum_for_which_no_node_has_room_say_so() -> None:
    found = explained(**elastic(3, 2), nodes=[machine("n1", "2")])

    assert found.answer == (
        "its gang runs; 1 pod beyond the minimum of 1 has no node; 1 of 1 nodes: not enough free cpu"
    )
    assert found.ways_out == ("add nodes, or ask for less: smaller requests or fewer replicas",)


def test_two_jobs_that_run_wait_in_a_queue_with_room() -> None:
    other = elastic(2, 1)
    other["group"] = gang("Running", "big-1", "uid-big")
    other["pods"] = [member("b0", "", "big-1", "uid-big")]

    found = of_queue([share("root"), share("research", may={"cpu": "9"})], elastic(3, 2), other)

    assert found.answer == "2 pods of 2 jobs that run wait"
    assert found.ways_out == ("vcctl job why big -n a",)
    assert section(found, "Queue")[0][-1] == "has room"


@pytest.mark.parametrize(
    ("may", "verdict"),
    [({"cpu": "2", "memory": "9"}, "full: cpu"), ({"cpu": "3", "nvidia.com/gpu": "0"}, "not full")],
)
def test_a_queue_at_its_capability_is_full_for_everybody(may: dict[str, str], verdict: str) -> None:
    queues = [share("root"), share("research", may=may, used={"cpu": "2"})]

    found = explained(**elastic(2, 2), queues=queues)
    assert (found.answer, section(found, "Queue")[0][-1]) == ("it does not wait: 2 of 2 pods have a node", verdict)
    found = of_queue(queues, elastic(2, 2))
    assert (found.answer, section(found, "Queue")[0][-1]) == ("nothing waits in it", verdict)


def test_a_job_that_has_ended_looks_for_no_room() -> None:
    given = elastic(3, 0)
    given["job"]["status"]["state"]["phase"] = "Completed"
    given["pods"] = [member("w-0", "n1", phase="Succeeded")]

    assert [one.title for one in explained(**given).sections] == ["State", "Gang", "Queue, up to the root"]

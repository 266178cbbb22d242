"""What keeps a gang from starting is named as it is, and the way out is one that helps."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.vcctl.gangs import (
    NOW,
    explained,
    facts,
    gang,
    machine,
    member,
    needing,
    section,
    share,
    vcjob,
)
from volcano_py.client.node_affinity import unmatched
from volcano_py.client.waiting_facts import Facts
from volcano_py.client.why import why_job, why_queue

FAILED = {"phase": "Failed"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def of_three(phase: str = "Pending", *, minimum: int = 3, **spec: Any) -> Any:
    job = vcjob(phase, replicas=3)
    job["spec"].update(minAvailable=minimum, **spec)
    return job


# Pods that have failed


def test_a_gang_below_its_minimum_for_failed_pods_can_never_start() -> None:
    pods = [member("w-0", "n1", **FAILED), member("w-1"), member("w-2")]

    found = explained(job=of_three(), group=needing(3), pods=pods)

    assert found.answer == "it can never start: 1 pod has failed and no policy restarts it"
    assert found.ways_out == (
        "kubectl delete pod w-0 -n a    # the job creates it again",
        "or delete the job, and create it with a policy for the event PodFailed, such as RestartJob",
    )
    assert section(found, "Gang") == [
        ("needs 3 pods at the same time; 0 have a node, 1 has failed, 2 wait",),
        ("lacks 3 pods; 2 pods that wait: cpu 4; 1 has failed",),
    ]


def test_a_task_below_its_minimum_for_failed_pods_is_named() -> None:
    job = of_three(minimum=2)
    job["spec"]["tasks"] = [
        {"name": name, "replicas": replicas, "minAvailable": 1, "template": {}}
        for name, replicas in (("bad", 1), ("w", 2))
    ]
    failed = member("bad-0", "n1", **FAILED)
    failed["metadata"]["annotations"]["volcano.sh/task-spec"] = "bad"

    found = explained(job=job, group=needing(2), pods=[failed, member("w-0"), member("w-1")])

    assert found.answer == ("it can never start: 1 pod has failed, which task bad needs, and no policy restarts it")


@pytest.mark.parametrize(
    ("job", "more"),
    [
        (of_three(minimum=2), {}),
        (of_three(policies=[{"event": "PodFailed", "action": "RestartJob"}]), {}),
        (of_three(policies=[{"events": ["PodEvicted", "*"], "action": "RestartJob"}]), {}),
        (of_three("Restarting"), {}),
        (of_three(), {"deletionTimestamp": "2026-03-01T11:59:00Z"}),
    ],
    ids=["enough are left", "a policy", "a policy for all events", "it restarts", "the pod is being deleted"],
)
def test_a_failed_pod_that_others_follow_stops_nothing(job: Any, more: dict[str, Any]) -> None:
    failed = member("w-0", "n1", **FAILED)
    failed["metadata"].update(more)

    found = explained(job=job, group=needing(2), pods=[failed, member("w-1"), member("w-2")])

    assert "never" not in found.answer


def test_a_job_that_runs_with_a_failed_pod_does_not_wait() -> None:
    pods = [member("w-0", "n1"), member("w-1", "n1"), member("w-2", "n1", **FAILED)]

    assert explained(job=of_three("Running"), group=needing(3), pods=pods).answer == (
        "it does not wait: 2 of 3 pods have a node, 1 has failed"
    )


def test_a_pod_group_without_a_job_needs_its_failed_pods_again() -> None:
    pods = [member("w-0", "n1", **FAILED), member("w-1", "n1", **FAILED), member("w-2")]

    found = explained(job=None, group=needing(3), pods=pods)

    assert found.answer == "it can never start: 2 pods have failed, and it needs 3 pods"
    assert found.ways_out == ("kubectl delete pod w-0 w-1 -n a    # then create them again",)


# Queues


def test_what_a_queue_can_never_give_is_not_worth_waiting_for() -> None:
    queues = [share("root"), share("small", may={"cpu": "2", "memory": "1Ti"})]
    group = {**needing(1, queue="small", minResources={"cpu": "9"})}

    found = explained(job=vcjob(replicas=1, cpu="9"), group=group, queues=queues)

    assert found.answer == "it can never start here: it needs cpu 9, and queue small may use at most cpu 2"
    assert found.ways_out == (
        "raise the capability of queue small, or ask for less: smaller requests or a lower minAvailable",
    )
    waiting = {**group, "status": {"phase": "Pending"}}
    of_queue = why_queue(facts(job=None, group=None, groups=[waiting], queues=queues), "small", NOW)
    assert of_queue.answer == "a/train can never start here: it needs cpu 9, and queue small may use at most cpu 2"


def test_what_the_gang_holds_already_counts_against_its_queue() -> None:
    queues = [share("root"), share("research", may={"cpu": "7"}, used={"cpu": "4"})]

    found = explained(queues=queues, pods=[member("w-0", "n1"), member("w-1", "n1")])

    assert found.answer == "it can never start here: it needs cpu 8, and queue research may use at most cpu 7"


# Nodes


def gpu(name: str = "n1", **spec: Any) -> Any:
    node = machine(name, **spec)
    node["metadata"]["labels"] = {"gpu": "a100", "zone": "7"}
    return node


TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
AFFINITY = {
    "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "ssd", "operator": "Exists"}]}]}}
}
NODES: dict[str, tuple[dict[str, Any], list[Any], str, list[str]]] = {
    "label": (
        {"nodeSelector": {"gpu": "h100"}},
        [machine("n1"), gpu("n2")],
        "2 of 2 nodes: node lacks label gpu=h100",
        ["label nodes with gpu=h100, or correct nodeSelector"],
    ),
    "affinity": (
        {"affinity": AFFINITY},
        [machine("n1"), gpu("n2")],
        "2 of 2 nodes: node affinity ssd exists does not match",
        ["label nodes so that ssd exists holds, or correct the node affinity"],
    ),
    "taint": (
        {},
        [machine("n1", taints=[TAINT])],
        "1 of 1 nodes: taint gpu=yes:NoSchedule is not tolerated",
        ["tolerate the taint gpu=yes:NoSchedule, or remove it from nodes"],
    ),
    "each node something else": (
        {"nodeSelector": {"gpu": "a100"}},
        [machine("n1"), machine("n2"), gpu("n3", taints=[TAINT]), gpu("n4", unschedulable=True)],
        "2 of 4 nodes: node lacks label gpu=a100; 1 of 4: taint gpu=yes:NoSchedule is not tolerated; "
        "1 of 4: node is cordoned",
        [
            "label nodes with gpu=a100, or correct nodeSelector",
            "tolerate the taint gpu=yes:NoSchedule, or remove it from nodes",
            "add nodes, or uncordon nodes (kubectl uncordon NODE)",
        ],
    ),
    "one node would do, and is too small": (
        {"nodeSelector": {"gpu": "a100"}},
        [machine("n1"), machine("n2"), gpu("n3", cpu="1")],
        "2 of 3 nodes: node lacks label gpu=a100; 1 of 3: node is too small: cpu",
        ["add larger nodes, or lower the requests of each pod", "label nodes with gpu=a100, or correct nodeSelector"],
    ),
}


@pytest.mark.parametrize("case", NODES)
def test_nodes_that_refuse_for_labels_or_taints_alone_are_enough(case: str) -> None:
    wishes, nodes, why, ways_out = NODES[case]

    found = explained(job=vcjob(**wishes), nodes=nodes)

    assert found.answer == f"the nodes have room for 0 of the 4 pods that the gang lacks; {why}"
    assert list(found.ways_out) == ways_out


@pytest.mark.parametrize(
    ("requirement", "text"),
    [
        ({"key": "gpu", "operator": "In", "values": ["a100", "h100"]}, ""),
        ({"key": "gpu", "operator": "In", "values": ["h100"]}, "gpu=h100"),
        ({"key": "gpu", "operator": "In", "values": ["h100", "h200"]}, "gpu in (h100, h200)"),
        ({"key": "gpu", "operator": "NotIn", "values": ["h100"]}, ""),
        ({"key": "gpu", "operator": "NotIn", "values": ["a100"]}, "gpu not in (a100)"),
        ({"key": "gpu", "operator": "Exists"}, ""),
        ({"key": "ssd", "operator": "Exists"}, "ssd exists"),
        ({"key": "gpu", "operator": "DoesNotExist"}, "no label gpu"),
        ({"key": "zone", "operator": "Gt", "values": ["6"]}, ""),
        ({"key": "zone", "operator": "Gt", "values": ["7"]}, "zone > 7"),
        ({"key": "zone", "operator": "Lt", "values": ["7"]}, "zone < 7"),
        ({"key": "gpu", "operator": "Lt", "values": ["7"]}, "gpu < 7"),
    ],
)
def test_node_affinity_is_read_as_by_the_scheduler(requirement: dict[str, Any], text: str) -> None:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["other"]}]}]
    spec = {
        "affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [requirement]}, *terms]}}}
    }

    assert unmatched(spec, gpu()) == (f"{text} or metadata.name=other" if text else "")
    assert unmatched(spec, gpu("other")) == ""


# Words


def test_pods_of_a_pod_group_that_do_not_exist_yet_request_nobody_knows_what() -> None:
    found = explained(job=None, group=needing(3), pods=[member("w-0", cpu="3"), member("w-1", cpu="3")])

    assert section(found, "Gang")[1] == ("lacks 3 pods; 2 pods that exist: cpu 6; 1 pod does not exist yet",)


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        (
            facts(job=vcjob(replicas=1), group=needing(1), nodes=[machine("n1", "1")]),
            "the nodes have no room for the pod that the gang lacks; 1 of 1 nodes: node is too small: cpu",
        ),
        (facts(job=None, group=needing(1)), "the pod that the gang needs does not exist"),
        (facts(job=None, group=needing(2), pods=[member("w-0")]), "only 1 of the 2 pods that the gang needs exists"),
        (
            facts(job=vcjob("Running", replicas=1), group=needing(1), pods=[member("w-0", "n1")]),
            "it does not wait: its pod has a node",
        ),
        (
            facts(job=vcjob("Running", replicas=2), group=needing(1), pods=[member("w-0", "n1"), member("w-1")]),
            "its gang runs; 1 pod beyond the minimum of 1 has no node",
        ),
    ],
)
def test_one_is_not_many(given: Facts, answer: str) -> None:
    assert why_job(given, NOW).answer == answer


# Room


def test_nobody_is_told_to_wait_for_more_than_all_nodes_have() -> None:
    others = [member("b0", "n1", "big-1", "uid-big", cpu="3")]

    found = explained(nodes=[machine("n1", "4"), machine("n2", "3")], others=others)
    assert found.answer == (
        "the nodes have room for 1 of the 4 pods that the gang lacks; 1 of 2 nodes: not enough free cpu; "
        "1 of 2: cpu enough for 1 pod; the pods need cpu 8, and all nodes together have cpu 7"
    )
    assert found.ways_out == ("add nodes, or ask for less: smaller requests or a lower minAvailable",)

    found = explained(nodes=[machine("n1", "4"), machine("n2", "4")], others=others)
    assert "together" not in found.answer
    assert found.ways_out[0].startswith("wait for the holders above")


def test_nodes_that_are_full_do_not_hide_nodes_that_lack_a_label() -> None:
    others = [member(f"b{number}", f"n{number}", "big-1", "uid-big", cpu="8") for number in (1, 2)]
    nodes = [machine(name) for name in ("n1", "n2", "n3", "n4")]
    for node in nodes[:2]:
        node["metadata"]["labels"]["pool"] = "a"

    found = explained(job=vcjob(nodeSelector={"pool": "a"}), nodes=nodes, others=others)
    assert found.answer == (
        "the nodes have room for 0 of the 4 pods that the gang lacks; 2 of 4 nodes: not enough free cpu; "
        "2 of 4: node lacks label pool=a"
    )
    assert section(found, "Nodes") == [
        ("all nodes", "4", "0", "not enough free cpu (2 nodes)"),
        ("", "", "", "node lacks label pool=a (2 nodes)"),
    ]
    assert found.ways_out == (
        "wait for the holders above, add nodes, or ask for less: smaller requests or a lower minAvailable",
        "label nodes with pool=a, or correct nodeSelector",
    )

    full = [member(f"c{number}", f"n{number}", "big-1", "uid-big", cpu="8") for number in (3, 4)]
    found = explained(job=vcjob(nodeSelector={"pool": "a"}), nodes=nodes, others=[*others, *full])
    assert len(found.ways_out) == 1, "a label makes no room on full nodes"

    found = explained(job=vcjob(nodeSelector={"pool": "a"}, cpu="6"), nodes=nodes, others=others)
    assert "the pods need cpu 24, and the nodes that suit them together have cpu 16" in found.answer
    assert found.ways_out[0].startswith("add nodes"), "nobody waits for more than these nodes have"


def test_a_few_nodes_of_a_control_plane_are_no_advice() -> None:
    others = [member(f"b{number}", f"n{number}", "big-1", "uid-big", cpu="8") for number in (1, 2)]
    nodes = [machine("n1"), machine("n2"), machine("master", taints=[TAINT])]

    found = explained(nodes=nodes, others=others)

    assert found.answer.endswith("2 of 3 nodes: not enough free cpu; 1 of 3: taint gpu=yes:NoSchedule is not tolerated")
    assert len(found.ways_out) == 1


def test_of_many_reasons_the_most_common_are_told() -> None:
    found = explained(nodes=[machine(f"n{number}", taints=[{**TAINT, "value": f"v{number}"}]) for number in range(5)])

    assert len(section(found, "Nodes")) == 4
    assert section(found, "Nodes")[3] == ("", "", "", "other reasons (2 nodes)")


# Closed queues


def below_closed(state: str = "Closed") -> list[Any]:
    return [share("root"), share("all", state="Closed"), share("research", "all", state=state)]


def test_the_topmost_closed_queue_is_to_be_opened() -> None:
    """The controllers refuse to open a queue below a closed one, and open the queues below with the one above."""
    way = ("vcctl queue operate -n all -a open",)

    found = explained(queues=below_closed())
    assert (found.answer, found.ways_out) == ("queue research is Closed, and queue all above it is Closed", way)
    found = explained(queues=below_closed("Closing"))
    assert (found.answer, found.ways_out) == ("queue research is Closing, and queue all above it is Closed", way)
    found = why_queue(facts(queues=below_closed()), "research", NOW)
    assert (found.answer, found.ways_out) == ("queue research is Closed, and queue all above it is Closed", way)


def test_a_gang_that_runs_does_not_wait_for_its_closed_queue() -> None:
    pods = [member(f"w-{number}", "n1") for number in range(4)]

    found = explained(job=vcjob("Running"), group=gang("Running"), pods=pods, queues=below_closed())
    assert (found.answer, found.ways_out) == ("it does not wait: 4 of 4 pods have a node", ())
    found = explained(job=vcjob("Running"), group=gang("Running"), pods=pods[:3], queues=below_closed())
    assert found.answer.startswith("queue research is Closed")


# Schedulers


def test_a_scheduler_that_nobody_runs_is_named() -> None:
    job = vcjob()
    job["spec"]["schedulerName"] = "volcanoo"

    found = explained(job=job, group=gang("Pending"), queues=[share("root"), share("research", may={"cpu": "1"})])

    assert found.answer == "it is for scheduler volcanoo, and no scheduler of this name has answered"
    assert found.ways_out == (
        "delete the job and create it with schedulerName volcano, or run a scheduler with --scheduler-name=volcanoo",
    )


def test_the_scheduler_of_kubernetes_is_not_to_be_replaced() -> None:
    job = vcjob()
    job["spec"]["schedulerName"] = "default-scheduler"

    found = explained(job=job, group=gang("Pending"))

    assert found.answer == "it is for scheduler default-scheduler, which starts no gangs"
    assert found.ways_out == ("delete the job and create it with schedulerName volcano",)


def test_pods_for_a_scheduler_that_nobody_runs_name_it() -> None:
    pods = [member(f"w-{number}") for number in range(4)]
    for pod in pods:
        pod["spec"]["schedulerName"] = "volcanoo"

    assert explained(job=None, pods=pods).answer.startswith("it is for scheduler volcanoo, and no scheduler")


def test_a_scheduler_of_another_name_that_answers_is_believed() -> None:
    job = vcjob()
    job["spec"]["schedulerName"] = "ours"
    refused = [{"type": "Unschedulable", "status": "True", "message": "no room"}]

    assert explained(job=job, group=gang("Pending", conditions=refused)).answer == "the scheduler says: no room"


def condition(kind: str, status: str, minute: int) -> dict[str, Any]:
    when = f"2026-03-01T11:{minute:02}:00Z"
    return {"type": kind, "status": status, "message": "1/2 tasks unschedulable", "lastTransitionTime": when}


OLD = {"reason": "Unschedulable", "message": "no room", "type": "Warning", "lastTimestamp": "2026-03-01T11:00:00Z"}


@pytest.mark.parametrize(
    ("conditions", "told"),
    [
        ([condition("Unschedulable", "False", 9)], ""),
        ([condition("Unschedulable", "True", 5), condition("Scheduled", "True", 9)], ""),
        (
            [condition("Unschedulable", "True", 9), condition("Scheduled", "True", 5)],
            "PodGroup: 1/2 tasks unschedulable",
        ),
        ([], "PodGroup: no room"),
    ],
)
def test_words_of_the_scheduler_that_no_longer_hold_are_left_out(conditions: list[Any], told: str) -> None:
    found = explained(group=gang("Inqueue", conditions=conditions), events=[OLD])

    assert section(found, "Scheduler") == ([(told,)] if told else [])


def test_a_job_that_runs_shows_no_old_reason() -> None:
    pods = [member(f"w-{number}", "n1") for number in range(4)]

    found = explained(job=vcjob("Running"), group=gang("Running"), pods=pods, events=[OLD])

    assert section(found, "Scheduler") == []


# The job itself


def test_a_minimum_that_nobody_gave_is_the_default() -> None:
    job = vcjob()
    del job["spec"]["minAvailable"]

    assert section(explained(job=job, group=None), "Gang")[0][0].startswith("needs 4 pods at the same time")


def test_too_few_replicas_come_before_the_words_of_the_job() -> None:
    job = vcjob(reason="TooFewPodsRun", message="0 of 1 pods are pending again; minAvailable is 3", replicas=1)
    job["spec"]["minAvailable"] = 3

    found = explained(job=job, group=needing(3), pods=[member("w-0", "n1")])

    assert found.answer == "it can never start: minAvailable is 3, and its tasks have only 1 pod"


def test_a_gang_that_is_not_enqueued_asks_its_queue_for_the_minimal_resources_of_its_pod_group() -> None:
    """They cover tasks that wait for others, and `minMember` does not."""
    group = gang("Pending")
    group["spec"] |= {"minMember": 1, "minResources": {"cpu": "8", "pods": "4", "requests.cpu": "8"}}
    small = explained(group=group, pods=[], queues=[share("root"), share("research", may={"cpu": "4"})])
    full = explained(
        group=group, pods=[], queues=[share("root"), share("research", may={"cpu": "8"}, used={"cpu": "3"})]
    )
    enqueued = explained(
        group={**group, "status": {"phase": "Inqueue"}},
        pods=[],
        queues=[share("root"), share("research", may={"cpu": "4"})],
    )

    assert small.answer == "it can never start here: it needs cpu 8, and queue research may use at most cpu 4"
    assert full.answer == "queue research has no room: it may use cpu 8, 3 is in use, and the gang needs 8 more"
    assert section(small, "Gang")[-1] == ("to be enqueued, it asks its queue for minResources of its PodGroup: cpu 8",)
    assert "queue research" not in enqueued.answer

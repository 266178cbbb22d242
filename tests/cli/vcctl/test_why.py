"""An explanation names the first cause that holds, with numbers, and what to do about it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.vcctl.canned import Canned, call_of
from tests.cli.vcctl.gangs import NOW, QUEUE_TREE, THEN, facts, gang, machine, member, section, share, vcjob
from volcano_py.cli.vcctl import explaining
from volcano_py.client.api import Obj
from volcano_py.client.problem import ApiProblem
from volcano_py.client.waiting_facts import Facts, facts_of_job, facts_of_queue
from volcano_py.client.why import why_job, why_queue
from volcano_py.kube.resource import EVENTS, NODES, PODGROUPS, PODS, QUEUES, VCJOBS, Resource

ANSWERS = [
    (facts(job=vcjob("Completed", message="all done")), "it does not wait: it is Completed (all done)", ""),
    (facts(job=vcjob("Aborted")), "it is Aborted and starts only when it is resumed", "vcctl job resume -N train -n a"),
    (facts(job={**vcjob(), "status": {}}), "the controllers have not seen it yet", "vc-controller-manager"),
    (facts(queues=[share("root")]), "its queue research does not exist", "vcctl queue create -n research"),
    (
        facts(queues=[share("root"), share("research", state="Closed")]),
        "queue research is Closed",
        "vcctl queue operate -n research -a open",
    ),
    (
        facts(queues=[share("root"), share("all", state="Closing"), share("research", "all")]),
        "queue all is Closing",
        "vcctl queue operate -n all -a open",
    ),
    (facts(group=None, job=vcjob(reason="QueueNotFound", message="no queue x")), "QueueNotFound: no queue x", ""),
    (facts(group=None), "it has no PodGroup yet", ""),
    (
        facts(queues=[share("root"), share("research", may={"cpu": "10"}, used={"cpu": "6"})]),
        "queue research has no room: it may use cpu 10, 6 is in use, and the gang needs 8 more",
        "vcctl queue why research",
    ),
    (
        facts(queues=[share("root", may={"cpu": "9"}, used={"cpu": "4"}), share("research", may={"cpu": "10"})]),
        "queue root has no room: it may use cpu 9, 4 is in use, and the gang needs 8 more",
        "raise the capability",
    ),
    (
        facts(queues=[share("root", may={"cpu": "7"}), share("research", may={"cpu": "8"}, used={"cpu": "1"})]),
        "it can never start here: it needs cpu 8, and queue root may use at most cpu 7",
        "raise the capability of queue root, or ask for less",
    ),
    (
        facts(nodes=[machine("n1", "3"), machine("n2", "3"), machine("n3", "1")]),
        "the nodes have room for 2 of the 4 pods that the gang lacks; 2 of 3 nodes: cpu enough for 1 pod",
        "add nodes, or ask for less",
    ),
    (
        facts(
            nodes=[machine("n1", unschedulable=True), machine("n2", unschedulable=True), machine("n3", ready="False")]
        ),
        "the nodes have room for 0 of the 4 pods that the gang lacks; 2 of 3 nodes: node is cordoned",
        "add nodes",
    ),
    (
        facts(job=vcjob(cpu="100"), group=gang()),
        "the nodes have room for 0 of the 4 pods that the gang lacks; 2 of 2 nodes: node is too small: cpu",
        "add larger nodes, or lower the requests of each pod",
    ),
    (
        facts(
            group=gang(
                conditions=[
                    {
                        "type": "Unschedulable",
                        "status": "True",
                        "reason": "NotEnoughResources",
                        "message": "0/2 nodes: x",
                    }
                ]
            )
        ),
        "the scheduler says: NotEnoughResources: 0/2 nodes: x",
        "",
    ),
    (
        facts(job={**vcjob(), "spec": {**vcjob()["spec"], "minAvailable": 9}}, group=None),
        "it has no PodGroup yet",
        "",
    ),
    (
        facts(
            job={**vcjob(), "spec": {**vcjob()["spec"], "minAvailable": 9}},
            group={**gang("Inqueue"), "spec": {**gang()["spec"], "minMember": 9}},
            pods=[member(f"w-{number}", "n1") for number in range(4)],
        ),
        "it can never start: minAvailable is 9, and its tasks have only 4 pods",
        "lower minAvailable, or raise the replicas of a task",
    ),
    (facts(group=gang("Pending")), "nobody has said why yet", "does volcano-scheduler run?"),
    (
        facts(job=vcjob("Running"), pods=[member(f"w-{number}", "n1") for number in range(4)]),
        "it does not wait: 4 of 4 pods have a node",
        "",
    ),
]


@pytest.mark.parametrize(("given", "answer", "way_out"), ANSWERS, ids=[answer[:40] for _, answer, _ in ANSWERS])
def test_the_answer_is_the_first_cause_that_holds(given: Facts, answer: str, way_out: str) -> None:
    found = why_job(given, NOW)

    assert found.subject == "job a/train"
    assert found.answer.startswith(answer)
    assert way_out in " ".join(found.ways_out)


def test_the_gang_is_told_in_numbers() -> None:
    found = why_job(facts(pods=[member("w-0", "n1"), member("w-1")]), NOW)

    assert section(found, "Gang") == [
        ("needs 4 pods at the same time; 1 has a node, 1 waits, 2 do not exist yet",),
        ("lacks 3 pods: cpu 6",),
    ]


def test_every_level_of_the_queue_is_told() -> None:
    queues = [
        share("root"),
        share("all", may={"cpu": "20"}, used={"cpu": "9"}),
        share("research", "all", may={"cpu": "4"}),
    ]
    found = why_job(facts(queues=queues), NOW)

    assert section(found, "Queue") == [
        ("research", "Open", "-", "cpu 4", "nothing", "lacks cpu 4"),
        ("all", "Open", "-", "cpu 20", "cpu 9", "has room"),
        ("root", "Open", "-", "-", "nothing", "no limit"),
    ]


def test_nodes_are_told_by_group_with_their_reasons() -> None:
    taint = [{"key": "gpu", "effect": "NoSchedule"}]
    nodes = [
        *(machine(f"a{number}", "1", "fast") for number in range(3)),
        machine("a3", "8", "fast", taints=taint),
        machine("b0", "5", "slow"),
        machine("c0", "8"),
    ]
    others = [member("x", "c0", "other", "other", cpu="7")]

    found = why_job(facts(nodes=nodes, others=others), NOW)

    assert section(found, "Nodes, for a pod of cpu 2") == [
        ("fast", "4", "0", "node is too small: cpu (3 nodes)"),
        ("", "", "", "taint gpu:NoSchedule is not tolerated (1 node)"),
        ("no group", "1", "0", "not enough free cpu (1 node)"),
        ("slow", "1", "2", "cpu enough for 2 pods (1 node)"),
    ]


def test_taints_and_labels_are_judged_by_the_pods_own_words() -> None:
    taint = [{"key": "gpu", "value": "a", "effect": "NoSchedule"}]
    job = vcjob(nodeSelector={"disk": "ssd"}, tolerations=[{"key": "gpu", "operator": "Exists"}])
    fitting = machine("n2", taints=taint)
    fitting["metadata"]["labels"]["disk"] = "ssd"

    found = why_job(facts(job=job, nodes=[machine("n1"), fitting]), NOW)

    assert section(found, "Nodes")[0][2] == "4"
    assert "node lacks label disk=ssd" in why_job(facts(job=job, nodes=[machine("n1")]), NOW).answer


def test_who_holds_the_room_is_told_by_job_with_the_largest_first() -> None:
    groups = [gang("Running", "big-1", "uid-big"), gang("Running", "small-1", "uid-small")]
    others = [
        *(member(f"b{number}", "n1", "big-1", "uid-big", cpu="3") for number in range(2)),
        member("s0", "n2", "small-1", "uid-small", cpu="5"),
        member("done", "n2", "small-1", "uid-small", cpu="5", phase="Succeeded"),
    ]

    found = why_job(facts(groups=groups, others=others), NOW)

    assert section(found, "Who holds the room") == [
        ("a/big", "research", "2", "cpu 6"),
        ("a/small", "research", "1", "cpu 5"),
    ]


def test_the_words_of_the_scheduler_and_its_last_cycle_are_shown() -> None:
    refused = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes: no room"}]
    debug = {
        "cycle": "now",
        "jobs": [
            {
                "namespace": "a",
                "name": "train-uid",
                "message": "waits",
                "rejections": [{"reasons": [{"plugin": "predicates", "code": "Fit", "text": "too small", "nodes": 2}]}],
            }
        ],
    }
    pods = [member(f"w-{number}", conditions=refused) for number in range(3)]

    assert section(why_job(facts(pods=pods, debug=debug), NOW), "Scheduler") == [
        ("last cycle: waits",),
        ("predicates: too small [Fit] on 2 nodes",),
        ("3 pods: 0/2 nodes: no room",),
    ]


def test_events_are_the_last_different_ones_with_warnings_first() -> None:
    def event(minute: int, kind: str, reason: str, message: str = "m") -> dict[str, Any]:
        when = f"2026-03-01T11:{minute:02}:00Z"
        return {"type": kind, "reason": reason, "message": message, "lastTimestamp": when}

    events = [event(1, "Normal", "Old"), *(event(minute, "Warning", "Again") for minute in range(10, 40))]
    events += [event(50 + number, "Normal", f"N{number}") for number in range(6)]

    found = section(why_job(facts(events=events), NOW), "Events")

    assert found[0] == ("21m", "Again", "m")
    assert [row[1] for row in found] == ["Again", "N5", "N4", "N3", "N2"]


def test_a_queue_tells_what_waits_in_it_and_below() -> None:
    waiting = gang("Pending", conditions=[{"type": "Unschedulable", "status": "True", "message": "no room"}])
    queues = [share("root"), share("all", may={"cpu": "10"}, used={"cpu": "6"}), share("research", "all")]
    others = [member("b0", "n1", "big-1", "uid-big", cpu="6")]
    running = gang("Running", "big-1", "uid-big")

    found = why_queue(facts(job=None, group=None, groups=[waiting, running], queues=queues, others=others), "all", NOW)

    assert found.subject == "queue all"
    assert (
        found.answer == "queue all has no room for a/train: it may use cpu 10, 6 is in use, and the gang needs 8 more"
    )
    assert section(found, "State") == [("Open; PodGroups: 1 Pending, 1 Running",)]
    assert section(found, "Waiting") == [("a/train", "research", "Pending", "60m", "cpu 8", "no room")]
    assert section(found, "Who holds the room") == [("a/big", "research", "1", "cpu 6")]


@pytest.mark.parametrize(("names", "answer"), [("a", "1 job waits; the oldest"), ("ab", "2 jobs wait; the oldest")])
def test_a_queue_with_room_says_how_many_jobs_wait(names: str, answer: str) -> None:
    groups = [gang("Pending", f"{name}-1", f"uid-{name}") for name in names]

    found = why_queue(
        facts(job=None, group=None, groups=groups, queues=[share("root"), share("research")]), "research", NOW
    )

    assert found.answer.startswith(answer)


def test_a_queue_in_which_nothing_waits_says_so() -> None:
    assert why_queue(facts(job=None, group=None), "research", NOW).answer == "nothing waits in it"


LISTS: dict[Resource, list[Any]] = {
    VCJOBS: [vcjob()],
    PODGROUPS: [gang(), gang("Running", "big-1", "uid-big")],
    PODS: [member("b0", "n1", "big-1", "uid-big", cpu="6")],
    QUEUES: [*QUEUE_TREE, share("other")],
    NODES: [machine("n1"), machine("n2", "1")],
    EVENTS: [
        {
            "type": "Warning",
            "reason": "Unschedulable",
            "lastTimestamp": THEN,
            "message": "a very long sentence " * 12,
            "involvedObject": {"kind": "PodGroup", "name": "train-uid"},
        }
    ],
}


@pytest.mark.parametrize(
    ("line", "run"), [("job why train -n a", explaining.why_job), ("queue why research", explaining.why_queue)]
)
def test_an_explanation_fits_on_one_screen(line: str, run: Any) -> None:
    out = io.StringIO()

    assert run(call_of(f"{line} --scheduler-url none", Canned(LISTS), out, NOW)) == 0

    lines = out.getvalue().splitlines()
    assert len(lines) <= 40
    message = " ".join(["a very long sentence"] * 12)
    assert any(one.endswith(message) for one in lines), "a pipe gets whole messages"
    assert all(len(one) <= 120 for one in lines if message not in one)
    assert lines[0].startswith(("job a/train: ", "queue research: "))
    assert "\033" not in out.getvalue()


class Proxied(Canned):
    """Two schedulers run as pods; the second one leads."""

    asked: list[str]

    def text(self, path: str, query: Any = None, timeout_s: float | None = None) -> Iterator[str]:
        self.asked.append(path)
        yield json.dumps({"cycle": None, "jobs": []} if "first" in path else {"cycle": "now", "jobs": [], **query})


def test_the_leading_scheduler_is_asked_through_the_api_server() -> None:
    api = Proxied({**LISTS, PODS: [{"metadata": {"name": name, "namespace": "a"}} for name in ("first", "second")]})
    api.asked = []

    found = facts_of_job(api, "train", "a")

    root = "/api/v1/namespaces/volcano-system/pods"
    assert api.asked == [f"{root}/{name}:8080/proxy/debug/jobs" for name in ("first", "second")]
    assert found.debug == {"cycle": "now", "jobs": [], "namespace": "a", "name": "train-uid"}


class Recording(Canned):
    """Keeps what was asked."""

    def __init__(self) -> None:
        super().__init__(LISTS)
        self.asked: list[tuple[str, str, dict[str, str]]] = []

    def list(self, kind: Resource, namespace: str = "", **query: str) -> list[Obj]:
        self.asked.append((kind.plural, namespace, query))
        return super().list(kind, namespace, **query)


HOLDING = {"fieldSelector": "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"}


def test_only_pods_of_the_job_and_those_that_hold_room_are_read() -> None:
    api = Recording()

    facts_of_job(api, "train", "a", "none")

    assert [asked for asked in api.asked if asked[0] == "pods"] == [
        ("pods", "a", {"labelSelector": "volcano.sh/job-name=train"}),
        ("pods", "", HOLDING),
    ]


def test_only_events_of_queues_and_groups_are_read_for_a_queue() -> None:
    api = Recording()

    facts_of_queue(api, "research", "none")

    assert [asked[2] for asked in api.asked if asked[0] == "events"] == [
        {"fieldSelector": f"involvedObject.kind={kind}"} for kind in ("Queue", "PodGroup")
    ]
    without_node = {"fieldSelector": "spec.nodeName=,status.phase=Pending"}
    assert [asked for asked in api.asked if asked[0] == "pods"] == [("pods", "", HOLDING), ("pods", "", without_node)]


def test_pods_that_wait_are_not_read_if_no_gang_of_the_queue_runs() -> None:
    api = Recording()

    facts_of_queue(api, "other", "none")

    assert [asked for asked in api.asked if asked[0] == "pods"] == [("pods", "", HOLDING)]


def test_a_parent_queue_says_why_the_gangs_below_it_wait() -> None:
    """Volcano never writes the condition while a PodGroup is Pending: the reason is in its events."""
    about = {"kind": "PodGroup", "name": "train-uid", "namespace": "a"}
    event = {"reason": "Unschedulable", "lastTimestamp": THEN, "message": "queue is full", "involvedObject": about}
    other = {**event, "message": "of another namespace", "involvedObject": {**about, "namespace": "b"}}
    queues = [share("root"), share("all"), share("research", "all")]
    lists: dict[Resource, list[Any]] = {PODGROUPS: [gang("Pending")], QUEUES: queues, EVENTS: [event, other]}

    for name in ("research", "all", "root"):
        found = why_queue(facts_of_queue(Canned(lists), name, "none"), name, NOW)
        assert found.answer == "1 job waits; the oldest is a/train: queue is full"
        assert [row[-1] for row in section(found, "Waiting")] == ["queue is full"]


def test_events_of_an_earlier_job_of_the_same_name_are_left_out() -> None:
    def event(text: str, name: str, **about: str) -> dict[str, Any]:
        return {"reason": "R", "lastTimestamp": THEN, "message": text, "involvedObject": {"name": name, **about}}

    job, pod = vcjob(), member("train-w-0")
    pod["metadata"]["uid"] = "uid-of-pod"
    earlier = [event("all done", "train", uid="another"), event("no room once", "train-w-0", uid="another")]
    ours = [event("of this job", "train", uid=job["metadata"]["uid"]), event("no room", "train-w-0", uid="uid-of-pod")]
    lists: dict[Resource, list[Any]] = {VCJOBS: [job], PODS: [pod], EVENTS: [*earlier, *ours, event("old", "train")]}

    found = facts_of_job(Canned(lists), "train", "a", "none")

    assert [one["message"] for one in found.events] == ["of this job", "no room", "old"]


class Forbidding(Canned):
    """Reads of other namespaces, and of nodes, are refused."""

    def list(self, kind: Resource, namespace: str = "", **query: str) -> list[Obj]:
        if kind is NODES or (not namespace and kind in (PODS, PODGROUPS)):
            raise ApiProblem(403, "Forbidden", f"{kind.plural} is forbidden")
        return super().list(kind, namespace, **query)


def test_what_must_not_be_read_is_said_and_the_rest_is_told() -> None:
    found = facts_of_job(Forbidding(LISTS), "train", "a", "none")

    assert found.group is not None
    assert found.notes == [
        "podgroups of other namespaces cannot be read, so what they hold is not counted",
        "pods of other namespaces cannot be read, so what they hold is not counted",
        "nodes cannot be read: nodes is forbidden",
    ]
    assert why_job(found, NOW).sections[-1].title == "Not seen"


def test_a_pod_group_without_a_job_is_explained_as_well() -> None:
    found = why_job(facts_of_job(Canned(LISTS), "train-uid", "a", "none"), NOW)

    assert found.subject == "PodGroup a/train-uid"


def test_a_queue_that_may_not_be_read_is_not_called_missing() -> None:
    found = why_job(facts(queues=[], notes=["queues cannot be read: queues is forbidden"]), NOW)

    assert section(found, "Queue") == [("research cannot be read with your rights",)]
    assert "does not exist" not in found.answer


def test_a_gang_without_a_job_waits_for_its_missing_pods() -> None:
    alone = {**gang(name="study"), "metadata": {"name": "study", "namespace": "a", "creationTimestamp": THEN}}

    found = why_job(facts(job=None, group=alone, pods=[member("w-0")]), NOW)

    assert found.answer == "only 1 of the 4 pods that the gang needs exists"
    assert found.ways_out == ("create the missing pods, or lower minMember of the PodGroup",)
    assert "3 do not exist yet" in section(found, "Gang")[0][0]


def test_a_name_that_is_neither_a_job_nor_a_pod_group_says_so() -> None:
    with pytest.raises(ApiProblem, match="there is no job and no PodGroup of this name"):
        facts_of_job(Canned(LISTS), "nobody", "a", "none")

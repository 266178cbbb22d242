from typing import Any

import pytest

from volcano_py.api.core import Node
from volcano_py.cache.changes import Change
from volcano_py.testing import a_cluster, a_node, a_pod, added, deleted, modified, quarantined


def names(cache: Any) -> tuple[str, ...]:
    found: tuple[str, ...] = cache.snapshot().nodes.statics.names
    return found


def test_pods_that_were_there_before_their_node_are_counted_when_it_arrives(make_cluster: Any) -> None:
    cache = make_cluster(a_pod(cpu=1, node="n1"))
    before = names(cache)

    added(cache, a_node("n1", cpu=4))

    assert before == ()
    assert cache.snapshot().nodes.idle[0].tolist() == [3000]


LARGEST = str(2**63 - 1)
ODD = {"cpu": 3, "memory": "3Gi", "nvidia.com/gpu": 5, "ephemeral-storage": "7Ki", "hugepages-2Mi": "6Mi"}


@pytest.mark.parametrize("scheduler", ["volcano", "other"])
def test_a_pod_that_asks_for_absurd_amounts_leaves_no_trace_on_its_node(make_cluster: Any, scheduler: str) -> None:
    cache = make_cluster(a_node("n1", **ODD))
    before = cache.snapshot().nodes.block.copy()
    pods = [a_pod(f"p{n}", node="n1", scheduler=scheduler, **dict.fromkeys(ODD, LARGEST)) for n in range(5)]

    added(cache, *pods)
    closed = cache.snapshot().nodes.idle[0] < 0
    deleted(cache, *pods)

    assert closed
    assert (cache.snapshot().nodes.block == before).all()


def test_an_absurd_amount_that_a_node_has_offered_leaves_no_trace(make_cluster: Any) -> None:
    cache = make_cluster(a_node("n1", **ODD))
    before = cache.snapshot().nodes.block.copy()

    modified(cache, a_node("n1", **dict.fromkeys(ODD, LARGEST)))
    modified(cache, a_node("n1", **ODD))

    assert (cache.snapshot().nodes.block == before).all()


def test_a_node_that_returns_still_has_its_pods(make_cluster: Any) -> None:
    node = a_node("n1", cpu=4)
    cache = make_cluster(node, a_pod(cpu=1, node="n1"))

    deleted(cache, node)
    added(cache, node)

    assert cache.snapshot().nodes.idle[0].tolist() == [3000]


def test_a_heartbeat_reports_no_change(changes_of: Any) -> None:
    cache = a_cluster(a_node("n1"))
    told = changes_of(cache)
    versions = cache.snapshot().nodes.statics.versions.tolist()

    modified(cache, a_node("n1"))

    assert told == []
    assert cache.snapshot().nodes.statics.versions.tolist() == versions


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(None, a_node(), Change.NODE, id="new"),
        pytest.param(a_node(cpu=1), a_node(cpu=2), Change.NODE, id="grown"),
        pytest.param(a_node(cpu=2), a_node(cpu=1), Change.NODE_WORSE, id="shrunk"),
        pytest.param(a_node(unschedulable=True), a_node(), Change.NODE, id="uncordoned"),
        pytest.param(a_node(), a_node(unschedulable=True), Change.NODE_WORSE, id="cordoned"),
        pytest.param(a_node(), a_node(terminating=True), Change.NODE_WORSE, id="closed"),
    ],
)
def test_what_each_node_event_reports(changes_of: Any, before: Node | None, after: Node, expected: Change) -> None:
    cache = a_cluster() if before is None else a_cluster(before)
    told = changes_of(cache)

    modified(cache, after)

    assert told == [{expected}]


def test_an_unreadable_node_is_left_out_until_it_is_readable(make_cluster: Any) -> None:
    cache = make_cluster(a_node("n1"), a_node("n2", cpu="?"))
    modified(cache, a_node("n1", memory="?"))
    unreadable = [(entry.name, names(cache)) for entry in cache.unreadable()]

    modified(cache, a_node("n1"))

    assert unreadable == [("n1", ()), ("n2", ())]
    assert names(cache) == ("n1",)
    assert [entry.name for entry in cache.unreadable()] == ["n2"]
    assert "node n2 cannot be read: status.allocatable[cpu]: '?'" in cache.unreadable()[0].message


def test_a_node_that_cannot_be_read_and_is_deleted_is_forgotten(make_cluster: Any) -> None:
    node = a_node("n1", cpu="?")
    cache = make_cluster(node)

    deleted(cache, node)

    assert cache.unreadable() == ()


def test_a_node_that_does_not_fit_its_type_is_left_out(make_cluster: Any) -> None:
    cache = make_cluster(a_node("n1"))
    entry = quarantined(a_node("n1"), "wrong", spec={"taints": 7})

    cache.nodes.on_quarantine(entry)
    gone = names(cache)
    cache.nodes.on_release(entry)

    assert gone == ()
    assert cache.unreadable() == ()


def test_a_node_closed_by_two_pods_opens_with_the_second(make_cluster: Any) -> None:
    one, two = a_pod("a", cpu="?", node="n1"), a_pod("b", cpu="?", node="n1")
    cache = make_cluster(a_node("n1"), one, two)
    seen = []

    for pod in (one, two):
        deleted(cache, pod)
        seen.append(bool(cache.snapshot().nodes.closed.all()))

    assert seen == [True, False]


def test_a_terminating_node_stays_closed_when_its_unreadable_pod_is_deleted(make_cluster: Any) -> None:
    pod = a_pod(cpu="?", node="n1")
    cache = make_cluster(a_node("n1", terminating=True), pod)

    deleted(cache, pod)

    assert cache.store.nodes.record("n1").closed == "the node is being deleted"
    modified(cache, a_node("n1"))
    assert cache.store.nodes.record("n1").closed == ""
